"""What a posterior is worth beside the truth, or beside an exact posterior."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int8

from bayesdag import metrics
from bayesdag.data import Dataset, sortability
from bayesdag.datasets import Benchmark
from bayesdag.knowledge import Constraints
from bayesdag.methods.exact import Exact
from bayesdag.posterior import Posterior
from bayesdag.sgmcmc.engine import Engine
from bayesdag.types import Method

# Bins of edge probabilities; calibration is judged between the first and the last but one.
BINS = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
UNSURE = tuple(np.linspace(0.05, 0.95, 6).tolist())
MOST_ENUMERATED = 5  # variables up to which all DAGs are gone through
_NOTABLE = 0.2  # error of an edge probability that is listed
_TABLES = ("not_representable", "core", "crowded", "missing_edges", "missing_log_mass")


def against_truth(method: Method, posterior: Posterior, source: Benchmark) -> dict[str, Any]:
    """Every measure of a posterior where the true graph is known."""
    edge, weights = posterior.edge_matrix(), posterior.weights.reshape(-1)
    graphs = posterior.graphs.reshape(-1, *source.graph.shape)
    measures: dict[str, Any] = {
        **metrics.summary(graphs, source.graph, weights, posterior.marginals),
        "unsure": outcomes(edge, source.graph, UNSURE),
        "reliability": outcomes(edge, source.graph, BINS),
        "errors": _errors(edge, source.graph),
        "chains_differ": _between_chains(posterior),
        "num_draws": posterior.weights.size,
        "num_chains": posterior.num_chains,
        "varsortability": sortability.varsortability(source.train.values, source.graph),
        "r2_sortability": sortability.r2_sortability(source.train.values, source.graph),
        **_log_joints(posterior),
    }
    if source.test is not None:
        measures["nll"] = held_out(posterior, source.test)
    return measures | _stages(method, posterior, source)


def outcomes(
    edge: Float[np.ndarray, "d d"], truth: np.ndarray, bins: tuple[float, ...]
) -> list[list[float]]:
    """Of the pairs in each bin: how many, the sum of their probabilities, how many edges."""
    pairs = ~np.eye(len(truth), dtype=bool)
    said, true = edge[pairs], truth[pairs]
    which = np.digitize(said, [*bins[:-1], np.nextafter(bins[-1], 2)]) - 1
    inside = (which >= 0) & (which < len(bins) - 1)
    sums = (
        np.bincount(which[inside], weights, len(bins) - 1)
        for weights in (None, said[inside], true[inside])
    )
    return np.transpose([*sums]).astype(float).tolist()


def held_out(posterior: Posterior, test: Dataset) -> float:
    """Negative log likelihood per row, of rows that the method has not seen."""
    untouched = np.zeros(test.values.shape, dtype=bool)

    def one_draw(params: Any, graph: Any) -> Any:
        return posterior.model.log_prob(params, graph, test.values, untouched)

    def flat(leaf: Any) -> np.ndarray:
        leaf = np.asarray(leaf).reshape(-1, *leaf.shape[2:])
        return leaf.astype(np.float64) if leaf.dtype.kind == "f" else leaf

    params, graphs = jax.tree.map(flat, posterior.params), flat(posterior.graphs)
    with jax.enable_x64(True):
        log_likelihoods = np.asarray(jax.vmap(one_draw)(params, graphs.astype(np.float64)))
    return metrics.negative_log_likelihood(log_likelihoods, posterior.weights.reshape(-1))


def against_exact(
    name: str, method: Method, posterior: Posterior, data: Dataset
) -> dict[str, float]:
    """Distance to the posterior of an exact method; measures end in its name, if it has one."""
    free = Constraints.free(data.names)
    reference = method(jax.random.key(0), data, free, None)
    edge, exact = posterior.edge_matrix(), reference.edge_matrix()
    found = {
        "edge_error": float(np.abs(edge - exact).max()),
        "mmd": metrics.mmd_of_marginals(edge, exact),
        "exact_edges": float(exact.sum()),
    }
    if isinstance(method, Exact) and data.num_variables <= MOST_ENUMERATED:
        found["total_variation"] = _total_variation(method, posterior, data)
    return {f"{measure}_{name}" if name else measure: value for measure, value in found.items()}


def by_draw(
    posterior: Posterior, source: Benchmark, method: Engine, steps_per_epoch: int
) -> list[dict[str, int | float]]:
    """What all chains held at every draw, by the epoch at which they held it."""
    rows = []
    for draw in range(posterior.num_draws):
        graphs = posterior.graphs[:, draw]
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


def _stages(method: Method, posterior: Posterior, source: Benchmark) -> dict[str, Any]:
    """Best score of each stage of a search, less that of the true graph."""
    search = posterior.provenance.get("search")
    scored: Any = method
    if search is None or not hasattr(scored, "log_score_of"):
        return {}
    free = Constraints.free(source.train.names)
    truth = scored.log_score_of(source.train, free, source.graph)
    stages = {stage["stage"]: stage["best"] - truth for stage in search["stages"]}
    tables = posterior.provenance["tables"]
    return {
        "above_truth": max(stages.values()),
        "stages": stages,
        "num_scores": search["num_scores"],
        "tables": {key: tables[key] for key in _TABLES},
    }


def _log_joints(posterior: Posterior) -> dict[str, float]:
    log_joint = posterior.stats["log_joint"]
    found = {"log_joint": float(log_joint.mean()), "best_log_joint": float(log_joint.max())}
    if "effective_masks" in posterior.stats:
        found["effective_masks"] = float(posterior.stats["effective_masks"].mean())
    return found


def _between_chains(posterior: Posterior) -> float:
    """Largest difference of an edge probability between a chain and the mean of all."""
    each = posterior.graphs.mean(axis=1)
    return float(np.abs(each - each.mean(axis=0)).max())


def _errors(
    edge: Float[np.ndarray, "d d"], truth: Int8[np.ndarray, "d d"]
) -> list[list[int | float]]:
    """Edges whose probability is far from the truth: from, to, probability, truth."""
    return [
        [int(i), int(j), float(edge[i, j]), int(truth[i, j])]
        for i, j in zip(*np.nonzero(abs(edge - truth) > _NOTABLE), strict=True)
    ]


def _total_variation(method: Exact, posterior: Posterior, data: Dataset) -> float:
    dags, log_prob = method.log_posterior_of_all_dags(data, Constraints.free(data.names))
    place = {dag.tobytes(): index for index, dag in enumerate(dags)}
    drawn = posterior.graphs.reshape(-1, *dags[0].shape)
    where = [place[graph.tobytes()] for graph in drawn]
    found = np.bincount(where, posterior.weights.reshape(-1), minlength=len(dags))
    return float(np.abs(found - np.exp(log_prob)).sum() / 2)
