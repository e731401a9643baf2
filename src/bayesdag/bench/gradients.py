"""Bias and deviation of estimates of the gradient in the mask logits.

The true gradient is known by enumeration: a node has 2^d possible parent columns.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesdag.bench.suite import Measures
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Energy
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.uniform import Uniform
from bayesdag.sgmcmc import chains, dagspace, mask_gradients
from bayesdag.sgmcmc.mask_gradients import LeaveOneOut, MaskDraws, SelfNormalised, StraightThrough
from bayesdag.sgmcmc.node_energies import ChainContext
from bayesdag.types import Array, Key

NUM_VARIABLES = 5
ESTIMATES = {
    "straight-through": StraightThrough(),
    "leave-one-out": LeaveOneOut(),
    "self-normalised": SelfNormalised(),
}


def measure_gradients(
    seed: int, num_rows: tuple[int, ...], num_masks: tuple[int, ...], repetitions: int
) -> Measures:
    """Mean size of the true gradient, of the bias and of the deviation, by rows and masks."""
    series = []
    for rows in num_rows:
        logits, place, key = _situation(seed, rows)
        exact, where = np.asarray(_exact(logits, place)), np.asarray(place.order) > 0
        for masks in num_masks:
            for name, estimate in ESTIMATES.items():
                one = partial(_estimate, estimate=estimate, logits=logits, place=place, num=masks)
                keys = jax.random.split(key, repetitions)
                found = np.asarray(jax.lax.map(one, keys, batch_size=100))
                about = {"rows": rows, "masks": masks, "estimate": name}
                series.append(about | _error(found, exact, where))
    return {"series": series}


def _error(found: np.ndarray, exact: np.ndarray, where: np.ndarray) -> dict[str, float]:
    return {
        "true_gradient": float(np.abs(exact[where]).mean()),
        "bias": float(np.abs(found.mean(axis=0) - exact)[where].mean()),
        "deviation": float(found.std(axis=0)[where].mean()),
    }


def _situation(seed: int, num_rows: int) -> tuple[Array, ChainContext, Key]:
    """Logits of one chain and where it is."""
    d = NUM_VARIABLES
    source = Synthetic(num_variables=d, mechanism="linear", num_train=num_rows)(seed)
    context = chains.context([source.train], Constraints.free(source.train.names))
    context = context._replace(x=context.x[0], counted=context.counted[0])
    key_logits, key_weights, key = jax.random.split(jax.random.key(0), 3)
    weights = 0.5 * jax.random.normal(key_weights, (d, d))
    params = {"mechanism": {"weights": weights}, "noise": {"log_scale": jnp.full(d, -0.2)}}
    batch = chains.tiled(context, jnp.arange(num_rows), 1, correct=False)
    order = dagspace.order(jnp.arange(d, 0.0, -1.0))
    energy = Energy(Linear(intercept=False), Gaussian(), Uniform())
    place = ChainContext(energy, order, params, jnp.asarray(0), context.support, batch, 1.0)
    return jax.random.normal(key_logits, (d, d)), place, key


def _estimate(key: Key, estimate: Any, logits: Array, place: ChainContext, num: int) -> Array:
    key_masks, key_choice = jax.random.split(key)
    noise, masks = mask_gradients.draw(key_masks, logits, num)
    log_terms = place.log_terms(masks)
    chosen = mask_gradients.choose(key_choice, log_terms)
    graph = mask_gradients.columns(masks, chosen) * place.order
    slope = -place.slope(graph) * place.order
    return estimate(logits, MaskDraws(noise, masks, log_terms, chosen, slope))


def _exact(logits: Array, place: ChainContext) -> Float[Array, "d d"]:
    """∇ Σ_j log E[p(x_j|W)]; all 2^d columns, the same one for every node at once."""
    d = NUM_VARIABLES
    sets = jnp.asarray((np.arange(2**d)[:, None] >> np.arange(d)) & 1, jnp.float32)
    masks = jnp.broadcast_to(sets[:, :, None], (2**d, d, d))
    log_terms = place.log_terms(masks)

    def objective(logits: Array) -> Array:
        up, down = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
        log_prob = (masks * up[None] + (1 - masks) * down[None]).sum(axis=1)
        return jax.nn.logsumexp(log_prob + log_terms, axis=0).sum()

    return jax.grad(objective)(logits)
