"""Result of a check of the model against its rows, and its wording.

The rule: a misfit counts when it exceeds 0.01 nats per row by more than its standard error, and
when over all rows it adds up to more than log(k / 0.05) nats, the evidence that chance alone
would reach in at most about one of twenty tables, with k things checked in each.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bayesdag.posterior import observed_reliability, serial_dependence
from bayesdag.posterior.libraries import DataFrame, data_frame
from bayesdag.types import Facts, PlainData

FEWEST_ROWS = 20  # to judge a variable by
MATTERS = 0.01  # nats per row
FALSE_ALARMS = 0.05  # tables with a warning although the model is right

_ALIKE = "rows resemble their neighbours in the table"
NEURAL = "method 'collapsed' with preset 'neural'"


@dataclass(frozen=True)
class VariableCheck:
    """Misfit of one variable: how its residuals differ from what the model says of them.

    Attributes:
        variable: its name.
        num_rows: rows that were looked at; cells set by an experimenter have no residual.
        shape: nats per row that another noise distribution would gain.
        shape_error: its standard error.
        dependence: nats per row that the suspect would gain, if residuals might depend on it.
        dependence_error: its standard error.
        suspect: the non-descendant that says most about the residuals.
        is_parent: probability that the suspect is a direct cause.
        on_residual: whether the suspect's residuals say more than its values.
        of_spread: whether it says something of their size, rather than of their mean.
        is_context: whether the suspect is an environment.
        moments: mean, standard deviation, skewness and excess kurtosis of the residuals' normal
            scores; 0, 1, 0 and 0 when the noise is the stated one.
    """

    variable: str
    num_rows: int
    shape: float = 0.0
    shape_error: float = 0.0
    dependence: float = 0.0
    dependence_error: float = 0.0
    suspect: str | None = None
    is_parent: float = 0.0
    on_residual: bool = False
    of_spread: bool = False
    is_context: bool = False
    moments: tuple[float, ...] = (0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, repr=False)
class Check:
    """Fit of the model, variable by variable.

    Attributes:
        variables: what was found of each.
        linear: whether the functions of the model are linear.
        fixed_spread: whether the size of the noise is the same for all rows.
        gaussian: whether the noise is Gaussian.
        model: the score or method that was fitted, as `family/name`; empty where unknown.
        num_rows: rows that were fitted.
        repetition: rows that say as much as one independent row; 1 where neighbours in the
            table do not resemble one another.
    """

    variables: tuple[VariableCheck, ...]
    linear: bool
    fixed_spread: bool
    gaussian: bool
    model: str = ""
    num_rows: int = 0
    repetition: float = 1.0

    def __repr__(self) -> str:
        return f"<Check of {len(self.variables)} variables: {self.headline}>"

    @property
    def warnings(self) -> list[str]:
        """Misfits in words; empty when the model fits."""
        found = [
            f"{one.variable}: {words}." for one in self.variables for words in self._misfits(one)
        ]
        return [*found, *([self._warning_of_repetition()] if self.repeats else [])]

    @property
    def repeats(self) -> bool:
        """Whether rows resemble their neighbours in the table."""
        return self.repetition > serial_dependence.MATTERS

    @property
    def repetition_in_words(self) -> str:
        """How many rows say as much as one, where they resemble their neighbours."""
        return f"{_ALIKE}: {self.repetition:.1f} of them are worth one independent row"

    @property
    def passed(self) -> bool:
        """Whether no misfit was found."""
        return not self.warnings

    @property
    def total(self) -> float:
        """Sum of the relevant misfits of all variables, in nats per row."""
        found = [gain for one in self.variables for gain in (one.shape, one.dependence)]
        return sum(max(gain - MATTERS, 0.0) for gain in found)

    @property
    def misfit(self) -> float | None:
        """What matters of the misfits, in nats per row and checked variable; None: none checked."""
        num_checked = sum(one.num_rows >= FEWEST_ROWS for one in self.variables)
        return self.total / num_checked if num_checked else None

    @property
    def reliability(self) -> str:
        """What "95 % probable" has been worth on generated data with a misfit like this."""
        observed = observed_reliability.shipped()
        return observed.sentence(self.model, self.misfit, self.num_rows)

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        wrong = [one.variable for one in self.variables if self._misfits(one)]
        if wrong:
            few = f"; and there are fewer rows than it seems: {_ALIKE}" * self.repeats
            return (
                f"the model does not fit {', '.join(wrong)}: do not trust edges, directions and "
                f"effects that involve them{few}"
            )
        if self.repeats:
            return f"{_ALIKE}: the effective number of rows is smaller"
        few = [one.variable for one in self.variables if one.num_rows < FEWEST_ROWS]
        if len(few) == len(self.variables):
            return f"not checked: fewer than {FEWEST_ROWS} rows"
        unchecked = f" ({', '.join(few)}: too few rows to check)" if few else ""
        return f"nothing contradicts the model{unchecked}"

    def lines(self) -> list[str]:
        """The verdict, each misfit with its likely reason, and what certainty is worth then."""
        worth = [f"reliability: {self.reliability}"] if self.model else []
        return [f"fit: {self.headline}", *(f"  {words}" for words in self.warnings), *worth]

    def of(self, variable: str) -> VariableCheck:
        """What was found of one variable."""
        return next(one for one in self.variables if one.variable == variable)

    def verdict(self, variable: str) -> str:
        """A few words about one variable."""
        one = self.of(variable)
        if one.num_rows < FEWEST_ROWS:
            return f"not checked: {one.num_rows} rows"
        kinds = {
            "noise of another shape": self._counts(one, one.shape, one.shape_error),
            f"residuals depend on {one.suspect}": self._counts(
                one, one.dependence, one.dependence_error
            ),
        }
        return "; ".join(words for words, found in kinds.items() if found) or "no misfit found"

    def table(self) -> DataFrame:
        """Misfit of every variable in nats per row, with standard errors, and the verdict."""
        columns = ("variable", "shape", "shape_error", "dependence", "dependence_error")
        found = {name: [getattr(one, name) for one in self.variables] for name in columns}
        return data_frame(
            {**found, "verdict": [self.verdict(one.variable) for one in self.variables]}
        )

    def summary(self) -> PlainData:
        """The whole as plain data, from which `from_summary` makes it again."""
        return {
            "passed": self.passed,
            "verdict": self.headline,
            "warnings": self.warnings,
            "linear": self.linear,
            "fixed_spread": self.fixed_spread,
            "gaussian": self.gaussian,
            "model": self.model,
            "num_rows": self.num_rows,
            "misfit": self.misfit,
            "repetition": self.repetition,
            "reliability": self.reliability,
            "variables": [
                asdict(one) | {"moments": list(one.moments), "verdict": self.verdict(one.variable)}
                for one in self.variables
            ],
        }

    def _warning_of_repetition(self) -> str:
        remedy = "if they are in time, effects of the past are hidden causes"
        return f"{self.repetition_in_words.capitalize()}; {remedy}."

    def _counts(self, one: VariableCheck, gain: float, error: float) -> bool:
        evidence = np.log(2 * len(self.variables) / FALSE_ALARMS)
        return bool(gain - error > MATTERS and gain * one.num_rows > evidence)

    def _misfits(self, one: VariableCheck) -> list[str]:
        found: list[str] = []
        if self._counts(one, one.dependence, one.dependence_error):
            found.append(self._dependence_in_words(one))
        if self._counts(one, one.shape, one.shape_error):
            found.append(self._shape_in_words(one))
        return found

    def _dependence_in_words(self, one: VariableCheck) -> str:
        what = "the size of residuals depends" if one.of_spread else "residuals depend"
        size = f"{one.dependence:.2f} ± {one.dependence_error:.2f} nats per row"
        which = f"the residuals of {one.suspect}" if one.on_residual else one.suspect
        return f"{what} on {which} ({size}); {self._remedy_of_dependence(one)}"

    def _remedy_of_dependence(self, one: VariableCheck) -> str:
        if one.is_context:
            return self._remedy_of_environment(one)
        if one.on_residual:
            return "a common cause of both is hidden, or an edge is missing or reversed"
        if one.is_parent <= 0.5:
            return "an edge is missing or reversed, or a common cause is hidden"
        if one.of_spread and self.fixed_spread:
            return f"the noise is heteroscedastic: {NEURAL} allows for it"
        if self.linear:
            return f"the function is not linear, or the edge is reversed: try {NEURAL}"
        return "the learned function misses it: the edge may be reversed, or a cause hidden"

    def _remedy_of_environment(self, one: VariableCheck) -> str:
        """An environment has no causes: only how it acts can be in question."""
        if one.of_spread and self.fixed_spread:
            return f"the noise differs between environments: {NEURAL} allows for it"
        if one.is_parent <= 0.5:
            return "this environment acts on it, or on a hidden cause of it"
        if self.linear:
            return f"its causes act differently in this environment: try {NEURAL}"
        return "the learned function misses what is different in this environment"

    def _shape_in_words(self, one: VariableCheck) -> str:
        """Names the moment that is furthest off by its sampling error under the model."""
        mean, spread, skewness, kurtosis = one.moments
        size = f"{one.shape:.2f} ± {one.shape_error:.2f} nats per row"
        off = {
            "mean": abs(mean),
            "spread": abs(np.log(spread)) * 2**0.5,
            "shape": max(abs(skewness) / 6**0.5, abs(kurtosis) / 24**0.5),
        }
        kind = max(off, key=lambda name: off[name])
        if kind == "mean":
            return f"residuals have mean {mean:.2f} instead of 0 ({size}); {self._of_functions()}"
        if kind == "spread":
            return f"residuals have {spread:.2f} times the stated standard deviation ({size}); " + (
                "the prior holds the noise above what is left unexplained, as where a column "
                "nearly follows from others"
                if spread < 1
                else self._of_functions()
            )
        return f"residuals {_peaks_and_tails(one)} ({size}); {self._of_noise()}"

    def _of_functions(self) -> str:
        if self.linear:
            return f"the functions are not linear: try {NEURAL}"
        return "the functions are of the wrong kind, or an edge is missing or reversed"

    def _of_noise(self) -> str:
        if not self.gaussian:
            return "transform the column, or look for outliers and for mixed groups of rows"
        return (
            "transform the column, look for outliers and for mixed groups of rows, or try "
            f"{NEURAL}, whose noise may be skewed and heavy-tailed"
        )


def _peaks_and_tails(one: VariableCheck) -> str:
    _, _, skewness, kurtosis = one.moments
    words = [f"are skewed ({skewness:+.1f})"] if abs(skewness) > 0.5 else []
    if kurtosis > 1:
        words.append(f"have heavier tails (excess kurtosis {kurtosis:+.1f})")
    elif kurtosis < -0.5:
        words.append(f"are flatter or have two peaks (excess kurtosis {kurtosis:+.1f})")
    return f"{' and '.join(words) or 'have another shape'}, compared with the stated noise"


def from_summary(summary: Facts) -> Check:
    """The check that a result keeps in its provenance."""
    kept = {name: summary[name] for name in ("linear", "fixed_spread", "gaussian")}
    variables: list[PlainData] = [
        {name: value for name, value in one.items() if name != "verdict"}
        | {"moments": tuple(one["moments"])}
        for one in summary["variables"]
    ]
    model, num_rows = summary.get("model"), summary.get("num_rows")
    return Check(
        tuple(VariableCheck(**one) for one in variables),
        **kept,
        model=model if isinstance(model, str) else "",
        num_rows=num_rows if isinstance(num_rows, int) else 0,
        repetition=float(summary.get("repetition", 1.0)),
    )


def averaged(checks: Sequence[Check], num_chains: Sequence[int]) -> Check:
    """The check of runs with the same model and data, put together.

    Misfits are averages over draws, so those of all draws are weighted averages; errors stem
    from the rows, which are the same in all runs, and are averaged too.
    """
    share = np.array(num_chains) / np.sum(num_chains)
    variables: list[VariableCheck] = []
    for runs in zip(*(check.variables for check in checks), strict=True):
        worst = max(runs, key=lambda one: one.dependence)
        numbers = ("shape", "shape_error", "dependence", "dependence_error")
        mean: Any = {name: float(share @ [getattr(one, name) for one in runs]) for name in numbers}
        moments = tuple((share @ np.array([one.moments for one in runs])).tolist())
        variables.append(replace(worst, **mean, moments=moments))
    return replace(checks[0], variables=tuple(variables))
