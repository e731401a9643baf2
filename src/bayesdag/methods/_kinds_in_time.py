"""Columns of every kind within the minutes that a fit may take: what is left out, in words.

Regressions of levels and counts have no closed form: each is found by Newton's method in all rows,
and a fit needs about a hundred for every column. Networks go first, then searches, then rows.
"""

from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from bayesdag.data import Dataset
from bayesdag.data.kinds import Kind
from bayesdag.methods.collapsed import Collapsed
from bayesdag.scores._mixed.modes import (
    DISPERSIONS,
    LEAST_ROWS_TO_MERGE,
    MOST_DIFFERENT,
)
from bayesdag.scores.mixed import MixedScore
from bayesdag.types import Duration

# Seconds of one core, of measurements at ten columns, and of a row, a column and a regression of
# two levels, and how much slower networks make a fit: roughly what everyday tables of 200 to
# 20 000 rows take (docs/cases/everyday-tables.md).
_SECONDS_AT_TEN, _SECONDS_A_REGRESSION = 8.0, 1e-4
_NETWORKS_SLOWER = 3.0
_OF_ANY_KIND = 3  # what a regression costs beside its Hessian, in regressions
_FAMILY, _NUM_FAMILIES = 5, 10  # by which it is judged how many rows are alike
_FEWER_STARTS = Collapsed.PRESETS["quick"].num_starts
_FEWEST_ROWS = 500  # with fewer than these, all are taken, however long it takes
_FASTER = ("fewer columns", "coarser levels", "fewer minutes (--minutes, what is left out is said)")


class Bounded(NamedTuple):
    """What is fitted to what in the time allowed, how long it takes, and what was left out."""

    method: Collapsed
    data: Dataset
    duration: Duration
    notes: list[str]


def bounded(method: Collapsed, data: Dataset, minutes: float, num_fits: int = 1) -> Bounded:
    """The method on the data, or as much of both as the minutes allow.

    No clock decides, so that equal fits give equal results.

    Args:
        num_fits: fits like this one that share the minutes.
    """
    needed, whole = num_fits * seconds(method, data), minutes
    minutes = whole / num_fits
    notes = []
    if isinstance(method.score, MixedScore) and _is_late(method, data, minutes):
        method = replace(method, score=replace(method.score, networks=False))
        notes.append("networks (functions are lines, curves, quadratic or by level)")
    if method.num_starts > _FEWER_STARTS and _is_late(method, data, minutes):
        method = replace(method, num_starts=_FEWER_STARTS, max_rounds=1)
        notes.append("further searches (a better region of graphs may have been missed)")
    if _is_late(method, data, minutes):
        fewer = _thinned(method, data, 60 * minutes)
        if fewer is not data:
            notes.append(
                f"rows: {fewer.num_rows} of {data.num_rows}, drawn at random, are fitted "
                "(probabilities are less sure than all rows would make them)"
            )
        data = fewer
    expected = Duration(seconds(method, data), _FASTER)
    if not notes:
        return Bounded(method, data, expected, [])
    words = (
        f"left out, because the whole would take about {ceil(needed / 60)} minutes (allowed: "
        f"{whole:.3g}): {'; '.join(notes)}; to fit it: --minutes {ceil(needed / 60)}"
    )
    return Bounded(method, data, expected, [words])


def seconds(method: Collapsed, data: Dataset) -> float:
    """Typical seconds of one core, by the kinds of the columns and the number of rows."""
    whole = _seconds_of_measurements(data) + data.num_rows * _seconds_a_row(data)
    slower = getattr(method.score, "networks", False)
    searches = (1 + method.num_starts / Collapsed().num_starts) / 2
    return whole * searches * (_NETWORKS_SLOWER if slower else 1.0)


def _is_late(method: Collapsed, data: Dataset, minutes: float) -> bool:
    return seconds(method, data) > 60 * minutes


def _seconds_of_measurements(data: Dataset) -> float:
    return _SECONDS_AT_TEN * (data.num_variables / 10) ** 2.7


def _seconds_a_row(data: Dataset) -> float:
    regressions = sum(_num_regressions(kind) for kind in data.kinds)
    return _SECONDS_A_REGRESSION * data.num_variables * regressions * _different_rows(data)


def _different_rows(data: Dataset) -> float:
    """The fraction of the rows that regressions look at: equal rows of a family are one.

    Of families of five columns, some of them, drawn at random.
    """
    if data.num_rows < LEAST_ROWS_TO_MERGE or data.num_variables < _FAMILY:
        return 1.0
    rng = np.random.default_rng(0)
    families = [rng.permutation(data.num_variables)[:_FAMILY] for _ in range(_NUM_FAMILIES)]
    different = [len(np.unique(data.values[:, one], axis=0)) for one in families]
    fractions = np.array(different) / data.num_rows
    return float(np.where(fractions > MOST_DIFFERENT, 1.0, fractions).mean())


def _num_regressions(kind: Kind) -> int:
    """As many regressions of two levels as one of this kind is worth."""
    if kind.name == "count":
        return _OF_ANY_KIND + len(DISPERSIONS)
    blocks = len(kind.levels) * (len(kind.levels) - 1) // 2  # of the Hessian
    return _OF_ANY_KIND + blocks + (kind.name == "ordinal") if kind.is_discrete else 0


def _thinned(method: Collapsed, data: Dataset, allowed: float) -> Dataset:
    """As many rows as the time allows.

    They are the same for every seed, so that fits with other seeds differ by sampling alone.
    """
    factor = seconds(method, data) / (
        _seconds_of_measurements(data) + data.num_rows * _seconds_a_row(data)
    )
    left = allowed / factor - _seconds_of_measurements(data)
    num = max(_FEWEST_ROWS, int(left / max(_seconds_a_row(data), 1e-12)))
    if num >= data.num_rows:
        return data
    rows = np.random.default_rng(0).permutation(data.num_rows)[:num]
    return data.with_rows(np.sort(rows))
