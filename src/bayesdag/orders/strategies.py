"""Search strategies, chosen by the cost of a score.

Scores that cost little are searched from many starts, one variable at a time. Scores that train
networks begin where a surrogate ends, and are asked for in large batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.orders import search
from bayesdag.orders.batched_parent_search import BatchedParentSearch
from bayesdag.orders.batched_search import batched_search, retrained
from bayesdag.orders.local_scores import BatchedScores, FamilyScores, LocalScores
from bayesdag.orders.parent_search import ParentSearch, ParentTrees
from bayesdag.orders.prior import Components
from bayesdag.orders.search import Found
from bayesdag.types import ExpensiveScore, Recorder, Score

# Searches that start from afar, and the fraction of variables moved before each further one.
NUM_STARTS, FRACTION_MOVED = 2, 0.05
# Of a start that differs from the surrogate's result, where no search of it does.
FRACTION_DIFFERENT = 0.5
# Times that the search may change the component of the structure prior it works under.
MAX_CHANGES = 4


class Searched(NamedTuple):
    """Results of a search, and how it chose parents.

    Attributes:
        found: results, best first.
        parents: that were chosen along the orders.
        independent: results of searches from different starts, each meant to find the best.
    """

    found: list[Found]
    parents: ParentSearch
    independent: tuple[Found, ...] = ()


@runtime_checkable
class SearchStrategy(Protocol):
    """Finds orders of high score, and says what its scores can afford."""

    @property
    def scores(self) -> FamilyScores:
        """Scores that are searched."""
        ...

    @property
    def recorder(self) -> Recorder:
        """Of its results."""
        ...

    @property
    def beside_core(self) -> int:
        """Uncertain candidates that a table may have beside a core."""
        ...

    @property
    def most_candidates(self) -> int:
        """Possible parents of a node in the tables, at most."""
        ...

    @property
    def tabulates_all(self) -> bool:
        """Whether every variable may be a candidate where tables have room."""
        ...

    def find(self, rng: np.random.Generator, prior: Components, num_searches: int) -> Searched:
        """Results under the component of the prior that suits them best."""
        ...

    def revisit(self, prior: Components, known: Sequence[Found]) -> Searched | None:
        """Results along the orders of `known` ones, best first; None: a search costs little."""
        ...

    def refine(
        self, rng: np.random.Generator, parents: ParentSearch, order: Int[np.ndarray, " d"]
    ) -> Found:
        """A result from an order that chains have found."""
        ...


def prepare(score: Score | ExpensiveScore, data: Dataset, recorder: Recorder) -> Any:
    """Statistics of the rows; what an expensive score trains for them is recorded."""
    if isinstance(score, ExpensiveScore):
        return score.prepare(data, recorder)
    return score.prepare(data)


def strategy_for(
    score: Score | ExpensiveScore,
    stats: Any,
    knowledge: Constraints,
    recorder: Recorder,
    power: float = 1.0,
) -> SearchStrategy:
    """The strategy that suits the cost of a score, whose evidence is raised to a power."""
    if isinstance(score, ExpensiveScore):
        return ExpensiveSearch(BatchedScores(score, stats, knowledge, recorder, power), recorder)
    return CheapSearch(LocalScores(score, stats, knowledge, power), recorder)


@dataclass(frozen=True)
class CheapSearch:
    """Local search from afar, then from the best result with some of its variables moved.

    With many variables that finds better orders than further starts do, in less time.
    """

    scores: LocalScores
    recorder: Recorder
    beside_core: int = 7
    most_candidates: int = 14
    tabulates_all: bool = True

    def find(self, rng: np.random.Generator, prior: Components, num_searches: int) -> Searched:
        """Results of all searches."""
        component = len(prior.log_weight) // 2
        parents = ParentTrees(self.scores, prior.penalty[component])
        num_starts = min(num_searches, NUM_STARTS)
        first, *others = search.starting_orders(rng, parents, num_starts, self.recorder)
        result = self.refine(rng, parents, first)
        for _ in range(MAX_CHANGES):
            if prior.best(result.graph) == component:
                break
            component = prior.best(result.graph)
            parents = ParentTrees(self.scores, prior.penalty[component])
            result = self.refine(rng, parents, result.order)
        found = [result, *(self.refine(rng, parents, order) for order in others)]
        found.sort(key=lambda result: -result.value)
        precedes = self.scores.knowledge.precedes
        for _ in range(num_searches - len(found)):
            order = search.perturbed(rng, found[0].order, precedes, FRACTION_MOVED)
            found.insert(0, self.refine(rng, parents, order))
            # Of equal results the newest is the next to be moved, so that plateaus are crossed.
            found.sort(key=lambda result: -round(result.value, 6))
        return Searched(found, parents)

    def revisit(self, prior: Components, known: Sequence[Found]) -> None:
        """None: searching anew costs little."""
        del prior, known

    def refine(
        self, rng: np.random.Generator, parents: ParentSearch, order: Int[np.ndarray, " d"]
    ) -> Found:
        """The local optimum reached from an order."""
        return search.local_search(rng, parents, order, self.recorder)


@dataclass(frozen=True)
class ExpensiveSearch:
    """Two searches, from where the search of a surrogate ends and from elsewhere.

    One search cannot tell that it has failed, and chains around its result do not either. The
    second costs little, because families that the first has trained are not trained again.
    """

    scores: BatchedScores
    recorder: Recorder
    beside_core: int = 4
    most_candidates: int = 7
    tabulates_all: bool = False

    def find(self, rng: np.random.Generator, prior: Components, num_searches: int) -> Searched:
        """Results of the two searches."""
        rough, other = self._starts(rng, prior, num_searches)
        parents = self._parents(prior, rough)
        found = [batched_search(parents, order) for order in (rough.order, other)]
        # Training for the second may have changed scores of the first.
        return _along(parents, found)

    def revisit(self, prior: Components, known: Sequence[Found]) -> Searched:
        """The graphs along known orders, unsearched."""
        parents = self._parents(prior, known[0])
        retrained(parents, _along(parents, known).found[0].order)
        return _along(parents, known)

    def _parents(self, prior: Components, found: Found) -> BatchedParentSearch:
        """Under the component of the prior that suits a result best."""
        return BatchedParentSearch(self.scores, prior.penalty[prior.best(found.graph)])

    def _starts(
        self, rng: np.random.Generator, prior: Components, num_searches: int
    ) -> tuple[Found, Int[np.ndarray, " d"]]:
        """The surrogate's best result, and an order of its own.

        That is where the surrogate ends from a random order, if it is another graph, and
        otherwise its result with half of the variables moved.
        """
        surrogate = CheapSearch(self.scores.surrogate(), self.recorder)
        found, parents, _ = surrogate.find(rng, prior, num_searches)
        precedes = self.scores.knowledge.precedes
        order = search.causes_first(rng.permutation(len(precedes)), precedes)
        other = surrogate.refine(rng, parents, order)
        if np.array_equal(other.graph, found[0].graph):
            return found[0], search.perturbed(rng, other.order, precedes, FRACTION_DIFFERENT)
        return found[0], other.order

    def refine(
        self, rng: np.random.Generator, parents: ParentSearch, order: Int[np.ndarray, " d"]
    ) -> Found:
        """The graph along an order, after a closer look at sets without one of its parents.

        A search would cost too much.
        """
        del rng
        return retrained(parents, order)


def _along(parents: ParentSearch, found: Sequence[Found]) -> Searched:
    """The best graphs along the orders of these results."""
    again = [search.evaluate(parents, result.order) for result in found]
    best_first = sorted(again, key=lambda result: -result.value)
    return Searched(best_first, parents, tuple(again))
