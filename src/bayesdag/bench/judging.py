"""Measures of a posterior against the truth, or against an exact posterior.

Entries whose truth a data set calls unknown are never scored.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from bayesdag import metrics
from bayesdag.bench.equivalence import compare_classes, num_decided
from bayesdag.bench.suite import Measures
from bayesdag.data import Dataset, read, sortability
from bayesdag.datasets import Benchmark
from bayesdag.fitting import with_targets
from bayesdag.graphs import cpdag
from bayesdag.knowledge import Constraints
from bayesdag.methods.exact import Exact
from bayesdag.posterior import Posterior
from bayesdag.sgmcmc.engine import Engine
from bayesdag.types import Array, Graph, Method, Params

# Bins of edge probabilities; calibration is judged between the first and the last but one.
BINS = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
UNSURE = tuple(np.linspace(0.05, 0.95, 6).tolist())
CURVE = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)  # the same bins, with the improbable edges
MOST_ENUMERATED = 5  # variables up to which all DAGs are gone through
_NOTABLE = 0.2  # error of an edge probability that is listed
_TABLES = ("not_representable", "core", "crowded", "missing_edges", "missing_log_mass")


def against_truth(posterior: Posterior, source: Benchmark) -> Measures:
    """Every measure of a posterior where the true graph is known."""
    weights, own = posterior.weights.reshape(-1), _own_columns(posterior, source)
    edge, marginals = posterior.edge_matrix()[own], posterior.marginals or {}
    graphs = posterior.graphs.reshape(-1, *posterior.graphs.shape[2:])[:, *own]
    exact = {name: matrix[own] for name, matrix in marginals.items()}
    values = source.train.values[:, : len(source.graph)]
    measures: Measures = {
        **metrics.summary(graphs, source.graph, weights, exact, source.unknown),
        **of_probabilities(edge, source),
        **misfits(posterior, source),
        "errors": _errors(edge, source),
        "chains_differ": _between_chains(posterior),
        "num_draws": posterior.weights.size,
        "num_chains": posterior.num_chains,
        "varsortability": sortability.varsortability(values, source.graph),
        "r2_sortability": sortability.r2_sortability(values, source.graph),
        **_log_joints(posterior),
        "best_cpdag_shd": _best_cpdag_shd(posterior, source),
        **_estimate(posterior, source),
    }
    if source.test is not None and source.test.names == posterior.names:
        measures["nll"] = held_out(posterior, source.test)
    sets = [one.data for one in source.interventional if one.data.names == posterior.names]
    if sets:
        measures["interventional_nll"] = float(np.mean([held_out(posterior, one) for one in sets]))
    return measures


def _own_columns(posterior: Posterior, source: Benchmark) -> tuple[np.ndarray, ...]:
    """Index of the variables that the truth is about: indicators of environments follow them."""
    where = [posterior.names.index(name) for name in _variables(source)]
    return np.ix_(where, where)


def fitted_rows(posterior: Posterior, source: Benchmark) -> Dataset:
    """The training rows, and where they come from if the posterior knows it."""
    if not posterior.contexts or source.train.environment:
        return source.train
    return read(source.train, environment=source.environment)


def _variables(source: Benchmark) -> tuple[str, ...]:
    return source.train.names[: len(source.graph)]


def of_probabilities(edge: Float[np.ndarray, "d d"], source: Benchmark) -> Measures:
    """What edge probabilities alone are worth, beside the best constant forecast."""
    truth, unknown = source.graph, source.unknown
    rate = metrics.base_rate(truth, unknown)
    constant, curve = np.full(truth.shape, rate), outcomes(edge, truth, CURVE, unknown)
    return {
        **metrics.judge(edge, truth, unknown),
        "num_sure": int(curve[-1][0]),  # as good as certain, and how many of them are true
        "num_sure_true": int(curve[-1][2]),
        "base_rate": rate,
        "base_rate_log_score": metrics.log_score(constant, truth, unknown),
        "unsure": outcomes(edge, truth, UNSURE, unknown),
        "reliability": outcomes(edge, truth, BINS, unknown),
        "curve": curve,
        "undefined_directions": undefined_directions(edge, unknown),
    }


def undefined_directions(
    edge: Float[np.ndarray, "d d"], unknown: Bool[np.ndarray, "d d"] | None
) -> list[int]:
    """Of the pairs that are called adjacent and of which no direction is right: how many are sure.

    Returns how many there are, and how many of them have a direction that, given that the two
    are adjacent, is less probable than .05 or more probable than .95.
    """
    if unknown is None:
        return [0, 0]
    one, other = np.nonzero(np.triu(unknown & unknown.T, k=1))
    adjacent = edge[one, other] + edge[other, one]
    direction = edge[one, other][adjacent > 0.5] / adjacent[adjacent > 0.5]
    return [len(direction), num_decided(direction)]


def misfits(posterior: Posterior, source: Benchmark) -> Measures:
    """Misfit in nats per row and variable, and of every variable with standard errors."""
    found = posterior.checked or posterior.check(fitted_rows(posterior, source))
    variables = _variables(source)
    return {
        "misfit": found.misfit,
        "misfits": [
            [one.shape, one.shape_error, one.dependence, one.dependence_error]
            for one in found.variables
            if one.variable in variables
        ],
    }


def outcomes(
    edge: Float[np.ndarray, "d d"],
    truth: np.ndarray,
    bins: tuple[float, ...],
    unknown: Bool[np.ndarray, "d d"] | None = None,
) -> list[list[float]]:
    """Of the pairs in each bin: how many, the sum of their probabilities, how many edges."""
    said, true = metrics.pairs(edge, truth, unknown)
    which = np.digitize(said, [*bins[:-1], np.nextafter(bins[-1], 2)]) - 1
    inside = (which >= 0) & (which < len(bins) - 1)
    sums = (
        np.bincount(which[inside], weights, len(bins) - 1)
        for weights in (None, said[inside], true[inside])
    )
    return np.transpose([*sums]).astype(float).tolist()


def held_out(posterior: Posterior, test: Dataset) -> float:
    """Negative log likelihood per row, of rows that the method has not seen.

    Cells that were set have no likelihood.
    """
    were_set = ~test.observed

    def one_draw(params: Params, graph: Graph) -> Array:
        return posterior.model.log_prob(params, graph, test.values, were_set)

    def flat(leaf: Array) -> np.ndarray:
        leaf = np.asarray(leaf).reshape(-1, *leaf.shape[2:])
        return leaf.astype(np.float64) if leaf.dtype.kind == "f" else leaf

    params, graphs = jax.tree.map(flat, posterior.params), flat(posterior.graphs)
    with jax.enable_x64(True):
        log_likelihoods = np.asarray(jax.vmap(one_draw)(params, graphs.astype(np.float64)))
    return metrics.negative_log_likelihood(log_likelihoods, posterior.weights.reshape(-1))


def against_exact(name: str, method: Method, posterior: Posterior, source: Benchmark) -> Measures:
    """Distance to the posterior of an exact method; measures end in its name, if it has one."""
    data = fitted_rows(posterior, source)
    free = Constraints.free(data.names, data.contexts)
    reference = method(jax.random.key(0), data, free, None)
    edge, exact = posterior.edge_matrix(), reference.edge_matrix()
    found: Measures = {
        "edge_error": float(np.abs(edge - exact).max()),
        "mmd": metrics.mmd_of_marginals(edge, exact),
        "exact_edges": float(exact.sum()),
    }
    if isinstance(method, Exact) and data.num_variables <= MOST_ENUMERATED:
        found["total_variation"] = _total_variation(method, posterior, data)
        known = (posterior.among_variables(), reference.among_variables())
        found |= compare_classes(*known, source.graph)
    return {f"{measure}_{name}" if name else measure: value for measure, value in found.items()}


def by_draw(
    posterior: Posterior, source: Benchmark, method: Engine, steps_per_epoch: int
) -> list[dict[str, int | float]]:
    """What all chains held at every draw, by the epoch at which they held it."""
    rows, known = [], posterior.among_variables()
    for draw in range(posterior.num_draws):
        graphs = known.graphs[:, draw]
        step = method.num_warmup + (draw + 1) * method.thinning
        rows.append(
            {
                "epoch": step // steps_per_epoch - 1,  # counted as published: from 0
                "expected_shd": metrics.expected_shd(graphs, source.graph),
                "edge_f1": metrics.expected_f1(graphs, source.graph),
                "expected_num_edges": float(graphs.sum(axis=(1, 2)).mean()),
            }
        )
    return rows


def stages(method: Method, posterior: Posterior, source: Benchmark) -> Measures:
    """Best score of each stage of a search, less that of the true graph."""
    search = posterior.provenance.get("search")
    scored: Any = method
    if search is None or not hasattr(scored, "log_score_of"):
        return {}
    data = fitted_rows(posterior, source)
    free = Constraints.free(data.names, data.contexts)
    truth = scored.log_score_of(data, free, with_targets(source.graph, posterior))
    best = {stage["stage"]: stage["best"] - truth for stage in search["stages"]}
    tables = posterior.provenance["tables"]
    return {
        "above_truth": max(best.values()),
        "stages": best,
        "num_scores": search["num_scores"],
        "tables": {key: tables[key] for key in _TABLES},
    }


def _log_joints(posterior: Posterior) -> dict[str, float]:
    log_joint = posterior.stats["log_joint"]
    found = {"log_joint": float(log_joint.mean()), "best_log_joint": float(log_joint.max())}
    if "effective_masks" in posterior.stats:
        found["effective_masks"] = float(posterior.stats["effective_masks"].mean())
    return found


def _best_cpdag_shd(posterior: Posterior, source: Benchmark) -> float:
    """Distance of the class of the most probable graph that was drawn, as one graph is judged."""
    best = int(np.argmax(posterior.stats["log_joint"].reshape(-1)))
    graph = posterior.graphs.reshape(-1, *posterior.graphs.shape[2:])[best]
    found = graph[_own_columns(posterior, source)] != 0
    return float(metrics.shd(cpdag(found), cpdag(source.graph)))


def _estimate(posterior: Posterior, source: Benchmark) -> dict[str, float]:
    """SHD of the one graph that a method returns beside its draws, if it does."""
    if "estimate" not in posterior.provenance:
        return {}
    names = _variables(source)
    graph = np.zeros(source.graph.shape, dtype=np.int8)
    for cause, effect in posterior.provenance["estimate"]:
        if cause in names:  # an indicator of an environment is no variable
            graph[names.index(cause), names.index(effect)] = 1
    return {"estimate_shd": float(metrics.shd(graph, source.graph))}


def _between_chains(posterior: Posterior) -> float:
    """Largest difference of an edge probability between a chain and the mean of all."""
    each = posterior.graphs.mean(axis=1)
    return float(np.abs(each - each.mean(axis=0)).max())


def _errors(edge: Float[np.ndarray, "d d"], source: Benchmark) -> list[list[int | float]]:
    """Edges whose probability is far from the truth: from, to, probability, truth."""
    gap = metrics.without_unknown(edge - source.graph, source.unknown)
    return [
        [int(i), int(j), float(edge[i, j]), int(source.graph[i, j])]
        for i, j in zip(*np.nonzero(abs(gap) > _NOTABLE), strict=True)
    ]


def _total_variation(method: Exact, posterior: Posterior, data: Dataset) -> float:
    dags, log_prob = method.log_posterior_of_all_dags(
        data, Constraints.free(data.names, data.contexts)
    )
    place = {dag.tobytes(): index for index, dag in enumerate(dags)}
    drawn = posterior.graphs.reshape(-1, *dags[0].shape)
    where = [place[graph.tobytes()] for graph in drawn]
    found = np.bincount(where, posterior.weights.reshape(-1), minlength=len(dags))
    return float(np.abs(found - np.exp(log_prob)).sum() / 2)
