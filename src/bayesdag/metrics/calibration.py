"""Calibration of probabilities, and intervals of fractions."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag.metrics.arrays import Probabilities, Truth, Unknown
from bayesdag.metrics.forecasts import pairs

BAND = (0.05, 0.95)  # outside it a forecast claims to know, and calibration says little


class Calibration(NamedTuple):
    """Mean gap between forecast and frequency, and how many pairs it rests on."""

    error: float
    num_pairs: int


class Reliability(NamedTuple):
    """One entry for each bin that holds a pair: what was forecast, and what was true.

    `low` and `high` are Wilson's 95 % interval for the observed fraction. It treats pairs as
    independent, which pairs of one graph are not quite.
    """

    lower: Float[np.ndarray, " bins"]
    upper: Float[np.ndarray, " bins"]
    counts: Int[np.ndarray, " bins"]
    forecast: Float[np.ndarray, " bins"]
    observed: Float[np.ndarray, " bins"]
    low: Float[np.ndarray, " bins"]
    high: Float[np.ndarray, " bins"]


def calibration_error(
    probabilities: Probabilities, truth: Truth, unknown: Unknown = None
) -> Calibration:
    """Mean |forecast − fraction of true pairs| over nine bins of pairs with .05 < p < .95.

    Each bin of width .1 counts by its number of pairs. Surer pairs are left out: over all
    of them the empty graph would look calibrated. No pair in the band: error 0, count 0.
    With few pairs the error is large by chance; read it together with the count.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    inside = (forecast > BAND[0]) & (forecast < BAND[1])
    count = int(inside.sum())
    gaps = np.bincount(
        _bins(forecast[inside], BAND[0], 0.1), weights=forecast[inside] - true[inside]
    )
    return Calibration(float(np.abs(gaps).sum() / max(count, 1)), count)


def reliability(
    probabilities: Probabilities, truth: Truth, num_bins: int = 10, unknown: Unknown = None
) -> Reliability:
    """Forecast and observed fraction in equal bins of [0, 1], with Wilson intervals.

    Bins without a pair are left out; the last bin includes 1.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    bins = np.minimum(_bins(forecast, 0.0, 1.0 / num_bins), num_bins - 1)
    counts = np.bincount(bins, minlength=num_bins)
    kept = np.flatnonzero(counts)
    counts = counts[kept]
    hits = np.bincount(bins, weights=true, minlength=num_bins)[kept]
    total = np.bincount(bins, weights=forecast, minlength=num_bins)[kept]
    low, high = wilson_interval(hits, counts)
    return Reliability(
        kept / num_bins, (kept + 1) / num_bins, counts, total / counts, hits / counts, low, high
    )


def wilson_interval(
    hits: Shaped[np.ndarray, "*shape"], counts: Shaped[np.ndarray, "*shape"], z: float = 1.959964
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Wilson's interval for a fraction; honest at 0 and 1, where the usual one has no width."""
    fraction = hits / counts
    centre = fraction + z**2 / (2 * counts)
    half = z * np.sqrt(fraction * (1 - fraction) / counts + z**2 / (4 * counts**2))
    scale = 1 + z**2 / counts
    return np.clip((centre - half) / scale, 0.0, 1.0), np.clip((centre + half) / scale, 0.0, 1.0)


def clustered_interval(
    hits: Shaped[np.ndarray, " k"], counts: Shaped[np.ndarray, " k"]
) -> tuple[float, float]:
    """Wilson's 95 % interval of a fraction that is pooled over k data sets.

    Pairs of one data set are right or wrong together, so the pairs count for fewer
    independent ones: as many as explain how much the data sets differ (the design effect of a
    ratio estimate), and never for more than there are. Where all are right, or none, nothing
    shows how they hang together, and the interval is too narrow. No pair at all: 0 to 1.
    """
    total, groups = float(counts.sum()), int(np.count_nonzero(counts))
    if not total:
        return 0.0, 1.0
    fraction = float(hits.sum()) / total
    binomial, effect = fraction * (1 - fraction) / total, 1.0
    if groups > 1 and binomial > 0:
        between = ((hits - fraction * counts) ** 2).sum() / total**2 * groups / (groups - 1)
        effect = max(1.0, float(between / binomial))
    low, high = wilson_interval(np.array([fraction * total / effect]), np.array([total / effect]))
    return float(low[0]), float(high[0])


def _bins(values: Float[np.ndarray, " m"], start: float, width: float) -> Int[np.ndarray, " m"]:
    # Rounded before the floor: .15 lies in the bin that begins at .15.
    return np.floor(np.round((values - start) / width, 9)).astype(int)
