"""Greedy equivalence search on bootstrap samples: the DAG bootstrap of linear Gaussian models."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int8

from bayesdag.baselines import bootstrap, ges
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.graphs import unique_graphs
from bayesdag.graphs.class_members import uniform_member
from bayesdag.knowledge import Constraints
from bayesdag.posterior import Posterior, from_draws
from bayesdag.random import fold_in, split
from bayesdag.runs.recording import recorder_of
from bayesdag.runs.trees import map_leaves
from bayesdag.scores.bge import BGe
from bayesdag.types import Duration, ExactDependence, Key, Monitor, PlainData

MIN_ROWS = 10


@dataclass(frozen=True)
class BootstrapGES:
    """Greedy equivalence search on bootstrap samples of the rows, linear Gaussian models.

    One equivalence class is estimated from each sample (BIC; forward, backward and turning
    steps until none gains), and one DAG of the class is drawn, each with the same
    probability. Functions are drawn given the graph, from all rows. Environments are taken out
    of all variables before the search; what they act on is then chosen given the graph.

    Attributes:
        num_samples: bootstrap samples, one draw each; the published comparison has 50.
        penalty: of an edge, in units of ½ log n: 1 is BIC.
        weighted: whether a graph counts by its evidence on all rows, each graph once, and not
            by how often it was found.

    References:
        Friedman, Goldszmidt, Wyner: Data analysis with Bayesian networks: a bootstrap approach.
        UAI 1999. Chickering: Optimal structure identification with greedy search. JMLR 2002.
    """

    supported_constraints = frozenset({"environments"})
    supports_interventions = False
    exact_dependence = ExactDependence.REFUSED

    num_samples: int = 50
    penalty: float = 1.0
    weighted: bool = False

    def __post_init__(self) -> None:
        if self.penalty < 0:
            raise InputError(f"penalty is {self.penalty:g}; it must be 0 or more")

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing about any regression."""
        del d
        return MIN_ROWS

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Six seconds per sample at a hundred variables, growing with their cube."""
        del num_rows  # they are looked at once
        seconds = (0.1 + 6e-6 * num_variables**3) * self.num_samples
        return Duration(seconds, ("fewer samples (num_samples)",))

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """One graph for each bootstrap sample."""
        key_rows, key_functions = split(key)

        def estimate(rng: np.random.Generator, rows: np.ndarray) -> dict[str, np.ndarray]:
            return {"graph": self._estimate(rng, data.scaled[rows], knowledge.contexts)}

        recorder, num = recorder_of(monitor), self.num_samples
        found = bootstrap.estimates(key_rows, data, knowledge, num, recorder, estimate)
        graphs = bootstrap.stacked(found, "graph")
        score = BGe()
        stats = score.prepare(data)
        parents = np.swapaxes(graphs != 0, 1, 2)
        local = [score.log_evidence(stats, j, parents[:, j]) for j in range(data.num_variables)]
        evidence = np.sum(local, axis=0)
        # One key per draw, so that a longer run begins with the draws of a shorter one.
        keys = [fold_in(key_functions, number) for number in range(num)]
        drawn = [score.draw(own, stats, one[None]) for own, one in zip(keys, graphs, strict=True)]
        params = map_leaves(lambda *leaves: np.concatenate(leaves)[None], *drawn)
        return from_draws(
            graphs[None],
            score.scm(data),
            params,
            data,
            log_joint=evidence[None],
            weights=posterior_weights(graphs, evidence)[None] if self.weighted else None,
            provenance=self._words(),
        )

    def _estimate(
        self, rng: np.random.Generator, values: Float[np.ndarray, "n d"], contexts: np.ndarray
    ) -> Int8[np.ndarray, "d d"]:
        """A DAG of the class that GES finds in these rows."""
        own, given = np.flatnonzero(~contexts), np.flatnonzero(contexts)
        # Without what environments explain, all graphs of a class fit equally well again.
        left = residuals(values[:, own], values[:, given])
        score = ges.GaussianBIC(correlations(left), len(values), self.penalty)
        graph = np.zeros((len(contexts), len(contexts)), dtype=np.int8)
        graph[np.ix_(own, own)] = uniform_member(rng, ges.search(score))
        if len(given):
            whole = ges.GaussianBIC(correlations(values), len(values), self.penalty)
            for node in own.tolist():
                graph[targeted(whole, node, graph[:, node], given), node] = 1
        return graph

    def _words(self) -> PlainData:
        how = (
            "each graph that was found counts once, by its evidence (BGe) on all rows"
            if self.weighted
            else "a graph counts by how often it was found"
        )
        return {
            "model": "linear functions with Gaussian noise",
            "prior": f"none on graphs: BIC with {self.penalty:g} times its penalty; BGe on the "
            "functions",
            "temperature": 1.0,
            "independent": True,
            "notes": [f"a bootstrap, not a Bayesian posterior: {how}; log_joint is the evidence"],
        }


def correlations(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
    """Correlations of columns; one that a sample left constant has none with the others."""
    centred = values - values.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    centred = centred / np.where(length > 0, length, np.inf)
    matrix = centred.T @ centred
    np.fill_diagonal(matrix, 1.0)
    return matrix


def residuals(
    values: Float[np.ndarray, "n d"], given: Float[np.ndarray, "n c"]
) -> Float[np.ndarray, "n d"]:
    """What a linear regression on `given` and a constant leaves of the columns."""
    design = np.column_stack([np.ones(len(values)), given])
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]


def targeted(
    score: ges.GaussianBIC, node: int, parents: Int8[np.ndarray, " d"], given: np.ndarray
) -> list[int]:
    """Contexts that act on a node with these parents: added while BIC gains by it."""
    chosen: list[int] = []
    family = sum(1 << int(parent) for parent in np.flatnonzero(parents))
    while True:
        gains = score.gains(node, family)[given]
        if gains.max() <= ges.LEAST_GAIN:
            return chosen
        chosen.append(int(given[np.argmax(gains)]))
        family |= 1 << chosen[-1]


def posterior_weights(
    graphs: Int8[np.ndarray, "s d d"], log_evidence: Float[np.ndarray, " s"]
) -> Float[np.ndarray, " s"]:
    """The evidence of each different graph, shared among the draws that found it."""
    _, which = unique_graphs(graphs)
    shared = np.exp(log_evidence - log_evidence.max()) / np.bincount(which)[which]
    return shared / shared.sum()


build = BootstrapGES
