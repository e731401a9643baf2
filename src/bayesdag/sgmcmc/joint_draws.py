"""From the buffer of a finished run to one Posterior a data set."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag import posterior
from bayesdag.data import Dataset
from bayesdag.model.energy import Energy
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior
from bayesdag.runs.loop import RunState
from bayesdag.sgmcmc.chains import ChainContext, on_cpu, over_chains, tiled
from bayesdag.types import Array, Params

_ROWS_AT_ONCE = 512
_MANY_EDGES = 3.0  # a variable


def posteriors(
    method: Any, done: RunState, datasets: Sequence[Dataset], context: ChainContext
) -> list[Posterior]:
    """The draws of every data set; leading dimensions become (chain, draw)."""
    clipped = np.asarray(jax.vmap(method.clipped_share)(done.state))
    found = []
    for k, data in enumerate(datasets):
        draws = jax.tree.map(lambda x, k=k: x[:, k].swapaxes(0, 1), done.draws)
        own = context._replace(x=context.x[k], counted=context.counted[k])
        log_joint = _log_joint(method.energy, draws, own)
        graphs, stats = draws.pop("graph"), draws.pop("stats", None)
        found.append(
            posterior.from_draws(
                np.asarray(graphs),
                SCM(method.mechanism, method.noise, data.scaling),
                jax.tree.map(np.asarray, draws),
                data,
                log_joint=np.asarray(log_joint),
                stats=stats,
                provenance=_provenance(method, float(clipped[k]), _edges_a_variable(graphs)),
            )
        )
    return found


@partial(jax.jit, static_argnums=0)
def _log_joint(energy: Energy, draws: Params, context: ChainContext) -> Array:
    """-U of each draw on all rows: the mini-batch estimates of the run are too noisy."""
    n = context.x.shape[0]
    batch = tiled(context, jnp.arange(n), math.ceil(n / _ROWS_AT_ONCE), correct=False)

    def one(draw: Params) -> Array:
        graph = draw["graph"].astype(jnp.float32)
        params = {name: draw[name] for name in ("mechanism", "noise")}
        given_order = energy.structure(graph, context.support.log_odds)
        prior = energy.params(params) + energy.potentials(draw["potentials"], jnp.zeros(()))
        return -(energy.data(graph, params, batch) + given_order + prior)

    of_chain = partial(jax.lax.map, one)
    return over_chains(of_chain, one_by_one=on_cpu())(draws)


def _edges_a_variable(graphs: Array) -> float:
    return float(np.asarray(graphs).sum(axis=(2, 3)).mean() / graphs.shape[-1])


def _provenance(method: Any, clipped: float, edges_a_variable: float) -> dict[str, Any]:
    """Model, prior and temperature in words, and what a reader should know."""
    of_potentials, of_params = method.temperatures
    if method.sparsity is None:
        prior = f"order-modular: {method.prior.describe()}"
    else:
        prior = f"order-modular: every edge costs {method.sparsity:g} nats"
    notes = []
    if getattr(method, "order_gradient", True):
        notes.append(
            "the gradient of the order is a straight-through estimate, so edge probabilities are "
            "approximate"
        )
    if method.share_edges:
        notes.append("the chains share one network q(W|p), so they are not fully independent")
    if getattr(method, "resamples", False):
        notes.append(
            "during the warm-up chains that explained the data badly were replaced by copies of "
            "better ones, so that their agreement later says little"
        )
    if of_potentials != of_params:
        notes.append(f"the temperature of the potentials is {of_potentials:g}")
    if clipped > 0:
        notes.append(
            f"mini-batches alone are noisier than the temperature allows in {clipped:.0%} of the "
            "coordinates; a larger batch_size or a smaller step_size would help"
        )
    if edges_a_variable > _MANY_EDGES:
        notes.append(
            f"{edges_a_variable:.1f} edges a variable usually mean that no good order was found: "
            "under a wrong one extra edges explain the data; compare with method collapsed, or "
            "set sparsity"
        )
    return {
        "model": f"{_kind(method.mechanism)} functions, {_kind(method.noise)} noise",
        "prior": prior,
        "temperature": of_params,
        "notes": notes,
        "clipped_share": clipped,
    }


def _kind(plugin: Any) -> str:
    return type(plugin).__name__
