"""Tables with gaps: cells imputed from the model, against rows thrown away and no gaps at all."""

from collections.abc import Iterator
from typing import Any

from bayesdag.bench.columns import LINEAR, NEURAL, PATIENCE, fits, others
from bayesdag.bench.datasets import WithGaps, standardised_columns
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import FIGURES, Part, Setting, Size, Suite, Table, Trial
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.collapsed import Collapsed
from bayesdag.types import PlainData

CURVES = "collapsed, curves"
NUM_SETS = {"quick": 1, "paper": 10}
NUM_OF_OTHERS = 5  # data sets of all other columns
IMPUTED = "imputed"
METHODS: dict[Size, PlainData] = {
    "quick": {LINEAR: Collapsed.PRESETS["quick"]},
    "paper": {LINEAR: Collapsed(), CURVES: Collapsed.PRESETS["additive"], "auto": "auto"},
}
# Networks are trained where there is something for them, without and with the most gaps.
NETWORKS: PlainData = {NEURAL: Collapsed.PRESETS["neural"]}
SIZES = {"quick": (4, 150), "paper": (10, 2000)}
FRACTIONS = {"quick": (0.1,), "paper": (0.1, 0.3)}
FUNCTIONS = {"quick": ("signed_linear",), "paper": ("signed_linear", "mlp")}
COLUMNS = {
    "E-SHD": "expected_shd .2f",
    "CPDAG-SHD": "expected_cpdag_shd .2f",
    "log score": "log_score .4f",
    "true at p ≥ .95": "curve bin5",
    "calibration error": "unsure calibration",
    "CPU s": "cpu .1f",
}
CAPTION = (
    "Standardised columns, one edge per node. Gaps: cells missing anywhere, or where the first "
    "column is high (at random); that column itself is whole. Handling: imputed from the model, or "
    "rows with a gap thrown away; none: the same rows without gaps. Where fewer whole rows are "
    "left than a method needs, its cell is lost and says so."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    trials = tuple(_trials(size))
    hardest = tuple(trial for trial in trials if _is_for_networks(trial.setting))
    parts = [Part("gaps", trials, fits(METHODS[size]), PATIENCE, interleaved=True)]
    if hardest:
        parts.append(Part("networks", hardest, fits(NETWORKS), PATIENCE, interleaved=True))
    parts += _of_others(size, trials)
    rows = ("functions", "gaps", "missing", "handling", "method")
    return Suite("Tables with gaps", CAPTION, tuple(parts), (Table("", rows, COLUMNS),))


def _of_others(size: Size, trials: tuple[Trial, ...]) -> list[Part]:
    """All other columns; those of other packages want whole rows."""
    known = {*METHODS[size], *(NETWORKS if size == "paper" else {})}
    methods = others(size, known)
    with_gaps = {name: r for name, r in methods.items() if isinstance(r, FitRunner)}
    asked = (0.0, FRACTIONS[size][-1])
    some = [t for t in trials if t.seed < FIGURES + NUM_OF_OTHERS and t.setting["missing"] in asked]
    whole = tuple(trial for trial in some if trial.setting["handling"] != IMPUTED)
    imputed = tuple(trial for trial in some if trial.setting["handling"] == IMPUTED)
    return [
        Part("others, whole rows", whole, methods, PATIENCE, interleaved=True),
        Part("others, imputed", imputed, with_gaps, PATIENCE, interleaved=True),
    ]


def _is_for_networks(setting: Setting) -> bool:
    kinds = setting["functions"], setting["gaps"], setting["missing"], setting["handling"]
    return kinds in (("mlp", "none", 0.0, "none"), ("mlp", "anywhere", 0.3, IMPUTED))


def _trials(size: Size) -> Iterator[Trial]:
    d, num_rows = SIZES[size]
    for seed in range(FIGURES, FIGURES + NUM_SETS[size]):
        for functions in FUNCTIONS[size]:
            made = standardised_columns(d, num_rows, functions)
            for about, dataset in _versions(size, made):
                yield Trial({"functions": functions, **about}, seed, dataset)


def _versions(size: Size, made: Synthetic) -> Iterator[tuple[PlainData, Any]]:
    yield {"gaps": "none", "missing": 0.0, "handling": "none"}, made
    for fraction in FRACTIONS[size]:
        for gaps, at_random in (("anywhere", False), ("at random", True)):
            for handling, whole in ((IMPUTED, False), ("rows dropped", True)):
                about = {"gaps": gaps, "missing": fraction, "handling": handling}
                yield about, WithGaps(made, fraction, at_random, whole)
