"""Exact information gains of linear Gaussian models: the closed form of BGe, nothing nested."""

import jax
import numpy as np

from bayesdag.data import Dataset, Scaling
from bayesdag.graphs import iterate_dags
from bayesdag.knowledge import Knowledge
from bayesdag.methods.exact import Exact
from bayesdag.posterior import Posterior
from bayesdag.scores.bge import BGeStats


def from_the_prior(rng, num_rows: int, d: int) -> Dataset:
    """A table whose graph and functions come from the prior that `ExactGains` assumes.

    BGe without rows draws functions from their prior, whose scale is one half.
    """
    method, units = Exact(order_modular=False), Scaling(np.zeros(d), np.ones(d))
    dags = np.concatenate(list(iterate_dags(d)))
    mass = np.exp(method._log_prior(dags))
    graph = dags[rng.choice(len(dags), p=mass / mass.sum())]
    nobody, none = np.zeros(d, dtype=np.int64), np.zeros(1, dtype=np.int64)
    prior = BGeStats(nobody, none, np.zeros((1, d)), 0.5 * np.eye(d)[None], d + 2.0, 0.5)
    params = method.score.draw(jax.random.key(int(rng.integers(2**31))), prior, graph[None])
    noise = np.exp(params["noise"]["log_scale"][0]) * rng.normal(size=(num_rows, d))
    effects = np.linalg.inv(np.eye(d) - params["mechanism"]["weights"][0])
    rows = (params["mechanism"]["bias"][0] + noise) @ effects
    return Dataset(rows, tuple("abcdef"[:d]), None, units)


class ExactGains:
    """Every DAG of few variables with its probability, before and after more rows."""

    def __init__(self, data: Dataset, seed: int = 0, num_samples: int = 1000):
        self.data = data
        self.method = Exact(num_samples=num_samples, order_modular=False)
        self.constraints = Knowledge().bind(data.names)
        self.dags, self.log_prior = self.method.log_posterior_of_all_dags(data, self.constraints)
        self.posterior: Posterior = self.method(jax.random.key(seed), data, self.constraints, None)

    def answers(self, about=None) -> np.ndarray:
        """Answer of each DAG to a question about the graph or an edge."""
        if about is None:
            return np.arange(len(self.dags))
        i, j = (self.data.names.index(name) for name in about)
        return self.dags[:, i, j].astype(int)

    def log_posterior(self, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Log probability of every DAG once `rows` are known; `mask` marks cells that were set."""
        both = np.concatenate([self.data.values, rows])
        cells = np.concatenate([~self.data.observed, mask])
        data = Dataset(both, self.data.names, cells, self.data.scaling)
        return self.method.log_posterior_of_all_dags(data, self.constraints)[1]

    def entropy(self, log_posterior: np.ndarray, about=None) -> float:
        """Entropy of the answer."""
        mass = np.bincount(self.answers(about), np.exp(log_posterior))
        return float(-(mass * np.log(np.where(mass > 0, mass, 1.0))).sum())

    def expected_gain(self, node, levels, num_rows: int, num: int, rng, about=None):
        """Mean entropy reduction over `num` simulated experiments, and its standard error."""
        names, d = self.data.names, len(self.data.names)
        mask = np.zeros((num_rows, d), dtype=bool)
        values = np.zeros((num_rows, d))
        if node is not None:
            mask[:, names.index(node)] = True
            values[:, names.index(node)] = np.resize(levels, num_rows)
        before = self.entropy(self.log_prior, about)
        found = np.array(
            [
                before - self.entropy(self.log_posterior(rows, mask), about)
                for rows in self._simulated(mask[0], values, num, rng)
            ]
        )
        return found.mean(), found.std(ddof=1) / np.sqrt(num)

    def _simulated(self, mask, values, num: int, rng):
        """Rows of graphs and functions drawn from the posterior, by numpy."""
        picked = rng.choice(len(self.dags), size=num, p=np.exp(self.log_prior))
        score, graphs = self.method.score, self.dags[picked]
        params = score.draw(
            jax.random.key(int(rng.integers(2**31))), score.prepare(self.data), graphs
        )
        scaling = self.data.scaling
        forced = (values - scaling.shift) / scaling.scale
        for s, graph in enumerate(graphs):
            weights, bias = (params["mechanism"][k][s] for k in ("weights", "bias"))
            noise = rng.normal(size=values.shape) * np.exp(params["noise"]["log_scale"][s])
            rows = np.zeros(values.shape)
            for _ in range(len(graph)):  # after d rounds every node has seen its parents
                rows = np.where(mask[None, :], forced, rows @ (weights * graph) + bias + noise)
            yield scaling.shift + scaling.scale * rows
