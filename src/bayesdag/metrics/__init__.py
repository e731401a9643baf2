"""Measures of a posterior over graphs, where the truth or the exact posterior is known.

Draws are `graphs` (s, d, d) with `weights` (s,) that sum to 1 (None: all the same);
probabilities are (d, d) matrices over ordered pairs, whose diagonal is never looked at.
The functions of probabilities judge any pair relation: hand them edge probabilities and the
true graph, or ancestor probabilities and its ancestors.

Entries whose truth is `unknown` are never scored; None: all are known.

No function returns NaN. Where a textbook formula divides by zero the value is the one a
constant forecast deserves, and the docstring says which.
"""

from bayesdag.metrics.arrays import Probabilities, Sample, SampleWeights, Truth, Unknown
from bayesdag.metrics.calibration import (
    BAND,
    Calibration,
    Reliability,
    calibration_error,
    clustered_interval,
    reliability,
    wilson_interval,
)
from bayesdag.metrics.distributions import (
    mmd,
    mmd_of_marginals,
    negative_log_likelihood,
    total_variation,
)
from bayesdag.metrics.draws import frequencies, unknown_ancestors, without_unknown
from bayesdag.metrics.forecasts import (
    LOG_SCORE_FLOOR,
    auprc,
    auroc,
    base_rate,
    brier,
    brier_skill,
    log_score,
    pairs,
)
from bayesdag.metrics.structure import (
    expected_cpdag_shd,
    expected_f1,
    expected_num_edges,
    expected_shd,
    f1,
    shd,
    shd_of_marginals,
)
from bayesdag.metrics.summaries import judge, summary

__all__ = [
    "BAND",
    "Calibration",
    "LOG_SCORE_FLOOR",
    "Probabilities",
    "Reliability",
    "Sample",
    "SampleWeights",
    "Truth",
    "Unknown",
    "auprc",
    "auroc",
    "base_rate",
    "brier",
    "brier_skill",
    "calibration_error",
    "clustered_interval",
    "expected_cpdag_shd",
    "expected_f1",
    "expected_num_edges",
    "expected_shd",
    "f1",
    "frequencies",
    "judge",
    "log_score",
    "mmd",
    "mmd_of_marginals",
    "negative_log_likelihood",
    "pairs",
    "reliability",
    "shd",
    "shd_of_marginals",
    "summary",
    "total_variation",
    "unknown_ancestors",
    "wilson_interval",
    "without_unknown",
]
