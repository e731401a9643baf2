"""Does the model fit the rows it was fitted to, or should its answers not be trusted?

For draws from the posterior, what each leaves unexplained of the data is compared with noise
simulated from that same draw. Residuals must have the stated location, spread, skewness and
tails, and must not depend on any variable that is not a descendant. Where they do not, the
functions are of the wrong kind, an edge is missing or reversed, or a cause is hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from bayesdag import graphs as graph_facts
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.posterior import simulation as many
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import generator
from bayesdag.types import Key

if TYPE_CHECKING:
    import pandas

NUM_DRAWS = 200
NUM_BINS = 8
MOST_ROWS = 1000
MOST_NUMBERS = 20_000_000  # residuals in memory
SURPRISING = 0.01
# How far residuals must be off to matter, besides being improbable: with many rows
# everything is improbable.
MATTERS = {"location": 0.2, "spread": 0.25, "skewness": 0.5, "tails": 1.0, "dependence": 0.15}
WORDS = {
    "location": "have a mean of {found:.2f} standard deviations instead of {expected:.2f}",
    "spread": "have {found:.2f} times the stated standard deviation",
    "skewness": "have skewness {found:.2f} where the model expects {expected:.2f}",
    "tails": "have excess kurtosis {found:.1f} where the model expects {expected:.1f}",
}
REMEDIES = {
    "location": "the function is of the wrong kind",
    "spread": "the noise is of the wrong kind",
    "skewness": "the noise is not Gaussian: transform the column or use another noise model",
    "tails": "the noise is not Gaussian: look for outliers or use another noise model",
}

Stack = Float[np.ndarray, "s n d"]


@dataclass(frozen=True)
class Check:
    """Predictive checks, one value a variable.

    Attributes:
        names: column names.
        found: statistic of the residuals, averaged over draws.
        expected: the same of simulated noise.
        p_value: two-sided probability of a statistic at least as far off.
        suspect: the variable on which residuals depend most.
        is_parent: probability that the suspect is a direct cause.
    """

    names: tuple[str, ...]
    found: dict[str, Float[np.ndarray, " d"]]
    expected: dict[str, Float[np.ndarray, " d"]]
    p_value: dict[str, Float[np.ndarray, " d"]]
    suspect: tuple[str, ...]
    is_parent: Float[np.ndarray, " d"]

    @property
    def warnings(self) -> list[str]:
        """What should not be trusted, in words; empty when the model fits."""
        return [
            self._message(statistic, j)
            for j in range(len(self.names))
            for statistic in MATTERS
            if self._is_off(statistic, j)
        ]

    @property
    def passed(self) -> bool:
        """Whether nothing is off."""
        return not self.warnings

    def table(self) -> "pandas.DataFrame":
        """p-value of every check, one row a variable; small ones are bad."""
        import pandas

        columns = {statistic: self.p_value[statistic] for statistic in MATTERS}
        off = [sum(self._is_off(s, j) for s in MATTERS) for j in range(len(self.names))]
        return pandas.DataFrame({"variable": self.names, **columns, "warnings": off})

    def summary(self) -> dict[str, Any]:
        """The whole as plain data."""
        return {
            "passed": self.passed,
            "warnings": self.warnings,
            "variables": self.table().to_dict("records"),
        }

    def _is_off(self, statistic: str, j: int) -> bool:
        found, expected = self.found[statistic][j], self.expected[statistic][j]
        if statistic == "dependence":  # chance adds to its square; too little is no fault
            distance = np.sqrt(max(found**2 - expected**2, 0.0))
        else:
            distance = abs(found - expected)
        return bool(self.p_value[statistic][j] < SURPRISING and distance > MATTERS[statistic])

    def _message(self, statistic: str, j: int) -> str:
        found, expected = self.found[statistic][j], self.expected[statistic][j]
        if statistic != "dependence":
            seen = WORDS[statistic].format(found=found, expected=expected)
            return f"{self.names[j]}: residuals {seen}; {REMEDIES[statistic]}. Do not trust this."
        cause = (
            "the function is of the wrong kind; try a nonlinear method"
            if self.is_parent[j] > 0.5
            else "an edge is missing or reversed, or a common cause is hidden"
        )
        return (
            f"{self.names[j]}: residuals depend on {self.suspect[j]} (correlation ratio "
            f"{found:.2f}, by chance {expected:.2f}); {cause}. Do not trust this."
        )


def check(key: Key, ensemble: Ensemble, data: Dataset) -> Check:
    """Compares residuals of `data` with simulated noise, in up to 200 draws.

    Cells set by an experimenter have no residual and are left out.
    """
    if data.names != ensemble.names:
        raise InputError(
            f"the data have the columns {', '.join(data.names)} and the posterior has "
            f"{', '.join(ensemble.names)}; pass the data that were fitted"
        )
    key_pick, key_noise = jax.random.split(key)
    rng = generator(key_pick)
    mass = ensemble.weights.reshape(-1)
    picked = rng.choice(mass.size, size=NUM_DRAWS, p=mass / mass.sum())
    rows = _some_rows(rng, data)
    x, observed = ensemble.model.scaling.apply(data.values)[rows], data.observed[rows]
    params, graphs = ensemble.take(picked)
    run = partial(many.residuals_of, model=ensemble.engine, x=np.float32(x))
    residual = many.map_chunks(run, (params, graphs), len(rows))
    noise = many.map_chunks(
        partial(_noise, model=ensemble.engine, num_rows=len(rows)),
        (jax.random.split(key_noise, NUM_DRAWS), params),
        len(rows),
    )
    return _compare(ensemble.names, x, observed, graphs, residual, noise)


def _compare(
    names: Sequence[str],
    x: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
    graphs: np.ndarray,
    residual: Stack,
    noise: Stack,
) -> Check:
    unit = _moments(noise, observed)["spread"].mean(axis=0)
    found, expected = (
        _moments(values / unit.astype(values.dtype), observed) for values in (residual, noise)
    )
    # Entry [k, j]: k does not follow from j, so the noise of j must not show in it.
    allowed = ~graph_facts.ancestors(graphs).swapaxes(1, 2) & ~np.eye(x.shape[1], dtype=bool)
    ratios = [_dependence(values, x, observed) for values in (residual, noise)]
    kept = [np.where(allowed, ratio, 0.0) for ratio in ratios]
    found["dependence"], expected["dependence"] = (ratio.max(axis=1) for ratio in kept)
    suspect = kept[0].mean(axis=0).argmax(axis=0)
    columns = np.arange(len(names))
    return Check(
        names=tuple(names),
        found={name: value.mean(axis=0) for name, value in found.items()},
        expected={name: value.mean(axis=0) for name, value in expected.items()},
        p_value={name: _two_sided(found[name], expected[name]) for name in MATTERS},
        suspect=tuple(names[int(k)] for k in suspect),
        is_parent=graphs.mean(axis=0)[suspect, columns],
    )


def _two_sided(
    found: Float[np.ndarray, "s d"], expected: Float[np.ndarray, "s d"]
) -> Float[np.ndarray, " d"]:
    """Twice the smaller tail, with one draw added so that it is never 0."""
    above = (1 + (expected >= found).sum(axis=0)) / (1 + len(found))
    under = (1 + (expected <= found).sum(axis=0)) / (1 + len(found))
    return np.minimum(1.0, 2 * np.minimum(above, under))


def _moments(
    values: Stack, observed: Bool[np.ndarray, "n d"]
) -> dict[str, Float[np.ndarray, "s d"]]:
    """Location, spread, skewness and excess kurtosis over observed cells."""
    share = observed / np.maximum(observed.sum(axis=0), 1)
    mean = np.einsum("snd,nd->sd", values, share)
    centred = values - mean[:, None, :]
    spread = np.sqrt(np.einsum("snd,nd->sd", centred**2, share))
    standard = centred / np.where(spread > 0, spread, 1.0)[:, None, :]
    return {
        "location": mean,
        "spread": spread,
        "skewness": np.einsum("snd,nd->sd", standard**3, share),
        "tails": np.einsum("snd,nd->sd", standard**4, share) - 3.0,
    }


def _dependence(
    values: Stack, x: Float[np.ndarray, "n d"], observed: Bool[np.ndarray, "n d"]
) -> Float[np.ndarray, "s d d"]:
    """Correlation ratio of the residuals of j, or of their size, in groups of equal x_k.

    Entry [s, k, j]: the root of the share of variance that lies between eight groups of
    rows. It sees curves and changing spreads that a correlation is blind to.
    """
    groups = np.concatenate([_groups(column) for column in x.T], axis=1)
    ratios = (_correlation_ratio(v, groups, observed) for v in (values, np.abs(values)))
    return np.maximum(*ratios)


def _correlation_ratio(
    values: Stack, groups: Float[np.ndarray, "n g"], observed: Bool[np.ndarray, "n d"]
) -> Float[np.ndarray, "s k d"]:
    s, n, d = values.shape
    seen = (values * observed).astype(np.float32)
    # One product for all variables, groups and draws: numpy is fast at nothing else.
    sums = groups.T @ seen.swapaxes(0, 1).reshape(n, s * d)
    sums = sums.reshape(d, NUM_BINS, s, d)
    count = (groups.T @ observed).reshape(d, NUM_BINS, 1, d)
    offset = seen.sum(axis=1) ** 2 / np.maximum(observed.sum(axis=0), 1)
    between = (sums**2 / np.maximum(count, 1)).sum(axis=1).swapaxes(0, 1) - offset[:, None, :]
    overall = ((seen**2).sum(axis=1) - offset)[:, None, :]
    return np.sqrt(np.clip(between / np.where(overall > 0, overall, 1.0), 0.0, 1.0))


def _groups(column: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n g"]:
    """Indicator of eight groups of rows with similar values; equal values stay together."""
    edges = np.quantile(column, np.arange(1, NUM_BINS) / NUM_BINS)
    place = np.searchsorted(edges, column, side="left")
    return np.eye(NUM_BINS, dtype=np.float32)[place]


def _some_rows(rng: np.random.Generator, data: Dataset) -> np.ndarray:
    most = min(MOST_ROWS, MOST_NUMBERS // (NUM_DRAWS * data.num_variables))
    if data.num_rows <= most:
        return np.arange(data.num_rows)
    return np.sort(rng.choice(data.num_rows, size=most, replace=False))


@partial(jax.jit, static_argnames=("model", "num_rows"))
def _noise(keys: Any, params: Any, *, model: Any, num_rows: int) -> Any:
    def one(draw: Any) -> Any:
        key, theta = draw
        d = len(model.scaling.shift)
        return model.noise.sample(theta["noise"], key, (num_rows, d))

    return jax.lax.map(one, (keys, params))
