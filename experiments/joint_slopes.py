"""Which estimate of the slope in the mask logits is worth using? Bias and spread of three.

A part of `experiments/joint.py`. The truth is known by enumeration: a node has 2^d columns.
"""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Energy
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.uniform import Uniform
from bayesdag.sgmcmc import chains, dagspace, mask_gradients
from bayesdag.sgmcmc.mask_gradients import LeaveOneOut, MaskDraws, SelfNormalised, StraightThrough
from bayesdag.sgmcmc.node_energies import ChainContext

D = 5
REPETITIONS = 2000
ESTIMATES = {
    "straight-through": StraightThrough(),
    "leave-one-out": LeaveOneOut(),
    "self-normalised": SelfNormalised(),
}


def cells() -> Iterator[dict[str, Any]]:
    """Mean size of the true slope, of the bias and of the deviation, by rows and masks."""
    for num_rows in (20, 200):
        logits, place, key = _situation(num_rows)
        exact = np.asarray(_exact(logits, place))
        where = np.asarray(place.order) > 0
        for num_masks in (4, 16, 64):
            for name, estimate in ESTIMATES.items():
                found = _estimates(key, estimate, logits, place, num_masks)
                yield {
                    "rows": num_rows,
                    "masks": num_masks,
                    "estimate": name,
                    "true slope": float(np.abs(exact[where]).mean()),
                    "bias": float(np.abs(found.mean(axis=0) - exact)[where].mean()),
                    "deviation": float(found.std(axis=0)[where].mean()),
                }


def _situation(num_rows: int) -> tuple:
    """Logits of one chain and where it stands, on rows of a development seed."""
    source = Synthetic(num_variables=D, mechanism="linear", num_train=num_rows)(1)
    context = chains.context([source.train], Constraints.free(source.train.names))
    context = context._replace(x=context.x[0], counted=context.counted[0])
    key_logits, key_weights, key = jax.random.split(jax.random.key(0), 3)
    weights = 0.5 * jax.random.normal(key_weights, (D, D))
    params = {"mechanism": {"weights": weights}, "noise": {"log_scale": jnp.full(D, -0.2)}}
    batch = chains.tiled(context, jnp.arange(num_rows), 1, correct=False)
    order = dagspace.order(jnp.arange(D, 0.0, -1.0))
    energy = Energy(Linear(intercept=False), Gaussian(), Uniform())
    place = ChainContext(energy, order, params, jnp.asarray(0), context.support, batch, 1.0)
    return jax.random.normal(key_logits, (D, D)), place, key


def _estimates(
    key: Any, estimate: Any, logits: Any, place: ChainContext, num_masks: int
) -> np.ndarray:
    def one(key: Any) -> Any:
        key_masks, key_choice = jax.random.split(key)
        noise, masks = mask_gradients.draw(key_masks, logits, num_masks)
        log_terms = place.log_terms(masks)
        chosen = mask_gradients.choose(key_choice, log_terms)
        graph = mask_gradients.columns(masks, chosen) * place.order
        slope = -place.slope(graph) * place.order
        return estimate(logits, MaskDraws(noise, masks, log_terms, chosen, slope))

    return np.asarray(jax.lax.map(one, jax.random.split(key, REPETITIONS), batch_size=100))


def _exact(logits: Any, place: ChainContext) -> Any:
    """∇ Σ_j log E[p(x_j|W)]; all 2^d columns, the same one for every node at once."""
    sets = jnp.asarray((np.arange(2**D)[:, None] >> np.arange(D)) & 1, jnp.float32)
    masks = jnp.broadcast_to(sets[:, :, None], (2**D, D, D))
    log_terms = place.log_terms(masks)

    def objective(logits: Any) -> Any:
        up, down = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
        log_prob = (masks * up[None] + (1 - masks) * down[None]).sum(axis=1)
        return jax.nn.logsumexp(log_prob + log_terms, axis=0).sum()

    return jax.grad(objective)(logits)
