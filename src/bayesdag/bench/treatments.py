"""Tables of a treatment that was not assigned by chance: what it does, on average and to each.

Made after the IHDP benchmark (Hill, 2011, "Bayesian nonparametric modeling for causal inference"):
747 rows, six continuous and nineteen binary covariates, one row in five treated, and two response
surfaces. Covariates are simulated, too, so that nothing has to be downloaded.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from bayesdag import fitting
from bayesdag.bench import usage
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.runners import OneByOne
from bayesdag.bench.suite import Measures, Trial
from bayesdag.posterior import Posterior
from bayesdag.posterior.effect_result import Counterfactual
from bayesdag.types import Method

SURFACES = ("linear", "nonlinear")
TREATMENT, OUTCOME = "treatment", "outcome"
EFFECT = 4.0  # of the linear surface
NUM_INDIVIDUALS = 100  # rows of a table whose own effects are judged
_STREAM = 1911  # beside the seed


class TreatmentTable(NamedTuple):
    """Rows, and the effect of the treatment on each of them."""

    table: pd.DataFrame
    effects: Float[np.ndarray, " n"]

    @property
    def average_effect(self) -> float:
        """Mean over the rows."""
        return float(self.effects.mean())

    @property
    def some(self) -> np.ndarray:
        """Numbers of the rows whose own effects are judged, evenly spread."""
        num = min(NUM_INDIVIDUALS, len(self.table))
        return np.linspace(0, len(self.table) - 1, num).astype(int)

    @property
    def tiers(self) -> list[list[str]]:
        """What every reader of the table knows: covariates, then treatment, then outcome."""
        covariates = [name for name in self.table if name not in (TREATMENT, OUTCOME)]
        return [covariates, [TREATMENT], [OUTCOME]]


@dataclass(frozen=True)
class Treatments:
    """Random tables with confounded treatments.

    Attributes:
        surface: "linear" (the same effect for all) or "nonlinear" (another for each).
        num_continuous: covariates that are continuous.
        num_binary: covariates that are binary.
        num_rows: of the table.
    """

    surface: str = "linear"
    num_continuous: int = 6
    num_binary: int = 19
    num_rows: int = 747

    def __call__(self, seed: int) -> TreatmentTable:
        """The table of this seed."""
        rng = np.random.default_rng([_STREAM, SURFACES.index(self.surface), seed])
        x = self._covariates(rng)
        treated = rng.random(self.num_rows) < self._propensity(rng, x)
        means = self._responses(rng, x)
        noise = rng.standard_normal(self.num_rows)
        names = [f"x{j}" for j in range(self.num_continuous)]
        names += [f"b{j}" for j in range(self.num_binary)]
        table = pd.DataFrame(x, columns=names)
        table[TREATMENT] = treated.astype(int)
        table[OUTCOME] = np.where(treated, means[1], means[0]) + noise
        return TreatmentTable(table, means[1] - means[0])

    def _covariates(self, rng: np.random.Generator) -> Float[np.ndarray, "n k"]:
        continuous = rng.standard_normal((self.num_rows, self.num_continuous))
        share = rng.uniform(0.2, 0.8, self.num_binary)
        return np.hstack([continuous, rng.random((self.num_rows, self.num_binary)) < share])

    def _propensity(self, rng: np.random.Generator, x: np.ndarray) -> Float[np.ndarray, " n"]:
        """About one in five is treated; who is depends on a third of the covariates."""
        weights = rng.uniform(0.4, 1.0, x.shape[1]) * rng.choice([-1, 1], x.shape[1])
        weights *= rng.random(x.shape[1]) < 1 / 3
        score = (x - x.mean(axis=0)) @ weights
        return 1 / (1 + np.exp(1.5 - score))

    def _responses(self, rng: np.random.Generator, x: np.ndarray) -> Float[np.ndarray, "2 n"]:
        """Mean outcomes without and with the treatment: Hill's surfaces A and B."""
        if self.surface == "linear":
            weights = rng.choice([0, 1, 2, 3, 4], x.shape[1], p=[0.5, 0.2, 0.15, 0.1, 0.05])
            return np.stack([x @ weights, x @ weights + EFFECT])
        weights = rng.choice([0, 0.1, 0.2, 0.3, 0.4], x.shape[1], p=[0.6, 0.1, 0.1, 0.1, 0.1])
        without, treated = np.exp((x + 0.5) @ weights), x @ weights
        return np.stack([without, treated - treated.mean() + without.mean() + EFFECT])


