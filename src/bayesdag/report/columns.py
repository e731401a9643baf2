"""What is known of the columns: kind, gaps, range, and what a careful analyst would ask about."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bayesdag.posterior import Posterior

FEW_VALUES = 10
MOST_LEVELS = 8  # that are listed
SKEWED = 2.0


class Column(NamedTuple):
    """One line of the table of columns."""

    name: str
    kind: str
    reason: str
    num_missing: int
    num_set: int
    mean: float | None  # codes of levels have none
    sd: float | None
    low: float | None
    high: float | None
    skewness: float | None
    fit: str
    warnings: list[str]


def columns(posterior: Posterior) -> list[Column]:
    """The columns of the data, in their order."""
    facts = posterior.summary["columns"]
    return [_column(posterior, name, facts[name]) for name in posterior.variables]


def fit_of(posterior: Posterior, name: str) -> str:
    """Whether the model fits a column, in a few words; nothing explains an environment."""
    if name not in posterior.variables:
        return "nothing acts on an environment"
    checked = posterior.checked
    return "not checked" if checked is None else checked.verdict(name)


def assumption_of(posterior: Posterior, name: str) -> str:
    """What directions around a column rest on; nothing explains an environment."""
    if name not in posterior.variables:
        return "nothing acts on an environment"
    return posterior.assumption(name)


def kind_of(facts: Mapping[str, Any]) -> str:
    """The kind of a column in a few words, with its levels where it has some."""
    kind, levels = str(facts.get("kind", "continuous")), facts.get("levels", ())
    if not levels:
        return kind
    shown = [str(level) for level in levels[:MOST_LEVELS]]
    more = [f"{len(levels) - MOST_LEVELS} more"] if len(levels) > MOST_LEVELS else []
    return f"{kind}: {', '.join([*shown, *more])}"


def _column(posterior: Posterior, name: str, facts: Mapping[str, Any]) -> Column:
    def number(fact: str) -> float | None:
        return None if facts.get("levels") else float(facts.get(fact, 0.0))

    num_rows = posterior.summary["num_rows"]
    return Column(
        name=name,
        kind=kind_of(facts),
        reason=str(facts.get("reason", "")),
        num_missing=round(num_rows * facts.get("missing_fraction", 0.0)),
        num_set=int(facts.get("num_set", 0)),
        mean=number("mean"),
        sd=number("sd"),
        low=number("min"),
        high=number("max"),
        skewness=number("skewness"),
        fit=fit_of(posterior, name),
        warnings=_warnings(facts),
    )


def _warnings(facts: Mapping[str, Any]) -> list[str]:
    said = []
    skewness, distinct = facts.get("skewness", 0.0), facts.get("num_distinct", 0)
    measured = facts.get("kind", "continuous") == "continuous"
    if measured and abs(skewness) > SKEWED:
        said.append(f"very skewed ({skewness:+.1f}): consider a logarithm")
    if measured and 2 <= distinct <= FEW_VALUES:
        said.append(f"only {distinct} different values, treated as a number")
    if facts.get("missing_fraction", 0.0):
        said.append(f"{100 * facts['missing_fraction']:.0f} % missing, imputed")
    if measured and facts.get("r_squared", 0.0) > 0.99:
        said.append("nearly determined by the other columns")
    return said
