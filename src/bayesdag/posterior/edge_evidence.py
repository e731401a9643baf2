"""The strength of the evidence for an edge that is in every draw.

Draws cannot rank edges that all of them have. The functions can: without one cause, its
variable would be explained less well, and n rows would lose log likelihood.
"""

from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.model.scm import SCM
from bayesdag.posterior import linear_gaussian
from bayesdag.posterior.libraries import jnp, lax
from bayesdag.posterior.simulation import Ensemble, Held
from bayesdag.random import generator, jax_key, key_of
from bayesdag.types import Array, Facts, Key, Params
from bayesdag.types.late_imports import compiled, jax

NUM_DRAWS = 8
NUM_ROWS = 256
_RIDGE = 1e-6  # parents may be copies of one another


def matrix(
    ensemble: Ensemble, edges: Int[np.ndarray, "e 2"], summary: Facts
) -> Float[np.ndarray, "d d"]:
    """The evidence for the given edges in the place of each, and NaN elsewhere.

    Args:
        summary: what is kept of the data, for the number of rows in which nobody set a variable.
    """
    names = ensemble.names
    found = np.full((len(names), len(names)), np.nan)
    if len(edges):
        used = [summary["num_rows"] - summary["columns"][name]["num_set"] for name in names]
        rows = np.array(used, dtype=float)[edges[:, 1]]
        closed = linear_gaussian.applies(ensemble.model) and not ensemble.contexts
        key = None if closed else key_of(0)
        found[tuple(edges.T)] = lost_log_likelihood(key, ensemble, edges, rows)
    return found


def lost_log_likelihood(
    key: Key | None,
    ensemble: Ensemble,
    edges: Int[np.ndarray, "e 2"],
    num_rows: Float[np.ndarray, " e"],
) -> Float[np.ndarray, " e"]:
    """Log likelihood that n rows lose when the cause of an edge is not looked at, in nats.

    n/2 log(1 + Var(f(x) - f(x̂)) / Var(noise)), where x̂ has, in place of the cause, what the
    other parents predict of it linearly. For linear functions and Gaussian noise this is the log
    likelihood ratio, in closed form; for others an approximation. The mean over a few draws that
    have the edge.

    Args:
        key: None where the model is linear and Gaussian and has no contexts.
        edges: (cause, effect) of edges that some draws have.
        num_rows: rows in which nobody set the effect, for each edge.
    """
    weights = ensemble.weights.reshape(-1)
    some = np.argsort(-weights, kind="stable")[:NUM_DRAWS]
    held = None if key is None else ensemble.context_rows(generator(key), NUM_ROWS)
    if key is None or linear_gaussian.applies(ensemble.model):
        ratios = linear_gaussian.variance_ratios(*ensemble.take(some), edges, held)
    else:
        ratios = _simulated_ratios(key, ensemble, some, edges, held)
    has = ensemble.flat_graphs[some][:, edges[:, 0], edges[:, 1]] != 0
    lost = 0.5 * num_rows * np.log1p(np.asarray(ratios, dtype=float))
    total, seen = np.where(has, lost, 0.0).sum(axis=0), has.sum(axis=0)
    return np.where(seen > 0, total / np.maximum(seen, 1), np.nan)


def _simulated_ratios(
    key: Key, ensemble: Ensemble, some: Int[np.ndarray, " s"], edges: np.ndarray, held: Held
) -> Float[Array, "s e"]:
    """The same by simulation, for functions and noise of any kind."""
    nothing = np.zeros(len(ensemble.names), dtype=bool)
    contexts = held or (nothing, np.zeros((NUM_ROWS, len(nothing)), dtype=np.float32))
    keys = jax.random.split(jax_key(key), len(some))
    return _variance_ratios(
        keys, *ensemble.take(some), model=ensemble.engine, edges=edges, contexts=contexts
    )


@compiled("model")
def _variance_ratios(
    keys: Array,
    params: Params,
    graphs: Array,
    *,
    model: SCM,
    edges: Array,
    contexts: tuple[Array, Array],
) -> Float[Array, "s e"]:
    """Variance of the effect that only the cause explains, over that of the noise."""

    def one(draw: tuple[Key, Params, Array]) -> Array:
        key, theta, graph = draw
        noise = model.noise.sample(theta["noise"], key, (NUM_ROWS, graph.shape[0]))
        x = model.predict(theta, graph, noise, *contexts)
        return lax.map(partial(_ratio, model, theta, graph, x, noise), edges)

    return lax.map(one, (keys, params, graphs))


def _ratio(
    model: SCM, theta: Params, graph: Array, x: Array, noise: Array, edge: Array
) -> Float[Array, ""]:
    cause, effect = edge[0], edge[1]
    parents = graph[:, effect]
    others = (parents != 0) & (jnp.arange(len(parents)) != cause)
    without = jnp.asarray(x).at[:, cause].set(_predicted(x, cause, others))
    change = model.mechanism.node(theta["mechanism"], x, parents, effect)
    change -= model.mechanism.node(theta["mechanism"], without, parents, effect)
    return change.var() / noise[:, effect].var()


def _predicted(x: Array, cause: Array, others: Bool[Array, " d"]) -> Float[Array, " n"]:
    """The cause, as far as a linear regression on the other parents knows it."""
    centred = x - x.mean(axis=0)[None, :]
    design = centred * others[None, :].astype(x.dtype)
    gram = design.T @ design + _RIDGE * len(x) * jnp.eye(x.shape[1], dtype=x.dtype)
    return x[:, cause].mean() + design @ jnp.linalg.solve(gram, design.T @ centred[:, cause])
