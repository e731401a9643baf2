"""Scores of probabilities of pairs: areas under curves, Brier and log scores."""

import numpy as np
from jaxtyping import Bool, Float, Shaped
from scipy.stats import rankdata

from bayesdag.errors import InputError
from bayesdag.metrics.arrays import Probabilities, Truth, Unknown
from bayesdag.metrics.draws import ROUNDING

LOG_SCORE_FLOOR = 1e-3  # a tenth of what 100 draws can resolve
# Probabilities that are equal on paper differ in their last bits: they must still tie.
_DECIMALS = 12


def base_rate(truth: Truth, unknown: Unknown = None) -> float:
    """Fraction of true edges among the known entries; the best constant forecast."""
    return _mean(pairs(np.zeros(truth.shape), truth, unknown)[1])


def auroc(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """Chance that a true pair has a higher probability than a false one; ties count ½.

    0.5 when all pairs are true or none is.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    num_true, num_false = int(true.sum()), int((~true).sum())
    if num_true == 0 or num_false == 0:
        return 0.5
    excess = rankdata(forecast)[true].sum() - num_true * (num_true + 1) / 2
    return float(excess / (num_true * num_false))


def auprc(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """Average precision: the precision at each threshold, weighted by the recall it adds.

    Pairs of equal probability enter together, so a constant forecast scores the fraction of
    true pairs. When none is true that fraction, 0, is the value for every forecast.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    if not true.any():
        return 0.0
    _, group = np.unique(-forecast, return_inverse=True)
    hits = np.bincount(group, weights=true)
    precision = np.cumsum(hits) / np.cumsum(np.bincount(group))
    return float(min(1.0, (precision * hits).sum() / true.sum()))


def brier(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """Mean squared difference between probability and fact; 0 without any pair (d = 1)."""
    forecast, true = pairs(probabilities, truth, unknown)
    return _mean((forecast - true) ** 2)


def brier_skill(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """1 − Brier / Brier of the fraction of true pairs: 1 perfect, 0 no better than it.

    When all pairs are true or none is, that fraction is itself perfect and nothing can beat
    it: the value is then minus the Brier score.
    """
    score = brier(probabilities, truth, unknown)
    fraction = _mean(pairs(probabilities, truth, unknown)[1])
    reference = fraction * (1.0 - fraction)
    return 1.0 - score / reference if reference > 0 else -score


def log_score(
    probabilities: Probabilities,
    truth: Truth,
    unknown: Unknown = None,
    floor: float = LOG_SCORE_FLOOR,
) -> float:
    """Mean log probability given to the facts, in nats; 0 is perfect (and d = 1).

    Probabilities are first clipped to [floor, 1 − floor]: a finite sample cannot justify
    a zero, and one such zero would make every other pair irrelevant.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    clipped = np.clip(forecast, floor, 1.0 - floor)
    return _mean(np.where(true, np.log(clipped), np.log1p(-clipped)))


def pairs(
    probabilities: Probabilities, truth: Truth, unknown: Unknown = None
) -> tuple[Float[np.ndarray, " pairs"], Bool[np.ndarray, " pairs"]]:
    """Forecast and fact of every ordered pair that may be scored."""
    scored = ~np.eye(len(truth), dtype=bool)
    scored = scored if unknown is None else scored & ~unknown
    forecast = np.round(probabilities[scored], _DECIMALS)
    # Exact marginals may miss 0 and 1 by rounding. Written so that NaN is bad, too.
    bad = ~((forecast >= -ROUNDING) & (forecast <= 1 + ROUNDING))
    if bad.any():
        raise InputError(
            f"{int(bad.sum())} of {bad.size} probabilities are not between 0 and 1, the first "
            f"is {forecast[bad][0]}; hand in probabilities, not log odds or counts"
        )
    return np.clip(forecast, 0.0, 1.0), truth.astype(bool)[scored]


def _mean(values: Shaped[np.ndarray, " m"]) -> float:
    return float(values.mean()) if values.size else 0.0
