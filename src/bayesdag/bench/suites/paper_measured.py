"""SynTReN and Sachs, as in the paper: bootstraps, restarts, and every method."""

from bayesdag.bench.columns import ACCURACY, PATIENCE, everyone
from bayesdag.bench.suite import Part, Runner, Size, Suite, Table, Trial, trials
from bayesdag.bench.suites.nonlinear import NumberedSyntren
from bayesdag.datasets.sachs import Sachs

NUM_SETS = {"quick": 1, "paper": 5}
COLUMNS = {**ACCURACY, "s": "seconds .1f"}
CAPTION = (
    "Sachs: 853 cells, 11 variables, 17 edges that experts agreed on; bootstraps of 800 cells, and "
    "restarts of each method on all cells (the paper's text has the former, the caption of its "
    "table the latter). SynTReN: 20 genes, sets 1–5 of 500 rows. Nobody is told how many edges "
    "there are, but for `published`: settings that the paper tuned to give about the true number. "
    "The empty graph has E-SHD 17 on Sachs: E-SHD alone does not tell a method that found "
    "something from one that found nothing."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    numbers = range(NUM_SETS[size])
    kinds = {
        "sachs bootstraps": ("sachs", trials(_about("Sachs, bootstraps"), _bootstrap(), numbers)),
        "sachs restarts": ("sachs", trials(_about("Sachs, restarts"), Sachs(), numbers)),
        "syntren": ("syntren", _syntren(size)),
    }
    return Suite(
        title="SynTReN and Sachs",
        caption=CAPTION,
        parts=tuple(
            Part(
                name,
                tuple(some),
                _columns(size, preset),
                PATIENCE,
                interleaved=True,
            )
            for name, (preset, some) in kinds.items()
        ),
        tables=(Table("", ("data", "method"), COLUMNS),),
    )


def _columns(size: Size, preset: str) -> dict[str, Runner]:
    """Everyone, and the published presets where there is time for them."""
    return everyone(size, preset if size == "paper" else None)


def _about(name: str) -> dict[str, str]:
    return {"data": name}


def _bootstrap() -> Sachs:
    return Sachs(num_bootstrap=800)


def _syntren(size: Size) -> list[Trial]:
    return trials(_about("SynTReN"), NumberedSyntren(), range(1, NUM_SETS[size] + 1))