@dataclass(frozen=True)
class PosteriorEffect(OneByOne):
    """Effects as a method states them, told nothing but what precedes what.

    Attributes:
        method: a method, or the name of one.
        as_numbers: binary columns are taken for measurements, so that a linear Gaussian score has
            a model for them.
    """

    method: str | Method = "auto"
    as_numbers: bool = False

    @property
    def accelerated(self) -> bool:
        """Whether the method gains by an accelerator."""
        return FitRunner(self.method).accelerated

    def measure_one(self, trial: Trial) -> Measures:
        """Errors of the mean and of single rows, and whether the intervals hold the truth."""
        source = trial.dataset(trial.seed)
        wall, cpu = time.perf_counter(), usage.cpu_seconds()
        posterior = fitting.fit(
            source.table,
            self.method,
            knowledge={"tiers": source.tiers},
            kinds=dict.fromkeys(source.table, "continuous") if self.as_numbers else None,
            assumed_roots=False,
            seed=trial.seed,
            progress=False,
        )
        stated = posterior.effect(TREATMENT, OUTCOME, values=(0, 1))
        spent = {"seconds": time.perf_counter() - wall, "cpu": usage.cpu_seconds() - cpu}
        average = judge(stated.mean, stated.hdi(), source.average_effect)
        return average | _individuals(posterior, source) | spent


def _individuals(posterior: Posterior, source: TreatmentTable) -> Measures:
    """What would have become of the same rows, treated and not."""
    rows = source.table.iloc[source.some]
    without, treated = (posterior.counterfactual(rows, {TREATMENT: level}) for level in (0, 1))
    outcome = treated.names.index(OUTCOME)
    gaps = (treated.draws - without.draws)[..., [outcome]]
    effects = Counterfactual(gaps, treated.weights, (OUTCOME,))
    low, high = effects.hdi()
    ends = low[OUTCOME].to_numpy(), high[OUTCOME].to_numpy()
    return judge_each(effects.mean()[OUTCOME].to_numpy(), ends, source.effects[source.some])


@dataclass(frozen=True)
class LeastSquares(OneByOne):
    """What people do: the difference of means, or a regression on all covariates.

    Attributes:
        covariates: whether they are adjusted for.
        interactions: whether the treatment acts the more, the larger a covariate is (Lin, 2013,
            "Agnostic notes on regression adjustments to experimental data").
    """

    covariates: bool = True
    interactions: bool = False

    def measure_one(self, trial: Trial) -> Measures:
        """Errors of the mean and of single rows, and whether the intervals hold the truth."""
        source = trial.dataset(trial.seed)
        wall, cpu = time.perf_counter(), usage.cpu_seconds()
        constant = np.ones((len(source.table), 1))
        treated, y = source.table[[TREATMENT]].to_numpy(float), source.table[OUTCOME].to_numpy()
        known = source.table[source.tiers[0]].to_numpy(float) - [
            *source.table[source.tiers[0]].mean()
        ]
        base = np.hstack([constant, known]) if self.covariates else constant
        acting = np.hstack([constant, known]) if self.interactions else constant
        x = np.hstack([base, treated * acting])
        found, residues = np.linalg.lstsq(x, y, rcond=None)[0], len(y) - x.shape[1]
        variance = float(((y - x @ found) ** 2).sum() / residues) * np.linalg.pinv(x.T @ x)
        own, spread = found[base.shape[1] :], variance[base.shape[1] :, base.shape[1] :]
        # The mean over the rows first, whose covariates are centred; then some of the rows.
        at = np.vstack([acting.mean(axis=0), acting[source.some]])
        effects, errors = at @ own, np.sqrt(np.einsum("ij,jk,ik->i", at, spread, at))
        half = errors * float(stats.t.ppf(0.975, residues))
        spent = {"seconds": time.perf_counter() - wall, "cpu": usage.cpu_seconds() - cpu}
        low, high = effects - half, effects + half
        average = judge(float(effects[0]), (low[0], high[0]), source.average_effect)
        each = judge_each(effects[1:], (low[1:], high[1:]), source.effects[source.some])
        return average | each | spent


def judge(estimate: float, interval: tuple[float, float], truth: float) -> Measures:
    """Error, and whether the interval holds the truth."""
    low, high = interval
    return {
        "effect": float(estimate),
        "true_effect": truth,
        "effect_error": abs(float(estimate) - truth),
        "effect_width": float(high - low),
        "effect_coverage": [1, int(low <= truth <= high)],
    }


def judge_each(
    estimates: Float[np.ndarray, " n"],
    interval: tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]],
    truth: Float[np.ndarray, " n"],
) -> Measures:
    """Root mean square error over rows (PEHE), and how many intervals hold the truth."""
    inside = (interval[0] <= truth) & (truth <= interval[1])
    return {
        "individual_error": float(np.sqrt(np.mean((estimates - truth) ** 2))),
        "individual_coverage": [len(truth), int(inside.sum())],
    }
