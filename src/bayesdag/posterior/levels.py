"""Values to which a column is usually set, and the range in which it was seen.

Both come from the summary of the data that a posterior keeps.
"""

import warnings
from collections.abc import Iterable, Mapping

from bayesdag.errors import BayesdagWarning
from bayesdag.types import Facts

Columns = Mapping[str, Facts]
ROUNDING = 1e-9  # of the range


def usual_levels(columns: Columns) -> dict[str, tuple[float, float]]:
    """One standard deviation below and above the mean; the two values of a binary column.

    Of a column of levels the first and the last one; of a count whole numbers.

    >>> usual_levels({"dose": {"mean": 5.0, "sd": 2.0, "num_distinct": 40}})
    {'dose': (3.0, 7.0)}
    """
    return {name: _levels(facts) for name, facts in columns.items()}


def _levels(facts: Facts) -> tuple[float, float]:
    if facts.get("num_distinct") == 2:
        return facts["min"], facts["max"]
    if facts.get("levels"):
        return 0.0, len(facts["levels"]) - 1.0
    if facts.get("kind") == "count":
        low, high = max(facts["mean"] - facts["sd"], 0.0), facts["mean"] + facts["sd"]
        return float(round(low)), float(max(round(high), round(low) + 1))
    return facts["mean"] - facts["sd"], facts["mean"] + facts["sd"]


def warn_outside_range(columns: Columns, assignments: Iterable[tuple[str, float | int]]) -> None:
    """Warns of values that lie outside the range in which their column was seen."""
    for name, value in assignments:
        low, high = columns[name]["min"], columns[name]["max"]
        slack = ROUNDING * (high - low)
        if not low - slack <= value <= high + slack:
            warnings.warn(
                f"{name} = {value:g} lies outside the range that was seen ({low:g} to {high:g}): "
                "the answer extrapolates the fitted functions",
                BayesdagWarning,
                stacklevel=4,
            )
