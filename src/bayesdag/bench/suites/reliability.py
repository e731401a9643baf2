"""What a stated probability is worth: by family of data, rows and measured misfit."""

from bayesdag.bench.judging import CURVE
from bayesdag.bench.suite import BASE_RATE, BASELINES, Size, Suite, Table
from bayesdag.bench.suites.broken_worlds import HALVES, LINEAR, METHODS

PARTS = (*HALVES, "measured")
SHOWN = ("data", "rows", "misfit")
FORECASTS = (*(name for name in BASELINES if name != "random_order"), BASE_RATE)
CURVES = {
    f"p {low:.2f}–{high:.2f}": f"curve bin{number}"
    for number, (low, high) in enumerate(zip(CURVE[:-1], CURVE[1:], strict=True))
}
SCORES = {
    "log score": "log_score .4f",
    "above 0": "log_score positive",
}
CAPTION = (
    "Cells of the suites broken_worlds and measured. In the curves each entry is the share of "
    "true edges among the pairs whose stated probability lies in the range of the column, its "
    "95 % interval (Wilson's, with the data sets as clusters), and how many of how many pairs. "
    "Families of the part `figures` were not looked at during development. Misfit is in bins of "
    "nats per row and variable, as the check of each fit measured it. Entries whose truth is not "
    "known are not scored."
)


def build(size: Size) -> Suite:
    """The suite of either size: what is collected differs."""
    del size
    return Suite(
        title="What a stated probability is worth",
        caption=CAPTION,
        parts=(),
        tables=tuple(table for part in PARTS for table in _tables(part)),
        collects=("broken_worlds", "measured"),
    )


def _tables(part: str) -> list[Table]:
    curves = [
        Table(
            f"Curves by {key}, {part}",
            ("method", key),
            CURVES,
            parts=(part,),
            without=FORECASTS,
        )
        for key in SHOWN
    ]
    certain = [
        Table(
            f"Edges with p ≥ .95 by {key}, {part}",
            ("method", key),
            {"true": f"curve bin{len(CURVES) - 1}"},
            parts=(part,),
            without=(BASE_RATE, "empty"),
        )
        for key in (*SHOWN, "edges per node" if part in HALVES else "marking")
    ]
    gains = [
        Table(
            f"Log score less that of {other}, {part}",
            ("data", "method"),
            SCORES,
            "In nats per pair, data set by data set; above 0: on how many it is better.",
            parts=(part,),
            methods=(*METHODS["paper"], "random_order", BASE_RATE),
            less=other,
        )
        for other in (BASE_RATE, LINEAR, "random_order")
    ]
    return [*curves, *certain, *gains]
