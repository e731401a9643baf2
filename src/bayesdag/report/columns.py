"""What is known of the columns: kind, gaps, range, and what a careful analyst would ask about."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bayesdag.posterior import Posterior

FEW_VALUES = 10
SKEWED = 2.0


class Column(NamedTuple):
    """One line of the table of columns."""

    name: str
    kind: str
    num_missing: int
    num_set: int
    mean: float
    sd: float
    low: float
    high: float
    skewness: float
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


def kind_of(facts: Mapping[str, Any]) -> str:
    """The kind of a column in a word or two: stated by the data, or by its values."""
    if facts.get("kind"):
        return str(facts["kind"])
    distinct = facts.get("num_distinct", 0)
    if distinct == 2:
        return "binary"
    return f"{distinct} values" if 0 < distinct <= FEW_VALUES else "continuous"


def _column(posterior: Posterior, name: str, facts: Mapping[str, Any]) -> Column:
    return Column(
        name=name,
        kind=kind_of(facts),
        num_missing=int(facts.get("num_missing", 0)),
        num_set=int(facts.get("num_set", 0)),
        mean=float(facts["mean"]),
        sd=float(facts["sd"]),
        low=float(facts["min"]),
        high=float(facts["max"]),
        skewness=float(facts.get("skewness", 0.0)),
        fit=fit_of(posterior, name),
        warnings=_warnings(facts, posterior.summary["num_rows"]),
    )


def _warnings(facts: Mapping[str, Any], num_rows: int) -> list[str]:
    said = []
    skewness, distinct = facts.get("skewness", 0.0), facts.get("num_distinct", 0)
    if abs(skewness) > SKEWED:
        said.append(f"very skewed ({skewness:+.1f}): consider a logarithm")
    if 2 <= distinct <= FEW_VALUES and not facts.get("kind"):
        said.append(f"only {distinct} different values, treated as a number")
    if facts.get("num_missing", 0):
        said.append(f"{100 * facts['num_missing'] / num_rows:.0f} % missing")
    if facts.get("r_squared", 0.0) > 0.99:
        said.append("nearly determined by the other columns")
    return said
