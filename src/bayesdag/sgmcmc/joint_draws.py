"""From the buffer of a finished run to one Posterior per data set."""

import math
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag import posterior
from bayesdag.data import Dataset
from bayesdag.model.energy import Energy
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior
from bayesdag.runs.devices import on_cpu
from bayesdag.runs.loop import RunState
from bayesdag.sgmcmc.chains import DataContext, over_chains, tiled
from bayesdag.sgmcmc.engine import Engine
from bayesdag.types import Array, Params, PlainData

_ROWS_AT_ONCE = 512
_MANY_EDGES = 3.0  # per variable


def posteriors(
    engine: Engine, done: RunState, datasets: Sequence[Dataset], context: DataContext
) -> list[Posterior]:
    """The draws of every data set; leading dimensions become (chain, draw)."""
    clipped = np.asarray(jax.vmap(engine.clipped_share)(done.state))
    found = []
    for k, data in enumerate(datasets):
        draws = jax.tree.map(lambda x, k=k: x[:, k].swapaxes(0, 1), done.draws)
        own = context._replace(x=context.x[k], counted=context.counted[k])
        log_joint = _log_joint(engine.energy, draws, own)
        graphs, stats = draws.pop("graph"), draws.pop("stats", None)
        found.append(
            posterior.from_draws(
                np.asarray(graphs),
                SCM(engine.mechanism, engine.noise, data.scaling),
                jax.tree.map(np.asarray, draws),
                data,
                log_joint=np.asarray(log_joint),
                stats=stats,
                provenance=_provenance(engine, float(clipped[k]), _edges_per_variable(graphs)),
            )
        )
    return found


@partial(jax.jit, static_argnums=0)
def _log_joint(energy: Energy, draws: Params, context: DataContext) -> Array:
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


def _edges_per_variable(graphs: Array) -> float:
    return float(np.asarray(graphs).sum(axis=(2, 3)).mean() / graphs.shape[-1])


def _provenance(engine: Engine, clipped: float, edges_per_variable: float) -> PlainData:
    """Model, prior and temperature in words, and what a reader should know."""
    if engine.sparsity is None:
        prior = f"order-modular: {engine.prior.describe()}"
    else:
        prior = f"order-modular: every edge costs {engine.sparsity:g} nats"
    return {
        "model": f"{_kind(engine.mechanism)} functions, {_kind(engine.noise)} noise",
        "prior": prior,
        "temperature": engine.temperatures.params,
        "notes": [*engine.notes(), *_warnings(engine, clipped, edges_per_variable)],
        "clipped_share": clipped,
    }


def _warnings(engine: Engine, clipped: float, edges_per_variable: float) -> list[str]:
    """Warnings about this run, with remedies."""
    notes, of_potentials = [], engine.temperatures.potentials
    if of_potentials != engine.temperatures.params:
        notes.append(f"the temperature of the potentials is {of_potentials:g}")
    if clipped > 0:
        notes.append(
            f"mini-batches alone are noisier than the temperature allows in {clipped:.0%} of the "
            "coordinates; a larger batch_size or a smaller step_size would help"
        )
    if edges_per_variable > _MANY_EDGES:
        notes.append(
            f"{edges_per_variable:.1f} edges per variable usually mean that no good order was "
            "found: under a wrong order extra edges explain the data; compare with method "
            "collapsed, or set sparsity"
        )
    return notes


def _kind(plugin: object) -> str:
    return type(plugin).__name__
