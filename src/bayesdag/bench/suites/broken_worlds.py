"""Data that break the model: whether what is called certain is true."""

from collections.abc import Iterable, Iterator
from itertools import product

from bayesdag.bench.columns import ACCURACY, COST, PATIENCE, others
from bayesdag.bench.fits import with_baselines
from bayesdag.bench.runners import BaseRate
from bayesdag.bench.suite import BASE_RATE, BASELINES, Part, Runner, Size, Suite, Table, Trial
from bayesdag.datasets._worlds import DEVELOPMENT, FIGURES
from bayesdag.datasets.broken_world import BrokenWorld
from bayesdag.methods.collapsed import Collapsed
from bayesdag.types import PlainData

NEURAL, LINEAR = "collapsed, neural", "collapsed, BGe"
# Families of data of each part, and its first seed: figures come from families and seeds that
# were never looked at during development.
HALVES = {"development": (tuple(DEVELOPMENT), 0), "figures": (tuple(FIGURES), 1000)}
SETTING = ("data", "rows", "d", "edges per node")
NUM_SETS = {"quick": 1, "paper": 3}  # per setting
METHODS = {
    "quick": {LINEAR: Collapsed.PRESETS["quick"]},
    "paper": {NEURAL: Collapsed.PRESETS["neural"], LINEAR: Collapsed()},
}
_OTHERS = "figures others"  # everyone else: as many rows, variables and edges as here
_NUM_SIZES_OF_OTHERS = 2
_SMALL = (200, 5, 1)
_STRIDE = 7  # has no factor in common with the 18 sizes
_MANY_CELLS = 25_000
WORTH = {
    "E-SHD": "expected_shd .2f",
    "true at p ≥ .95": "curve bin5",
    "calibration error": "unsure calibration",
    "log score": "log_score .4f",
    "base rate's": "base_rate_log_score .4f",
    "misfit": "misfit .3f",
    "s": "seconds .1f",
}
CAPTION = (
    "Each family breaks one assumption (`additive` none). True at p ≥ .95: the share of true "
    "edges among those with at least that probability (95 % interval, data sets as clusters; "
    "how many of how many). Calibration error is over pairs with .05 < p < .95. The log score "
    "has its floor at probability .001; the base rate is the share of true edges, known to "
    "nobody. Misfit in nats per row and variable. Entries without a truth are not scored."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    everybody = Table(
        "Everyone, figures",
        ("data", "method"),
        {**ACCURACY, **COST},
        parts=("figures", _OTHERS),
        datasets_of=_OTHERS,
    )
    return Suite(
        title="Data that break the model",
        caption=CAPTION,
        parts=(*(_part(size, half) for half in HALVES), _of_others(size)),
        tables=(*(table for half in HALVES for table in _tables(half)), everybody),
    )


def _part(size: Size, half: str) -> Part:
    sets = tuple(_trials(size, half, sizes(size)))
    return Part(half, sets, runners(METHODS[size]), 900.0, interleaved=True)


def _of_others(size: Size) -> Part:
    """All other columns, on the first sizes of the half that is for figures."""
    methods = others(size, (*METHODS[size], *BASELINES))
    sets = _trials(size, "figures", sizes(size)[:_NUM_SIZES_OF_OTHERS])
    return Part(_OTHERS, tuple(sets), methods, PATIENCE, interleaved=True)


def _tables(half: str) -> tuple[Table, ...]:
    return (
        Table(f"By family, {half}", ("data", "method"), WORTH, parts=(half,)),
        Table(f"By size, {half}", (*SETTING[1:], "method"), WORTH, parts=(half,)),
    )


def runners(methods: PlainData, with_environment: bool = False) -> dict[str, Runner]:
    """Fits of some methods and of the baselines, and the constant forecast."""
    fits = with_baselines(methods, score_truth=False, with_environment=with_environment)
    return {**fits, BASE_RATE: BaseRate()}


def sizes(size: Size) -> list[tuple[int, int, int]]:
    """Rows, variables and edges per node; neighbours in the list differ in most of them.

    Tables of many cells, of which each takes as long as a dozen others, come last.
    """
    if size == "quick":
        return [_SMALL]
    found = list(product((1000, 200, 5000), (10, 5, 20), (1, 2)))
    mixed = [found[number * _STRIDE % len(found)] for number in range(len(found))]
    return sorted(mixed, key=lambda setting: setting[0] * setting[1] > _MANY_CELLS)


def _trials(size: Size, half: str, wanted: Iterable[tuple[int, int, int]]) -> Iterator[Trial]:
    """Families take turns, then seeds, then sizes: wherever a run stops, all have their share."""
    families, first = HALVES[half]
    for num_rows, d, edges_per_node in wanted:
        for seed in range(first, first + NUM_SETS[size]):
            for family in families:
                values = (family, num_rows, d, edges_per_node)
                setting: PlainData = dict(zip(SETTING, values, strict=True))
                yield Trial(setting, seed, BrokenWorld(family, d, edges_per_node, num_rows))
