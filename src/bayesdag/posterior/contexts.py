"""Context variables in questions: which they are, what they may be set to, and their rows.

A unit comes from one environment of every column of labels. To set one indicator to 1 is to take
the unit from that environment, so that the other indicators of the column are 0; to set it to
0 is to take it from the reference. Where a question leaves environments open, units
come from them as often as the rows of the data did: nothing else is known of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data import Scaling
from bayesdag.data.environments import Environment
from bayesdag.data.kinds import label_of
from bayesdag.errors import InputError, did_you_mean
from bayesdag.posterior.estimates import Estimate
from bayesdag.posterior.libraries import DataFrame
from bayesdag.types import Facts

_ACTING = ("environment", "label", "compared with")


@dataclass(frozen=True, eq=False)
class Contexts:
    """The environments of a posterior.

    Attributes:
        environments: columns of labels.
        mask: True for their indicators, which come last.
        patterns: rows of indicators that occur, 0 or 1.
        probability: how often each occurs.
    """

    environments: tuple[Environment, ...]
    mask: Bool[np.ndarray, " d"]
    patterns: Float[np.ndarray, "p k"]
    probability: Float[np.ndarray, " p"]

    def __bool__(self) -> bool:
        return bool(self.environments)

    @property
    def column(self) -> list[int]:
        """For every indicator the number of the column of labels that it belongs to."""
        return [number for number, one in enumerate(self.environments) for _ in one.others]

    def complete(
        self,
        names: Sequence[str],
        mask: Bool[np.ndarray, " d"],
        numbers: Float[np.ndarray, " d"],
    ) -> tuple[Bool[np.ndarray, " d"], Float[np.ndarray, " d"]]:
        """An assignment with the other indicators of the same columns of labels."""
        own = mask & self.mask
        wrong = np.flatnonzero(own & (numbers != 0) & (numbers != 1))
        if wrong.size:
            name = names[wrong[0]]
            raise InputError(
                f"{name!r} cannot be {numbers[wrong[0]]:g}: it is 1 for units that come from "
                "this environment and 0 for those that do not"
            )
        start, column = len(names) - int(self.mask.sum()), np.array(self.column, dtype=int)
        for number, one in enumerate(self.environments):
            among = start + np.flatnonzero(column == number)
            if numbers[among][own[among]].sum() > 1:
                raise InputError(f"a unit comes from one environment of {one.column!r}; set one")
            if own[among].any():
                mask = mask | np.isin(np.arange(len(names)), among)  # their numbers are 0
        return mask, numbers

    def rows(
        self,
        rng: np.random.Generator,
        num_rows: int,
        scaling: Scaling,
        mask: Bool[np.ndarray, " d"],
        numbers: Float[np.ndarray, " d"],
    ) -> Float[np.ndarray, "n d"]:
        """Rows in engine units that hold context variables, and 0 elsewhere.

        Assigned ones are as assigned; others come as often as they were seen.
        """
        drawn = rng.choice(len(self.patterns), size=num_rows, p=self.probability)
        values = np.zeros((num_rows, len(self.mask)))
        values[:, self.mask] = self.patterns[drawn]
        values = np.where(mask, numbers, values)
        return np.where(self.mask, scaling.apply(values), 0.0).astype(np.float32)

    def encoded(self, table: DataFrame) -> DataFrame:
        """The table with indicators in place of the labels that it holds."""
        for one in self.environments:
            if one.column not in table.columns:
                continue
            labels = [label_of(value) for value in cast(Any, table)[one.column]]
            for label in labels:
                if label not in (one.reference, *one.others):
                    hint = did_you_mean(label, [one.reference, *one.others])
                    raise InputError(
                        f"no environment of {one.column!r} is called {label!r}; {hint}"
                    )
            indicators = {
                name: [float(label == other) for label in labels]
                for name, other in zip(one.names, one.others, strict=True)
            }
            table = cast(Any, table).drop(columns=one.column).assign(**indicators)
        return table

    def targets(
        self, names: Sequence[str], edge: Estimate, path: Float[np.ndarray, "d d"]
    ) -> dict[str, np.ndarray]:
        """Every environment with every variable it may act on, the most probable first."""
        d, num = int((~self.mask).sum()), int(self.mask.sum())
        acting, target = (pairs.ravel() for pairs in np.indices((num, d)))
        probability: Float[np.ndarray, " k"] = edge.value[d + acting, target]
        order = np.argsort(-np.round(probability, 12), kind="stable")
        acting, target = acting[order], target[order]
        labelled = [(e.column, label, e.reference) for e in self.environments for label in e.others]
        said = np.array(labelled, dtype=object).reshape(num, 3)[acting]
        found = {name: said[:, place] for place, name in enumerate(_ACTING)}
        found["target"] = np.asarray(names, dtype=object)[target]
        at = d + acting, target
        found |= {"probability": probability[order], "at all": path[at]}
        return found if edge.error is None else {**found, "error": edge.error[at]}

    def in_words(self) -> list[str]:
        """One line per column of labels."""
        return [
            f"environments: {one.column}, {1 + len(one.others)} of them, each compared with "
            f"{one.reference} as a soft intervention with unknown targets"
            for one in self.environments
        ]


def from_summary(summary: Facts, names: Sequence[str]) -> Contexts:
    """What a result keeps of its environments; refused where it does not fit together."""
    stored = summary.get("environments", [])
    found = tuple(
        Environment(str(one["column"]), str(one["reference"]), tuple(map(str, one["others"])))
        for one in stored
    )
    indicators = tuple(name for one in found for name in one.names)
    num = len(indicators)
    mask = np.arange(len(names)) >= len(names) - num
    if not found:
        return Contexts((), mask, np.zeros((1, 0)), np.ones(1))
    try:
        patterns = np.array(summary["environment_patterns"], dtype=float)
        counts = np.array(summary["environment_counts"], dtype=float)
    except ValueError as error:
        raise InputError("its environments are not rows of numbers") from error
    is_sound = (
        tuple(names[len(names) - num :]) == indicators
        and patterns.shape == (len(counts), num)
        and bool(np.isin(patterns, (0, 1)).all())
        and bool((counts > 0).all())
        and bool(np.isfinite(counts).all())
    )
    if not is_sound:
        raise InputError("its environments do not fit its columns")
    return Contexts(found, mask, patterns, counts / counts.sum())
