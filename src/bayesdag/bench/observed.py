"""The table of observed reliability that results read: counted from stored cells.

Only families of data that are there for development count, and only their seeds: figures must
come from data that nothing was fitted to, this table included.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from bayesdag.bench.cells import Cell
from bayesdag.bench.judging import CURVE
from bayesdag.bench.suite import BASELINES
from bayesdag.datasets._worlds import DEVELOPMENT
from bayesdag.errors import InputError
from bayesdag.metrics import clustered_interval
from bayesdag.posterior.observed_reliability import (
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

FIRST_SEED = 1000  # of figures; smaller seeds are for development


def observe(cells: Iterable[Cell], command: str) -> ObservedReliability:
    """Counts by model, misfit and rows; `command` is kept with the commits of the cells."""
    groups: dict[tuple[str, int, int], list[Cell]] = {}
    counted = [cell for cell in cells if _counts(cell)]
    for cell in counted:
        misfit = bin_of(float(cell.measures["misfit"]), MISFITS)
        model = model_of(cell.stamp["settings"]["method"])
        groups.setdefault((model, misfit, bin_of(cell.setting["rows"], ROWS)), []).append(cell)
    if not groups:
        raise InputError(
            "there is no cell of a development family with a misfit to count; run "
            "bayesdag bench broken_worlds --part development first"
        )
    entries = (
        ReliabilityEntry(*place, len(some), _edges(some, SURE, 1.0), _edges(some, LIKELY, SURE))
        for place, some in sorted(groups.items())
    )
    return ObservedReliability(tuple(entries), _origin(counted, command))


def _counts(cell: Cell) -> bool:
    return (
        cell.status == "done"
        and cell.seed < FIRST_SEED
        and cell.setting.get("data") in DEVELOPMENT
        and cell.method not in BASELINES
        and cell.measures.get("misfit") is not None
    )


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
        "families": sorted({cell.setting["data"] for cell in cells}),
        "cells": len(cells),
    }
