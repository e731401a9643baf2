"""BGe's alpha_mu: which value is calibrated over random linear worlds."""

from bayesdag.bench.calibration import (
    EFFECTS,
    EXPERIMENTS,
    FLOOR,
    RAW,
    STANDARDISED,
    AlphaMuCalibration,
    LinearWorlds,
)
from bayesdag.bench.suite import HOUR, Part, Size, Suite, Table, Trial

FIRST_SEED = 0  # development: alpha_mu was chosen on these worlds
# Variables, rows, kind of data, and how many worlds.
SETTINGS = {
    "quick": ((3, 30, STANDARDISED, 4), (3, 30, EXPERIMENTS, 4), (3, 30, RAW, 4)),
    "paper": (
        *((4, num_rows, STANDARDISED, 300) for num_rows in (30, 200, 1000)),
        *((6, num_rows, STANDARDISED, 120) for num_rows in (30, 200, 1000)),
        (10, 200, STANDARDISED, 24),
        *((4, num_rows, EXPERIMENTS, 300) for num_rows in (30, 200)),
        *((4, num_rows, RAW, 150) for num_rows in (30, 200)),
    ),
}
CAPTION = (
    "Exact posteriors of random linear Gaussian worlds whose edge densities come from the prior "
    "itself: 300 of 4 variables (150 raw), 120 of 6 and 24 of 10 for each setting. The prior mean "
    "of BGe counts as alpha_mu rows and sets the prior scale of all weights. Experiments: two "
    "thirds of the rows have one variable set. Raw: columns are not standardised, and their means "
    "are three standard deviations from zero, where BGe expects them. Log scores are per pair, in "
    f"nats, with probabilities cut at {FLOOR:g}; the calibration error is the mean distance of "
    "what was said from what was true over ten bins; the shortfall is the distance from the best "
    "log score of a setting. A line counts settings, each of many worlds, as data sets."
)
OVERALL = {
    "adjacency log score": "adjacency_log_score .3f",
    "worst shortfall": "adjacency_shortfall max .3f",
    "calibration error": "adjacency_calibration_error .3f",
    "edge log score": "edge_log_score .3f",
    "worst edge shortfall": "edge_shortfall max .3f",
    "edge calibration error": "edge_calibration_error .3f",
}
BY_SETTING = {
    "adjacency log score": "adjacency_log_score .3f",
    "calibration error": "adjacency_calibration_error .3f",
    "true of those ≤ .05": "adjacency_true_if_low .3f",
    "true of those ≥ .95": "adjacency_true_if_high .3f",
    "edge log score": "edge_log_score .3f",
    "edge calibration error": "edge_calibration_error .3f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    trials = tuple(
        Trial(
            {"d": d, "rows": num_rows, "data": kind, "effects": effects},
            FIRST_SEED,
            LinearWorlds(d, num_rows, effects, kind, num_worlds),
        )
        for d, num_rows, kind, num_worlds in SETTINGS[size]
        for effects in EFFECTS
    )
    runners = {"BGe, exact": AlphaMuCalibration()}
    return Suite(
        title="alpha_mu of BGe",
        caption=CAPTION,
        parts=(Part("worlds", trials, runners, limit=HOUR),),
        tables=(
            Table("All settings", ("alpha_mu",), OVERALL),
            Table("By the kind of data", ("data", "alpha_mu"), OVERALL),
            Table("Every setting", ("d", "rows", "data", "effects", "alpha_mu"), BY_SETTING),
        ),
    )
