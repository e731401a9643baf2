"""Posteriors made by hand: the tests of questions need no method."""

import jax
import numpy as np

from bayesdag.data import Dataset
from bayesdag.posterior import Posterior, from_draws
from bayesdag.scores.bge import BGe

STATED = {"model": "linear Gaussian", "prior": "uniform", "temperature": 1.0}


def random_dags(rng: np.random.Generator, shape: tuple[int, ...], d: int, p: float = 0.4):
    """DAGs whose order and edges are both random."""
    upper = np.triu(rng.random((*shape, d, d)) < p, k=1)
    order = rng.permuted(np.broadcast_to(np.arange(d), (*shape, d)), axis=-1)
    graphs = np.take_along_axis(upper, order[..., :, None], axis=-2)
    return np.take_along_axis(graphs, order[..., None, :], axis=-1).astype(np.int8)


def table(rng: np.random.Generator, num_rows: int, d: int) -> Dataset:
    """Correlated columns in odd units, called a, b, c, …"""
    mixed = rng.normal(size=(num_rows, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    names = tuple("abcdefghijklmnopqrstuvwxyz"[:d]) if d <= 26 else tuple(f"v{j}" for j in range(d))
    return Dataset(mixed * 10.0 ** rng.integers(-1, 2, d) + 7 * rng.normal(size=d), names)


def linear(graphs: np.ndarray, data: Dataset, *, seed: int = 0, **more) -> Posterior:
    """The given draws of graphs with linear functions drawn from BGe."""
    score, shape = BGe(), graphs.shape[:2]
    flat = graphs.reshape(-1, *graphs.shape[2:])
    params = score.draw(jax.random.key(seed), score.prepare(data), flat)
    return from_draws(
        graphs,
        score.scm(data),
        jax.tree.map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), params),
        data,
        log_joint=np.random.default_rng(seed).normal(size=shape),
        provenance=STATED | more.pop("provenance", {}),
        **more,
    )


def random_linear(seed: int, num_chains: int = 2, num_draws: int = 30, d: int = 4, **more):
    """Random graphs, linear functions, unequal weights."""
    rng = np.random.default_rng(seed)
    graphs = random_dags(rng, (num_chains, num_draws), d)
    more.setdefault("weights", rng.random((num_chains, num_draws)))
    return linear(graphs, table(rng, 200, d), seed=seed, **more)
