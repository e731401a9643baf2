"""Verdicts by one rule: better, equal or worse, beside printed figures and beside everyone else."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from bayesdag.bench.cells import Cell
from bayesdag.bench.published import SYSTEMS, PublishedFigure, figures
from bayesdag.bench.suite import BASE_RATE, BASELINES
from bayesdag.bench.table_entries import NONE, interval
from bayesdag.bench.table_rows import commit_of

OURS = ("auto", "collapsed, neural", "bayesdag", "bayesdag, published")
# Measure: heading, whether less is better, and its format.
MEASURES: dict[str, tuple[str, bool, str]] = {
    "expected_shd": ("E-SHD", True, ".2f"),
    "expected_cpdag_shd": ("CPDAG-SHD", True, ".2f"),
    "edge_f1": ("F1", False, ".3f"),
    "log_score": ("log score", False, ".3f"),
    "effect_error": ("error of effects", True, ".3f"),
    "interventional_nll": ("interventional NLL", True, ".2f"),
    "seconds": ("seconds", True, ".0f"),
}
COMPARED = (
    *("expected_shd", "expected_cpdag_shd", "log_score"),
    *("effect_error", "interventional_nll"),
)
# Settings whose data sets are pooled for a verdict; elsewhere each setting has its own.
POOLED = {"broken_worlds": ("data",), "measured": ("data", "marking"), "neural_scores": ()}
# Suites that compare nothing, or an engine of ours with itself.
LEFT_OUT = (
    *("alpha_mu", "trivial", "speed", "joint", "paper_engine", "growth"),
    *("ablations", "certainty_ablations", "neural_scores"),
)
VERDICTS = ("better", "equal", "worse", "not judged")
# Whom a method is compared with.
TRIVIAL, PUBLISHED, RIVALS = "trivial methods", "published systems", "rivals"
ENGINES = "our other engines"
KINDS = (PUBLISHED, RIVALS, ENGINES, TRIVIAL)
# Plug-ins that are no engines of ours, and names of engines in cells that say no plug-in.
_OF_PLUGIN = {f"methods/{name}": TRIVIAL for name in BASELINES}
_OF_PLUGIN |= {f"methods/{name}": PUBLISHED for name in ("bcd", "bootstrap_ges", "dds", "dibs")}
_OF_PLUGIN |= {"methods/cam": RIVALS}
_ENGINES = ("collapsed", "exact", "joint", "averaged", "bagged", "auto", "bayesdag")


@dataclass(frozen=True)
class Group:
    """Cells of one method, one setting and one commit."""

    suite: str
    method: str
    commit: str
    cells: tuple[Cell, ...]

    def values(self, measure: str) -> dict[tuple, float]:
        """The measure of every data set that has it."""
        return {
            (str(sorted(cell.setting.items())), cell.seed): float(cell.measures[measure])
            for cell in self.cells
            if cell.measures.get(measure) is not None
        }

    @property
    def kind(self) -> str:
        """Whose method it is: one of `KINDS`; an engine of ours if it is no other."""
        if self.method in (*BASELINES, BASE_RATE):
            return TRIVIAL
        if any(self.method in names for names in SYSTEMS.values()):
            return PUBLISHED
        fitted = (self.cells[0].stamp.get("settings") or {}).get("method")
        plugin = fitted.get("plugin") if isinstance(fitted, dict) else None
        if plugin is None:
            return ENGINES if self.method.startswith(_ENGINES) else RIVALS
        return _OF_PLUGIN.get(plugin, ENGINES)

    @property
    def devices(self) -> str:
        """Where the cells ran."""
        return "; ".join(sorted({cell.device or NONE for cell in self.cells}))

    @property
    def command(self) -> str:
        """What measures them again."""
        seeds = [cell.seed for cell in self.cells]
        span = str(min(seeds)) if min(seeds) == max(seeds) else f"{min(seeds)}-{max(seeds)}"
        parts = " ".join(f"--part '{name}'" for name in sorted({c.part for c in self.cells}))
        only = f"--methods '{self.method}' {parts} --seeds {span}"
        return f"`bayesdag bench {self.suite} --size paper {only}`"


@dataclass(frozen=True)
class Verdict:
    """How one group of ours stands beside one other, in one measure.

    Attributes:
        ours: the cells of a method of ours.
        where: the data, in words.
        measure: as cells name it.
        word: one of `VERDICTS`.
        other: name of the other method or system.
        said: the same with its figure, or with the number of shared data sets and its commit.
        kind: whose the other one is: one of `KINDS`.
        figure: the printed one; None beside cells.
    """

    ours: Group
    where: str
    measure: str
    word: str
    other: str
    said: str
    kind: str = PUBLISHED
    figure: PublishedFigure | None = None

    @property
    def here(self) -> str:
        """Our mean with its interval, and on how many data sets."""
        values = list(self.ours.values(self.measure).values())
        return f"{interval(values, MEASURES[self.measure][2])} ({len(values)})"


def grouped(suite: str, cells: Iterable[Cell]) -> list[Group]:
    """Done cells by method, setting and commit."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.status == "done" and "series" not in cell.measures:
            key = (str(_about(suite, cell)), cell.method, commit_of(cell))
            found.setdefault(key, []).append(cell)
    return [
        Group(suite, method, commit, tuple(some)) for (_, method, commit), some in found.items()
    ]


