"""Distances of a method's posterior from the exact one, and calibration of posteriors.

A method is judged under its own score, prior and reading of the prior, never another's. Every
distance comes with its floor: what independent exact draws of the same number would show.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

from bayesdag import graphs as facts
from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods.exact import Exact


class Truth(NamedTuple):
    """The exact posterior over all DAGs."""

    dags: np.ndarray
    probability: np.ndarray
    paths: np.ndarray

    @property
    def edge(self) -> np.ndarray:
        return np.tensordot(self.probability, self.dags, 1)

    @property
    def ancestor(self) -> np.ndarray:
        return np.tensordot(self.probability, self.paths, 1)


class Distance(NamedTuple):
    """Between two distributions over DAGs.

    Attributes:
        total_variation: half the sum of absolute differences.
        mmd: with the Hamming kernel, which sees edge marginals only: √2‖P - Q‖_F / d.
        edge: largest difference of an edge probability.
        ancestor: largest difference of a path probability.
    """

    total_variation: float
    mmd: float
    edge: float
    ancestor: float


class Verdict(NamedTuple):
    """Distances found, those of exact draws, and four standard deviations above these."""

    found: Distance
    floor: Distance
    limit: Distance


def same_model(method: Any) -> Exact:
    """The exact method with the score, prior and modularity of another one."""
    return Exact(method.score, method.prior, method.order_modular)


def no_knowledge(data: Dataset) -> Constraints:
    return Knowledge().bind(data.names)


def truth_of(exact: Exact, data: Dataset, knowledge: Constraints | None = None) -> Truth:
    """Every DAG with its probability, by enumeration (up to 5 variables in good time)."""
    dags, log_prob = exact.log_posterior_of_all_dags(data, knowledge or no_knowledge(data))
    return Truth(dags, np.exp(log_prob), facts.ancestors(dags))


def between(truth: Truth, probability: np.ndarray) -> Distance:
    """Distance of another distribution over the same DAGs."""
    change = probability - truth.probability
    edge = np.tensordot(change, truth.dags, 1)
    return Distance(
        total_variation=np.abs(change).sum() / 2,
        mmd=np.sqrt(2) * np.linalg.norm(edge) / len(edge),
        edge=np.abs(edge).max(),
        ancestor=np.abs(np.tensordot(change, truth.paths, 1)).max(),
    )


def shares(truth: Truth, graphs: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Weight of the draws on each DAG; dimensions before the last two are flattened."""
    d = truth.dags.shape[-1]
    graphs = np.asarray(graphs, dtype=np.int8).reshape(-1, d, d)
    weights = np.ones(len(graphs)) if weights is None else np.ravel(weights)
    place = {dag.tobytes(): position for position, dag in enumerate(truth.dags)}
    index = [place[graph.tobytes()] for graph in graphs]  # a cyclic graph has no place
    return np.bincount(index, weights / weights.sum(), minlength=len(truth.dags))


def floor(
    rng: np.random.Generator, truth: Truth, num_draws: int, repetitions: int = 100
) -> list[Distance]:
    """Distances of independent exact draws, as many as given, over and over."""
    probability = truth.probability / truth.probability.sum()
    counts = rng.multinomial(num_draws, probability, size=repetitions)
    return [between(truth, count / num_draws) for count in counts]


def judge(
    rng: np.random.Generator,
    truth: Truth,
    graphs: np.ndarray,
    weights: np.ndarray | None = None,
    num_effective: int | None = None,
) -> Verdict:
    """Distances of the draws beside those of `num_effective` exact ones (all, unless given)."""
    num = num_effective or graphs.size // truth.dags[0].size
    exact = np.array(floor(rng, truth, num))
    found = between(truth, shares(truth, graphs, weights))
    mean, deviation = exact.mean(axis=0), exact.std(axis=0)
    return Verdict(found, Distance(*mean), Distance(*(mean + 4 * deviation)))


def calibration_ranks(
    key: jax.Array,
    num_simulations: int,
    simulate: Callable[[jax.Array], tuple[Any, np.ndarray]],
    posterior: Callable[[jax.Array, Any], np.ndarray],
) -> tuple[np.ndarray, int]:
    """Ranks of true quantities among posterior draws, and the number of draws.

    Simulation-based calibration: when parameters come from the prior and data from the
    parameters, the truth is one more posterior draw, so its rank is uniform. Ties, common
    where a quantity is discrete, are broken at random, which keeps that true.

    Args:
        simulate: data and q true quantities, from the prior.
        posterior: draws of the same quantities given the data, (draws, q).
    """
    ranks, num_draws = [], 0
    # Slicing an array of keys is slow; its words are plain numbers.
    words = np.asarray(jax.random.key_data(jax.random.split(key, (num_simulations, 2))))
    for index, (for_truth, for_posterior) in enumerate(words):
        data, truth = simulate(jax.random.wrap_key_data(for_truth))
        drawn = posterior(jax.random.wrap_key_data(for_posterior), data)
        ties = (drawn == truth).sum(axis=0)
        broken = np.random.default_rng(index).integers(0, ties + 1)
        ranks.append((drawn < truth).sum(axis=0) + broken)
        num_draws = len(drawn)
    return np.array(ranks), num_draws


def calibration_pvalues(ranks: np.ndarray, num_draws: int, num_bins: int = 8) -> np.ndarray:
    """Chi-square p-value of a uniform rank, for each quantity.

    `num_draws + 1` must be a multiple of `num_bins`, or the bins would not be equal.
    """
    assert (num_draws + 1) % num_bins == 0
    bins = ranks * num_bins // (num_draws + 1)
    counts = np.stack([(bins == b).sum(axis=0) for b in range(num_bins)])
    return stats.chisquare(counts, axis=0).pvalue
