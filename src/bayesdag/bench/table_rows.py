"""Rows of tables: which cells a row holds, and in which order rows stand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesdag.bench.cells import Cell
from bayesdag.bench.suite import BASELINES, Suite, Table
from bayesdag.bench.table_entries import NONE
from bayesdag.posterior.observed_reliability import MISFITS, bin_of


def method_order(suite: Suite) -> dict[str, int]:
    """Methods in the order of the suite; those it no longer has before the baselines."""
    named = dict.fromkeys(name for part in suite.parts for name in part.runners)
    kept = [name for name in named if name not in BASELINES]
    order = {name: number for number, name in enumerate(kept)}
    last = len(order) + 1
    return order | {name: last + number for number, name in enumerate(BASELINES)}


def is_former(method: str, order: Mapping[str, int]) -> bool:
    """Whether a suite that has methods has not this one."""
    return len(order) > len(BASELINES) and method not in order


def cells_of(table: Table, cells: Sequence[Cell], measures: Sequence[str]) -> list[Cell]:
    """Cells that a table shows; where it asks for that, only differences of their measures."""
    chosen = [cell for cell in _single_rows(cells) if _is_shown(table, cell)]
    if table.datasets_of:
        wanted = {_dataset(cell) for cell in cells if cell.part == table.datasets_of}
        chosen = [cell for cell in chosen if _dataset(cell) in wanted]
    if table.common:
        chosen = _on_common_data(chosen, table.common)
    if table.less is None:
        return chosen
    done = [cell for cell in chosen if cell.status == "done"]
    return _differences(done, table.less, measures)


def _single_rows(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that hold several rows, as one cell each."""
    found = []
    for cell in cells:
        for row in cell.measures.get("series", [{}]):
            setting, measures = {**cell.setting, **row}, {**cell.measures, **row}
            found.append(replace(cell, setting=setting, measures=measures))
    return found


def _is_shown(table: Table, cell: Cell) -> bool:
    return (
        (not table.parts or cell.part in table.parts)
        and (not table.methods or cell.method in table.methods)
        and cell.method not in table.without
    )


def _value(cell: Cell, key: str) -> Any:
    if key in ("method", "seed"):
        return getattr(cell, key)
    if key == "device":
        return cell.device or NONE
    if key == "commit":
        return commit_of(cell)
    if key == "misfit":
        return _misfit_bin(cell.measures.get("misfit"))
    return cell.setting.get(key, NONE)


def _misfit_bin(misfit: float | None) -> str:
    """The bin in nats per row and variable; bins sort by their text."""
    if misfit is None:
        return NONE
    number = bin_of(float(misfit), MISFITS)
    upper = f"–{MISFITS[number + 1]:.2f}" if number + 1 < len(MISFITS) else " or more"
    return f"{MISFITS[number]:.2f}{upper}"


def groups_of(
    cells: Sequence[Cell], keys: Sequence[str], order: dict[str, int]
) -> list[tuple[tuple, list[Cell]]]:
    """Cells that agree in `keys`; settings sorted, methods in the order of the suite."""
    groups: dict[tuple, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(_value(cell, key) for key in keys), []).append(cell)
    unknown = len(order) - len(BASELINES)

    def place(group: tuple) -> list:
        said = dict(zip(keys, group, strict=True))
        method, commit = said.pop("method", None), str(said.pop("commit", ""))
        place = order.get(str(method), unknown)
        return [*map(_comparable, said.values()), place, str(method), commit]

    return [(group, groups[group]) for group in sorted(groups, key=place)]


def _comparable(value: object) -> tuple:
    number = isinstance(value, int | float)
    return (number, value if number else 0, str(value))


def _dataset(cell: Cell) -> tuple:
    return (*sorted((k, str(v)) for k, v in cell.setting.items() if k not in cell.measures),
            cell.seed)  # fmt: skip


def _on_common_data(cells: Sequence[Cell], methods: Sequence[str]) -> list[Cell]:
    """Cells of these methods on the data sets that all of them have."""
    having = [{_dataset(c) for c in cells if c.method == method} for method in methods]
    shared = set.intersection(*having)
    return [c for c in cells if c.method in methods and _dataset(c) in shared]


def _differences(cells: Sequence[Cell], method: str, measures: Sequence[str]) -> list[Cell]:
    """Every other method's measures less those of one, data set by data set, commit by commit."""
    base = {(_dataset(c), _value(c, "commit")): c for c in cells if c.method == method}
    found = []
    for cell in cells:
        other = base.get((_dataset(cell), _value(cell, "commit")))
        if other is None or cell.method == method:
            continue
        gaps = {m: _gap(cell.measures.get(m), other.measures.get(m)) for m in measures}
        found.append(replace(cell, measures=gaps))
    return found


def _gap(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else float(value) - float(other)


def ratio_of_means(table: Table, cells: Sequence[Cell], everyone: Sequence[Cell]) -> str:
    """The mean of one method on the same data, divided by the row's own."""
    assert table.ratio is not None
    _, measure, method = table.ratio
    datasets = {_dataset(cell) for cell in cells}
    base = [c for c in everyone if c.method == method and _dataset(c) in datasets]
    means = [[c.measures[measure] for c in some if measure in c.measures] for some in (base, cells)]
    if not all(means):
        return NONE
    return f"{np.mean(means[0]) / np.mean(means[1]):.1f}"


def commit_of(cell: Cell) -> str:
    """The commit that measured a cell, with a star where its files differed; or a dash."""
    return str(cell.stamp.get("commit") or NONE)[:7] + "*" * bool(cell.stamp.get("changed"))
