"""Answers about interventions: draws, and what they say about size, sign and uncertainty."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.posterior import estimates
from bayesdag.posterior.libraries import DataFrame, data_frame
from bayesdag.posterior.notebook import NotebookView
from bayesdag.types import PlainData, Weights

LEAST_FREEDOM = 1e-12  # of a variance: what is below is one draw with all the weight
FEWEST_REPLICATED = 0.2


def value_in_words(value: float | str, digits: int = 6) -> str:
    """A number with so many digits, or the label of a level.

    >>> value_in_words(0.1234567), value_in_words("yes")
    ('0.123457', 'yes')
    """
    return value if isinstance(value, str) else f"{value:.{digits}g}"


class VarianceSplit(NamedTuple):
    """Variance of an effect, split by its origin.

    Var(effect) = Var(E[effect | structure]) + E[Var(effect | structure)].

    Attributes:
        structural: the first term, which graph; NaN where it cannot be estimated.
        parametric: the second term, which function; NaN where it cannot be estimated.
        replicated: fraction of the draws with a path whose structure was drawn repeatedly.
            Only these separate the terms, and the others are assumed to be like them;
            below a fifth nothing is claimed.
    """

    structural: float
    parametric: float
    replicated: float

    @property
    def structural_fraction(self) -> float:
        """Structural part of the total, between 0 and 1; NaN for a constant effect."""
        total = self.structural + self.parametric
        return self.structural / total if total > 0 else float("nan")


@dataclass(frozen=True)
class Effect(NotebookView):
    """Posterior of E[outcome | do(cause = high)] - E[outcome | do(cause = low)].

    Attributes:
        cause: name of the variable that is set.
        outcome: name of the variable that is looked at.
        values: the two values (low, high) of the cause, in original units; levels by their labels.
        given: observed values of the units that the effect is about; empty: all units.
        draws: one effect per draw, in units of the outcome.
        weights: weight of every draw.
        structure: number of the part of the graph that carries the effect; -1: no path.
        quantity: what changes, in words; the mean of the outcome unless something else is said.
    """

    cause: str
    outcome: str
    values: tuple[float | str, float | str]
    given: dict[str, float | str]
    draws: Float[np.ndarray, "chain draw"]
    weights: Weights
    structure: Int[np.ndarray, "chain draw"]
    quantity: str = ""

    def __repr__(self) -> str:
        (low, high), (start, end) = self.hdi(), map(value_in_words, self.values)
        return (
            f"Effect of {self.cause} from {start} to {end} on {self.outcome}: "
            f"mean {self.mean:.3g}, 95% HDI {low:.3g} to {high:.3g}, "
            f"P(> 0) {self.prob_positive:.3f}, P(no path) {self.prob_no_path:.3f}"
        )

    @property
    def mean(self) -> float:
        """Posterior mean."""
        return float(estimates.mean(self.draws, self.weights))

    @property
    def sd(self) -> float:
        """Posterior standard deviation."""
        return float(np.sqrt(estimates.mean((self.draws - self.mean) ** 2, self.weights)))

    @property
    def error(self) -> float:
        """Monte-Carlo standard error of the mean."""
        return float(estimates.mean_error(self.draws, self.weights))

    def hdi(self, prob: float = 0.95) -> tuple[float, float]:
        """Highest-density interval: the shortest that holds `prob` of the posterior."""
        return estimates.highest_density_interval(self.draws, self.weights, prob)

    @property
    def prob_positive(self) -> float:
        """P(effect > 0)."""
        return self._mass(self.draws > 0)

    @property
    def prob_negative(self) -> float:
        """P(effect < 0)."""
        return self._mass(self.draws < 0)

    @property
    def prob_no_path(self) -> float:
        """P(no directed path leads from cause to outcome): no effect, whatever the values."""
        return self._mass(self.structure < 0)

    @property
    def sign_flips(self) -> float:
        """Probability of a graph whose mean effect has the opposite sign.

        Given that there is a path, the probability of a graph whose own mean effect has the
        sign opposite to that of all of them together. A structure drawn once has the sign of
        its one draw.
        """
        path = self.structure >= 0
        if not self._mass(path) > 0:
            return 0.0
        mass, means = self._structures()
        overall = np.sign((mass * means).sum())
        return min(float(mass[means * overall < 0].sum() / mass.sum()), 1.0)

    @property
    def variance(self) -> VarianceSplit:
        """The variance split into what the graph and what the functions leave open.

        A one-way analysis of variance over the structures that carry the effect. Each
        draw has one set of functions, so the spread within a structure is measured on
        structures drawn repeatedly, without bias, and taken to be the same on average in
        those drawn once. Without a path the effect is 0 and has no spread. The structural
        part is the rest of the total, never below 0.
        """
        total = self._unbiased(self.draws, self.weights)
        path = self.structure >= 0
        prob_path = self._mass(path)
        if not prob_path > 0:
            return VarianceSplit(0.0, 0.0, 1.0)
        within, mass = self._within()
        replicated = float(mass.sum()) / prob_path
        if replicated < FEWEST_REPLICATED:
            return VarianceSplit(float("nan"), float("nan"), replicated)
        parametric = min(prob_path * float(np.average(within, weights=mass)), total)
        return VarianceSplit(total - parametric, parametric, replicated)

    def summary(self, prob: float = 0.95) -> PlainData:
        """Everything above as plain data; what cannot be estimated is None."""
        low, high = self.hdi(prob)
        split = self.variance
        return {
            "cause": self.cause,
            "outcome": self.outcome,
            "values": list(self.values),
            "given": dict(self.given),
            "mean": self.mean,
            "error": self.error,
            "sd": self.sd,
            "hdi_prob": prob,
            "hdi_low": low,
            "hdi_high": high,
            "prob_positive": self.prob_positive,
            "prob_negative": self.prob_negative,
            "prob_no_path": self.prob_no_path,
            "sign_flips": self.sign_flips,
            "structural_variance": None if np.isnan(split.structural) else split.structural,
            "parametric_variance": None if np.isnan(split.parametric) else split.parametric,
            "replicated": split.replicated,
        }

    def table(self, prob: float = 0.95) -> DataFrame:
        """The summary in words and numbers, one row per quantity."""
        facts = self.summary(prob)
        low, high = map(value_in_words, self.values)
        rows = {
            f"change of {self.quantity or f'the mean of {self.outcome}'}": facts["mean"],
            "Monte-Carlo error of the mean": facts["error"],
            "standard deviation": facts["sd"],
            f"{100 * prob:g}% HDI, low": facts["hdi_low"],
            f"{100 * prob:g}% HDI, high": facts["hdi_high"],
            "P(effect > 0)": facts["prob_positive"],
            "P(effect < 0)": facts["prob_negative"],
            "P(no directed path)": facts["prob_no_path"],
            "fraction of variance due to the graph": self.variance.structural_fraction,
            "P(graph with the opposite sign | path)": facts["sign_flips"],
        }
        title = f"{self.cause} from {low} to {high}"
        return data_frame({"quantity": list(rows), title: list(rows.values())})

    def plot(self, axes: Any = None) -> Any:
        """The posterior of the effect as a figure (matplotlib)."""
        from bayesdag import plot

        return plot.effect_density(
            self.draws,
            self.weights,
            interval=self.hdi(),
            no_path=self.prob_no_path,
            label=f"effect of {self.cause} on {self.outcome}",
            axes=axes,
        )

    def _mass(self, which: Bool[np.ndarray, "chain draw"]) -> float:
        return min(float(self.weights[which].sum()), 1.0)  # the sum may exceed 1 by rounding

    def _structures(self) -> tuple[np.ndarray, np.ndarray]:
        """Mass and mean effect of every structure that carries one."""
        path = (self.structure >= 0) & (self.weights > 0)
        _, index = np.unique(self.structure[path], return_inverse=True)
        weights = self.weights[path]
        mass = np.bincount(index, weights)
        return mass, np.bincount(index, weights * self.draws[path]) / mass

    def _within(self) -> tuple[np.ndarray, np.ndarray]:
        """Unbiased variance and mass of every structure with an effect, of more than one draw."""
        path = (self.structure >= 0) & (self.weights > 0)
        mass, means = self._structures()
        _, index, count = np.unique(self.structure[path], return_inverse=True, return_counts=True)
        share = self.weights[path] / mass[index]
        square = np.bincount(index, share * (self.draws[path] - means[index]) ** 2)
        freedom = 1 - np.bincount(index, share**2)
        positive = freedom > LEAST_FREEDOM
        within = np.where(positive, square / np.where(positive, freedom, 1.0), 0.0)
        return within[count > 1], mass[count > 1]

    @staticmethod
    def _unbiased(values: np.ndarray, weights: np.ndarray) -> float:
        """Weighted variance with Bessel's correction, for weights that are not counts."""
        share = weights / weights.sum()
        mean = (share * values).sum()
        freedom = 1 - (share**2).sum()
        return (
            float((share * (values - mean) ** 2).sum() / freedom)
            if freedom > LEAST_FREEDOM
            else 0.0
        )


