"""Graphs and functions by linear regression, given an order or a graph.

Shared by the baselines, which differ only in where the order comes from.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.graphs import ancestors
from bayesdag.knowledge import Constraints
from bayesdag.orders import regression
from bayesdag.posterior import Posterior, from_draws
from bayesdag.random import generator, split
from bayesdag.runs.trees import map_leaves
from bayesdag.scores._sufficient_statistics import rows_of
from bayesdag.scores.bge import BGe
from bayesdag.types import ExactDependence, Key, Monitor

SUPPORTED_CONSTRAINTS = frozenset({"required", "forbidden", "environments"})
MIN_ROWS = 10


@dataclass(frozen=True)
class Sorted(ABC):
    """One order, by something that each column shows; parents by linear regression with BIC.

    Attributes:
        num_samples: draws of the functions; they share one graph.
    """

    supported_constraints = SUPPORTED_CONSTRAINTS
    supports_interventions = True
    exact_dependence = ExactDependence.IGNORED
    NOTE: ClassVar[str]

    num_samples: int = 100

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing about any regression."""
        del d
        return MIN_ROWS

    @abstractmethod
    def shown(self, data: Dataset) -> Float[np.ndarray, " d"]:
        """Values by which the columns are sorted, ascending."""

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """One graph, with `num_samples` draws of its functions."""
        del monitor  # done in seconds
        check_num_samples(self.num_samples)
        key_ties, key_functions = split(key)
        priority = ascending(self.shown(data), generator(key_ties))
        order = constrained_order(priority, precedence(knowledge))
        return posterior_of_orders(
            key_functions, data, knowledge, order[None], self.num_samples, self.NOTE
        )


def posterior_of_orders(
    key: Key,
    data: Dataset,
    knowledge: Constraints,
    orders: Int[np.ndarray, "k d"],
    num_samples: int,
    note: str,
) -> Posterior:
    """Draws of linear functions on the graphs that stepwise BIC finds in `orders`."""
    rows = rows_of(data.scaled, data.observed)
    found = [regression.graph_of_order(rows, order, knowledge) for order in orders]
    note = f"{note}; parents by stepwise BIC among earlier variables"
    return posterior_of_graphs(key, data, np.stack(found), num_samples, note)


def posterior_of_graphs(
    key: Key, data: Dataset, graphs: Int8[np.ndarray, "k d d"], num_samples: int, note: str
) -> Posterior:
    """Draws of linear functions on `graphs`, which take turns until there are enough."""
    score = BGe()
    stats = score.prepare(data)
    parents = np.swapaxes(graphs != 0, 1, 2)
    evidence = [score.log_evidence(stats, j, parents[:, j]) for j in range(data.num_variables)]
    turn = np.arange(num_samples) % len(graphs)
    params = score.draw(key, stats, graphs[turn])
    return from_draws(
        graphs[turn][None],
        score.scm(data),
        map_leaves(lambda leaf: leaf[None], params),
        data,
        log_joint=np.sum(evidence, axis=0)[turn][None],
        provenance={
            "model": "linear functions with Gaussian noise",
            "prior": "none on graphs, they are given; BGe on the functions",
            "temperature": 1.0,
            "independent": True,
            "notes": [f"baseline: {note}"],
        },
    )


def constrained_order(
    priority: Float[np.ndarray, " d"], before: Bool[np.ndarray, "d d"]
) -> Int[np.ndarray, " d"]:
    """Nodes by ascending priority, as far as `precedence` lets them.

    The next node is always the one of lowest priority among those with nothing left that
    must come before them.
    """
    order, left = [], np.ones(len(priority), dtype=bool)
    for _ in priority:
        free = left & ~before[left].any(axis=0)
        node = int(np.argmin(np.where(free, priority, np.inf)))
        order.append(node)
        left[node] = False
    return np.array(order, dtype=np.int64)


def precedence(knowledge: Constraints) -> Bool[np.ndarray, "d d"]:
    """`before[i, j]` is True when i comes before j in every order worth having.

    Causes come before effects along required edges; and i before j when allowed edges
    lead from i to j but not back, as from an earlier tier to a later one, or from a context to
    a variable: the opposite order could only lose edges. Both follow allowed edges forwards, so
    they cannot clash.
    """
    reach = ancestors(~knowledge.forbidden)
    return ancestors(knowledge.precedes) | (reach & ~reach.T)


def ascending(values: Float[np.ndarray, " d"], rng: np.random.Generator) -> Float[np.ndarray, " d"]:
    """Rank of each value; equal ones, to nine digits, in random order.

    Columns in alphabetical or in causal order must not decide a tie.
    """
    with np.errstate(divide="ignore"):  # log 0 = -inf ranks first, as it should
        rounded = np.round(np.log(values), 9)
    order = np.lexsort((rng.random(len(values)), rounded))
    return np.argsort(order).astype(float)


def check_num_samples(num_samples: int) -> None:
    """Raises InputError unless there is something to draw."""
    if num_samples < 1:
        raise InputError(f"num_samples is {num_samples}; it must be 1 or more")
