"""Speed of what users wait for: start-up, fits, files, questions."""

from typing import Any

from bayesdag.bench.fits import FitRunner
from bayesdag.bench.runners import Call, Command
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.collapsed import Collapsed
from bayesdag.types import PlainData

SEED = 900
STARTS = {
    "import bayesdag and everything fit needs": Command(("-c", "import bayesdag.fitting")),
    "bayesdag --help": Command(("-m", "bayesdag", "--help")),
}
COLUMNS = {
    "wall s": "seconds .2f",
    "CPU s": "cpu .2f",
    "MB on disk": "megabytes .2f",
    "path probability": "path_probability .3f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    quick = size == "quick"
    few, many, draws = (5, 8, 20) if quick else (50, 100, 250)
    collapsed = Collapsed.PRESETS["quick"] if quick else Collapsed()
    fits: dict[str, tuple[Any, Synthetic]] = {
        "exact, 5 variables, 500 rows": (FitRunner("exact"), _linear(5, 500)),
    }
    if not quick:
        fits |= {
            "exact, 12 variables, 500 rows": (FitRunner("exact"), _linear(12, 500)),
            "collapsed, 20 variables, 1000 rows": (FitRunner(collapsed), _linear(20, 1000)),
        }
    return Suite(
        title="Speed",
        caption="Wall and CPU seconds, compilation and child processes included.",
        parts=(
            Part("start", (Trial({}, SEED, None),), STARTS),
            *(Part("fit", (Trial({}, SEED, d),), {n: r}, fresh=True) for n, (r, d) in fits.items()),
            Part("question", (Trial({}, SEED, None),), _questions(few, many, draws), fresh=True),
        ),
        tables=(Table("What users wait for", ("method",), COLUMNS),),
    )


def _linear(d: int, num_rows: int) -> Synthetic:
    return Synthetic(
        num_variables=d,
        edges_per_node=1,
        mechanism="signed_linear",
        num_train=num_rows,
        num_test=0,
    )


def _questions(few: int, many: int, num_draws: int) -> dict[str, Call]:
    """Four chains of `num_draws` draws that differ in a few edges."""
    size: PlainData = {"d": many, "num_draws": num_draws}
    found = {
        f"{question}, {many} variables": Call("questions:ask_file", size | {"question": question})
        for question in ("save", "load", "show")
    }
    for mechanism in ("linear", "neural"):
        given = {"d": few, "num_draws": num_draws, "mechanism": mechanism}
        found[f"effect, {mechanism}, {few} variables"] = Call("questions:ask_effect", given)
    size = {"d": many, "num_draws": 4 * num_draws}
    found[f"all metrics, {many} variables"] = Call("questions:summarise", size)
    return found