@dataclass(frozen=True)
class Counterfactual:
    """Counterfactual values of given rows, had some variables been set, per draw.

    Levels are codes in the order of their labels. What the level or count of a single unit would
    have been rests on how its noise is modelled, which no data tell (see `effects.counterfactual`);
    means over many units do not.

    Attributes:
        draws: (chain, draw, row, variable), in original units.
        weights: (chain, draw).
        names: column names.
        not_identified: levels and counts that may follow from what was set: for single rows, other
            models with the same distributions would give other answers.
    """

    draws: Float[np.ndarray, "chain draw n d"]
    weights: Weights
    names: tuple[str, ...]
    not_identified: tuple[str, ...] = ()

    def __repr__(self) -> str:
        chains, draws, rows, _ = self.draws.shape
        means = estimates.mean(self.draws, self.weights).mean(axis=0)
        listed = ", ".join(f"{n} {m:.3g}" for n, m in list(zip(self.names, means, strict=True))[:6])
        more = ", …" if len(self.names) > 6 else ""
        limit = (
            f"; not identified for single rows, only in the mean over many: "
            f"{', '.join(self.not_identified)}"
        )
        return (
            f"Counterfactual of {rows} rows, {chains * draws} draws: means over rows "
            f"{listed}{more}{limit * bool(self.not_identified)}"
        )

    def mean(self) -> DataFrame:
        """Posterior mean of every cell."""
        return data_frame(estimates.mean(self.draws, self.weights), self.names)

    def hdi(self, prob: float = 0.95) -> tuple[DataFrame, DataFrame]:
        """Lower and upper ends of highest-density intervals that hold `prob`."""
        ends = np.empty((2, *self.draws.shape[2:]))
        for row, column in np.ndindex(*self.draws.shape[2:]):
            cell = self.draws[:, :, row, column]
            ends[:, row, column] = estimates.highest_density_interval(cell, self.weights, prob)
        low, high = (data_frame(end, self.names) for end in ends)
        return low, high