def paired_verdict(ours: Sequence[float], theirs: Sequence[float], less: bool) -> str:
    """Better, equal or worse, by the differences on the same data sets."""
    gaps = np.subtract(ours, theirs) * (1 if less else -1)
    if len(gaps) < 2:
        return "not judged"
    half = float(stats.sem(gaps)) * float(stats.t.ppf(0.975, len(gaps) - 1))
    return _words(float(gaps.mean()), half)


def printed_verdict(ours: Sequence[float], value: float, half: float | None, less: bool) -> str:
    """Better, equal or worse than a printed figure, by both intervals."""
    if len(ours) < 2:
        return "not judged"
    own = float(stats.sem(ours)) * float(stats.t.ppf(0.975, len(ours) - 1))
    gap = (float(np.mean(ours)) - value) * (1 if less else -1)
    return _words(gap, float(np.hypot(own, half or 0.0)))


def _words(gap: float, half: float) -> str:
    if abs(gap) <= half or gap == 0:
        return "equal"
    return "better" if gap < 0 else "worse"


def beside_printed(groups: Sequence[Group]) -> Iterator[Verdict]:
    """Every printed figure, beside the cells of ours that measure the same."""
    for one in figures():
        _, less, form = MEASURES[one.measure]
        half = "" if one.half is None else f" ± {format(one.half, form)}"
        said = f"{one.system} {format(one.value, form)}{half}"
        for group in groups:
            values = list(group.values(one.measure).values())
            if values and _same(one, group):
                word = printed_verdict(values, one.value, one.half, less)
                yield Verdict(group, one.data, one.measure, word, one.system, said, figure=one)


def _same(figure: PublishedFigure, group: Group) -> bool:
    """Whether the cells measure what the figure says: that system, or one of our own."""
    if group.method not in (*OURS, *SYSTEMS[figure.system]) or group.suite not in figure.cells:
        return False
    setting = group.cells[0].setting
    return all(setting.get(key) == value for key, value in figure.cells[group.suite].items())


def beside_others(groups: Sequence[Group]) -> Iterator[Verdict]:
    """Everyone else on the same data sets of the same suite."""
    ours = [one for one in groups if one.method in OURS and one.suite not in LEFT_OUT]
    for group in ours:
        about = _about(group.suite, group.cells[0])
        alike = [
            other
            for other in groups
            if other.suite == group.suite
            and other.method not in OURS
            and _about(other.suite, other.cells[0]) == about
        ]
        where = ", ".join(f"{key} {value}" for key, value in about.items()) or "all"
        for measure in COMPARED:
            own, less = group.values(measure), MEASURES[measure][1]
            for other in alike:
                theirs = other.values(measure)
                if shared := [key for key in own if key in theirs]:
                    pair = [own[key] for key in shared], [theirs[key] for key in shared]
                    word = paired_verdict(*pair, less)
                    said = _named(f"{other.method} ({len(shared)})", other, group)
                    yield Verdict(group, where, measure, word, other.method, said, other.kind)


def _named(name: str, other: Group, group: Group) -> str:
    """A method of another commit says so."""
    return name if other.commit == group.commit else f"{name} [{other.commit}]"


def _about(suite: str, cell: Cell) -> dict[str, Any]:
    keys = POOLED.get(suite)
    return {k: v for k, v in cell.setting.items() if keys is None or k in keys}
