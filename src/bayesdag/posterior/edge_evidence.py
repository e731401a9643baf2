"""The strength of the evidence for an edge that is in every draw.

Draws cannot rank edges that all of them have. The functions can: without one cause, its
variable would be explained less well, and n rows would lose log likelihood.
"""

from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

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
) -> Float[np.ndarray, "s e"]:
    """The same by simulation, for functions and noise of any kind."""
    nothing = np.zeros(len(ensemble.names), dtype=bool)
    contexts = held or (nothing, np.zeros((NUM_ROWS, len(nothing)), dtype=np.float32))
    keys, model = jax.random.split(jax_key(key), len(some)), ensemble.engine
    params, graphs = ensemble.take(some)
    simulated = _simulated(keys, params, graphs, model=model, contexts=contexts)
    x, noise = (np.asarray(part) for part in simulated)
    # Copies fill the edges up to a power of two, so that few shapes are ever compiled.
    padded = 1 << (len(edges) - 1).bit_length()
    filled = edges[np.minimum(np.arange(padded), len(edges) - 1)]
    with np.errstate(all="ignore"):  # what is not finite ranks last
        predicted = np.stack([_predicted(*draw, filled) for draw in zip(x, graphs, strict=True)])
        drawn = (params, graphs, x, predicted.astype(x.dtype))
        change = _variance_lost(*drawn, model=model, edges=filled)
        return np.asarray(change)[:, : len(edges)] / noise.var(axis=1)[:, edges[:, 1]]


@compiled("model")
def _simulated(
    keys: Array, params: Params, graphs: Array, *, model: SCM, contexts: tuple[Array, Array]
) -> tuple[Float[Array, "s n d"], Float[Array, "s n d"]]:
    """Rows of every draw, and their noise."""

    def one(draw: tuple[Key, Params, Array]) -> tuple[Array, Array]:
        key, theta, graph = draw
        noise = model.noise.sample(theta["noise"], key, (NUM_ROWS, graph.shape[0]))
        return model.predict(theta, graph, noise, *contexts), noise

    return lax.map(one, (keys, params, graphs))


@compiled("model")
def _variance_lost(
    params: Params, graphs: Array, x: Array, predicted: Array, *, model: SCM, edges: Array
) -> Float[Array, "s e"]:
    """Variance of the effect that only the cause explains."""

    def one(draw: tuple[Params, Array, Array, Array]) -> Array:
        theta, graph, rows, columns = draw
        return lax.map(partial(_lost, model, theta, graph, jnp.asarray(rows)), (edges, columns))

    return lax.map(one, (params, graphs, x, predicted))


def _lost(
    model: SCM, theta: Params, graph: Array, x: Array, edge: tuple[Array, Array]
) -> Float[Array, ""]:
    """The same for one edge, given what the other parents predict of the cause."""
    (cause, effect), predicted = edge
    without = jnp.asarray(x).at[:, cause].set(predicted)
    rows = jnp.concatenate([x, without])  # one evaluation of the function: half as much to compile
    mean = model.mechanism.node(theta["mechanism"], rows, graph[:, effect], effect)
    return (mean[: len(x)] - mean[len(x) :]).var()


def _predicted(
    x: Float[np.ndarray, "n d"], graph: np.ndarray, edges: Int[np.ndarray, "e 2"]
) -> Float[np.ndarray, "e n"]:
    """Every cause, as far as a linear regression on the other parents knows it.

    By NumPy: a solver takes longer to compile than all these regressions take.
    """
    mean = x.mean(axis=0, dtype=float)
    centred = x - mean
    covariance = centred.T @ centred / len(x) + _RIDGE * np.eye(x.shape[1])
    found = np.empty((len(edges), len(x)))
    for number, (cause, effect) in enumerate(edges.tolist()):
        others = np.flatnonzero((graph[:, effect] != 0) & (np.arange(len(graph)) != cause))
        linalg: Any = np.linalg  # its results have no known type
        slopes: np.ndarray = linalg.solve(
            covariance[np.ix_(others, others)], covariance[others, cause]
        )
        found[number] = mean[cause] + centred[:, others] @ slopes
    return found
