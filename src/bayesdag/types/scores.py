"""Protocols of scores: a local log marginal likelihood, and what some scores can do besides."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.types.arrays import Key, Params, ParentSets, Pytree
from bayesdag.types.monitors import Recorder


@runtime_checkable
class Score(Protocol):
    """A local log marginal likelihood, and the functions behind it."""

    def prepare(self, data: Any) -> Pytree:
        """Sufficient statistics of a Dataset."""
        ...

    def log_evidence(
        self, stats: Pytree, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log p(x_node | x_parents) with the function integrated out, for m parent sets."""
        ...

    def scm(self, data: Any) -> Any:
        """The SCM whose parameters `draw` returns."""
        ...

    def draw(self, key: Key, stats: Pytree, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """One draw of the parameters for each graph; every leaf has leading dimension s."""
        ...


@runtime_checkable
class ExpensiveScore(Protocol):
    """A score that trains: it remembers, works in batches, and says which parents to try first.

    Values may change when it trains a family again, so nobody else should remember them. The
    statistics it prepares hold what it has trained.
    """

    def prepare(self, data: Any, recorder: Recorder | None = None) -> Pytree:
        """Statistics of a Dataset; what is trained is recalled from the recorder's journal."""
        ...

    def log_evidence_of_families(
        self, stats: Pytree, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Log evidence of node m with parents m: the more at once, the better."""
        ...

    def approximate_gain(
        self, stats: Pytree, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Roughly what variable j adds to the log evidence of node b with parents b."""
        ...

    def surrogate(self, stats: Pytree) -> tuple[Score, Pytree]:
        """A score of the same rows that costs little, and its statistics: where to begin."""
        ...

    def queue_retraining(
        self, stats: Pytree, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Queue all sets with one parent less than these, to be trained again."""
        ...

    def retrain_queued(self, stats: Pytree) -> set[tuple[int, int]]:
        """Train what is queued; the families whose score has changed since the last time.

        A family is a node and its parents, as the bits of a number.
        """
        ...

    def power(self, stats: Pytree) -> float:
        """To which it raises the evidence, because it is not exact."""
        ...


@runtime_checkable
class NoiseAveraged(Protocol):
    """A score whose posterior is averaged over noise models."""

    def noise_hypotheses(self) -> tuple[Any, ...]:
        """The score under each assumption, with statistics in common; all count the same."""
        ...

    def describe_noise(self) -> str:
        """Noise assumption of this score, in words."""
        ...


@runtime_checkable
class WeighsFunctions(Protocol):
    """A score that averages over classes of functions, and can say how much each counts."""

    def function_weights(
        self, stats: Pytree, graphs: Shaped[np.ndarray, "s d d"]
    ) -> dict[str, Float[np.ndarray, " d"]]:
        """By class in words: its probability for every variable, averaged over graphs."""
        ...
