"""Linear Gaussian tables of four variables whose graph and functions come from BGe's own prior."""

from typing import NamedTuple

import jax
import numpy as np

from bayesdag import graphs, random
from bayesdag.data import Dataset, Scaling
from bayesdag.methods.exact import Exact
from bayesdag.scores.bge import BGe, BGeStats

D = 4
NAMES = ("a", "b", "c", "d")
UNITS = Scaling(np.zeros(D), np.ones(D))  # the prior's own: scaling by the data would break it
PRIOR = BGe(alpha_mu=1.0, alpha_w=D + 2.0)


class Drawn(NamedTuple):
    """A table and the truth behind it: the graph, and the effect of each variable on each."""

    data: Dataset
    graph: np.ndarray
    effects: np.ndarray


def graph_prior(exact: Exact) -> tuple[np.ndarray, np.ndarray]:
    """All DAGs and their prior probability, each counted once for every order it has."""
    dags = graphs.all_dags(D)
    log_weights, penalty = exact.prior.components(D, order_modular=True)
    local = penalty[:, dags.sum(axis=1)].sum(axis=2)  # (component, dag)
    orders = np.array([graphs.num_linear_extensions(dag) for dag in dags])
    mass = np.exp(log_weights) @ np.exp(local) * orders
    return dags, mass / mass.sum()


def simulate(key, exact: Exact, dags, mass, num_rows: int) -> Drawn:
    """BGe without rows draws functions from their prior, whose scale is one half here."""
    key_graph, key_functions, key_rows = jax.random.split(key, 3)
    graph = dags[random.generator(key_graph).choice(len(dags), p=mass)]
    none = np.zeros(1, dtype=np.int64)
    prior = BGeStats(
        np.zeros(D, dtype=np.int64), none, np.zeros((1, D)), 0.5 * np.eye(D)[None], D + 2.0, 0.5
    )
    params = exact.score.draw(key_functions, prior, graph[None])
    effects = np.linalg.inv(np.eye(D) - params["mechanism"]["weights"][0])
    noise = np.exp(params["noise"]["log_scale"][0])
    rows = random.generator(key_rows).standard_normal((num_rows, D))
    values = (params["mechanism"]["bias"][0] + noise * rows) @ effects
    return Drawn(Dataset(values, NAMES, None, UNITS), graph, effects)
