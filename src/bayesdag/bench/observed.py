"""The table of observed reliability that results read: counted from stored cells.

All generated data count, of both halves: no probability depends on the table, which is only read
aloud, and families that nothing was developed on say best what certainty is worth elsewhere.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from bayesdag.bench.cells import Cell
from bayesdag.bench.judging import CURVE
from bayesdag.bench.suite import BASELINES
from bayesdag.datasets._worlds import WORLDS
from bayesdag.errors import InputError
from bayesdag.metrics import clustered_interval
from bayesdag.posterior.observed_reliability import (
    ANY_ROWS,
    LIKELY,
    MISFITS,
    ROWS,
    SURE,
    EdgeCount,
    ObservedReliability,
    ReliabilityEntry,
    bin_of,
    model_of,
)
from bayesdag.types import PlainData

_MIXED = "functions"  # in the settings of data sets with columns of several kinds


def observe(cells: Iterable[Cell], command: str) -> ObservedReliability:
    """Counts by model, misfit and rows; `command` is kept with the commits of the cells."""
    groups: dict[tuple[str, int, int], list[Cell]] = {}
    counted = [cell for cell in cells if _counts(cell)]
    for cell in counted:
        misfit = bin_of(float(cell.measures["misfit"]), MISFITS)
        model = model_of(cell.stamp["settings"]["method"])
        for rows in (bin_of(cell.setting["rows"], ROWS), ANY_ROWS):
            groups.setdefault((model, misfit, rows), []).append(cell)
    if not groups:
        raise InputError(
            "there is no cell of generated data with a misfit to count; run "
            "bayesdag bench broken_worlds first"
        )
    entries = (
        ReliabilityEntry(*place, len(some), _edges(some, SURE, 1.0), _edges(some, LIKELY, SURE))
        for place, some in sorted(groups.items())
    )
    return ObservedReliability(tuple(entries), _origin(counted, command))


def _counts(cell: Cell) -> bool:
    generated = cell.setting.get("data") in WORLDS or _MIXED in cell.setting
    measured = "curve" in cell.measures and cell.measures.get("misfit") is not None
    named = "method" in cell.stamp.get("settings", {})
    return cell.status == "done" and generated and measured and named and _is_own(cell)


def _is_own(cell: Cell) -> bool:
    """Whether a method was fitted whose results will read the table."""
    return cell.method not in BASELINES


def _edges(cells: Sequence[Cell], low: float, high: float) -> EdgeCount:
    """Pairs said to be edges with a probability in a range of whole bins of the curve."""
    bins = slice(CURVE.index(low), CURVE.index(high))
    sums = np.array([np.sum(cell.measures["curve"][bins], axis=0) for cell in cells])
    said, true = sums[:, 0], sums[:, 2]
    return EdgeCount(int(said.sum()), int(true.sum()), *_rounded(clustered_interval(true, said)))


def _rounded(interval: tuple[float, float]) -> tuple[float, float]:
    return round(interval[0], 4), round(interval[1], 4)


def _origin(cells: Sequence[Cell], command: str) -> PlainData:
    stamps = [cell.stamp for cell in cells]
    return {
        "command": command,
        "commits": sorted({str(stamp.get("commit")) for stamp in stamps}),
        "changed": any(bool(stamp.get("changed")) for stamp in stamps),
        "families": sorted({_family(cell) for cell in cells}),
        "cells": len(cells),
    }


def _family(cell: Cell) -> str:
    return str(cell.setting.get("data", cell.setting.get(_MIXED)))
