"""Entries of tables: how the measures of a row's cells become one text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from bayesdag.bench.cells import Cell
from bayesdag.bench.judging import CURVE
from bayesdag.metrics import clustered_interval

NONE = "–"
NEGLIGIBLE = 0.5  # nats by which two graphs score alike
_EXPONENT = "exponent:"  # and a number of the setting
_FEWEST = 10  # pairs below which calibration is not judged


@dataclass(frozen=True)
class TableColumn:
    """One column of a table: a measure, how its values become one, and a format."""

    measure: str
    how: str
    form: str

    @classmethod
    def parse(cls, words: str) -> "TableColumn":
        """From "measure [how] [format]"."""
        measure, *others = words.split()
        form = next((w for w in others if w.startswith(".")), ".2f")
        how = next((w for w in others if not w.startswith(".")), "mean")
        return cls(measure, how, form)

    def text(self, cells: Sequence[Cell]) -> str:
        """Text of the entry in the table."""
        values = [c.measures.get(self.measure, c.stamp.get(self.measure)) for c in cells]
        if self.how in _WHOLE:
            return _WHOLE[self.how]([v for v in values if v is not None])
        if self.how.startswith(_EXPONENT):
            return _exponent(cells, values, self.how.removeprefix(_EXPONENT), self.form)
        there = [float(v) for v in values if v is not None]
        return _NUMBERS[self.how](there if len(there) == len(values) else [], self.form)


def interval(values: Sequence[float], form: str) -> str:
    """Mean ± half of Student's 95 % interval; one value has none."""
    if not values:
        return NONE
    mean = format(float(np.mean(values)), form)
    if len(values) == 1:
        return mean
    half = float(stats.sem(values)) * stats.t.ppf(0.975, len(values) - 1)
    return f"{mean} ± {format(half, form)}"


def _exponent(
    cells: Sequence[Cell], values: Sequence[float | None], variable: str, form: str
) -> str:
    """Slope of a measure over a number of the setting, both as logarithms, with its interval."""
    pairs = [
        (math.log(float(cell.setting[variable])), math.log(float(value)))
        for cell, value in zip(cells, values, strict=True)
        if value is not None and float(value) > 0 and variable in cell.setting
    ]
    sizes = {size for size, _ in pairs}
    if len(sizes) < 2:
        return NONE
    fitted: Any = stats.linregress(*np.array(pairs).T)
    slope = format(float(fitted.slope), form)
    if len(pairs) < 3:
        return slope
    half = float(fitted.stderr) * stats.t.ppf(0.975, len(pairs) - 2)
    return f"{slope} ± {format(half, form)}"


def _counted(keep: Callable[[float], bool]) -> Callable[[list[float], str], str]:
    return lambda values, _: str(sum(keep(v) for v in values))


def _mean_if(keep: Callable[[float], bool], sign: int) -> Callable[[list[float], str], str]:
    def text(values: list[float], form: str) -> str:
        kept = [sign * v for v in values if keep(v)]
        return format(float(np.mean(kept)), form) if kept else NONE

    return text


def _above(value: float) -> bool:
    return value > NEGLIGIBLE


def _below(value: float) -> bool:
    return value < -NEGLIGIBLE


def _reached(values: list[float], _: str) -> str:
    return f"{sum(v > -1e-6 for v in values)} of {len(values)}" if values else NONE


def _positive(values: list[float], _: str) -> str:
    return f"{sum(v > 0 for v in values)} of {len(values)}" if values else NONE


# How the numbers of a row's cells become one text; all of them must be there.
_NUMBERS: dict[str, Callable[[list[float], str], str]] = {
    "mean": interval,
    "max": lambda values, form: format(max(values), form) if values else NONE,
    "alike": _counted(lambda value: not _above(value) and not _below(value)),
    "above": _counted(_above),
    "below": _counted(_below),
    "mean-above": _mean_if(_above, 1),
    "mean-below": _mean_if(_below, -1),
    "reached": _reached,
    "positive": _positive,
}


def _calibration(values: list[Any]) -> str:
    """Error over the unsure pairs of all data sets together."""
    if not values:
        return NONE
    count, said, true = np.sum(values, axis=0).T
    num = int(count.sum())
    if num < _FEWEST:
        return f"{NONE} ({num} pairs)"
    return f"{abs(said - true).sum() / num:.2f} ({num} pairs)"


def _reliability(values: list[Any]) -> str:
    """Of every bin: mean probability, share of edges, and how many pairs."""
    found = np.sum(values, axis=0) if values else []
    return ", ".join(f"{s / n:.2f}→{t / n:.2f} ({n:.0f})" for n, s, t in found if n) or NONE


def _fraction(values: list[Any]) -> str:
    """Pooled share of counts [all, some] with its 95 % interval; data sets count as clusters."""
    if not values:
        return NONE
    counts, hits = np.array(values, dtype=float).T
    total = int(counts.sum())
    if not total:
        return f"{NONE} (0)"
    low, high = clustered_interval(hits, counts)
    return f"{hits.sum() / total:.2f} ({low:.2f}–{high:.2f}; {hits.sum():.0f} of {total})"


def _of_bin(number: int) -> Callable[[list[Any]], str]:
    """The share of true edges among the pairs of one bin of a curve."""
    return lambda values: _fraction([(curve[number][0], curve[number][2]) for curve in values])


# How other values become one text, whatever their type; absent ones are left out.
_WHOLE: dict[str, Callable[[list[Any]], str]] = {
    **{f"bin{number}": _of_bin(number) for number in range(len(CURVE) - 1)},
    "fraction": _fraction,
    "calibration": _calibration,
    "reliability": _reliability,
    "listed": lambda values: "; ".join(sorted(set(map(str, values)))) or NONE,
    "not-representable": lambda values: str(sum(len(v["not_representable"]) for v in values)),
}
