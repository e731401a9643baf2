"""Writes the tables in README.md from stored results: `python docs/readme_table.py`.

That of rivals from cells; that of certainty from the page that `bayesdag bench reliability` wrote.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayesdag.bench import Cell, Store
from bayesdag.bench.table_rows import commit_of

ROOT = Path(__file__).parents[1]
CELLS = ROOT / "experiments/results/rivals"
NUM_VARIABLES = 10
SEVERAL = 3  # data sets of a kind
COLUMNS = (
    ("expected_shd", "nonlinear", "E-SHD, nonlinear"),
    ("expected_cpdag_shd", "nonlinear", "CPDAG-SHD, nonlinear"),
    ("expected_cpdag_shd", "linear", "CPDAG-SHD, linear"),
)
BEGIN, END = "<!-- rivals: written by docs/readme_table.py -->", "<!-- end of rivals -->"
CERTAINTY = ROOT / "experiments/results/reliability.md"
SECTION = "## Edges with p ≥ .95 by data, figures"  # data that nothing was developed on
FUNCTIONS = {"collapsed, neural": "learned functions", "collapsed, BGe": "linear functions"}
SURE = ("<!-- certainty: written by docs/readme_table.py -->", "<!-- end of certainty -->")
BASELINES = ("random_order", "sort_variance", "sort_r2")  # the empty graph stands for them


def written(text: str, cells: list[Cell]) -> str:
    """README with the table of these cells between its marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{tables(cells)}\n{END}{after}"


def with_certainty(text: str, page: str) -> str:
    """README with the table of certainty between its marks."""
    before, rest = text.split(SURE[0])
    _, after = rest.split(SURE[1])
    return f"{before}{SURE[0]}\n{certainty(page)}\n{SURE[1]}{after}"


def certainty(page: str) -> str:
    """Shares of true edges among those said to be at least 95 % probable, by kind of data."""
    section = page.split(SECTION)[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    shares: dict[str, dict[str, str]] = defaultdict(dict)
    # Of the rows of several commits, that of the most data sets comes last.
    for method, data, _, share, *_ in sorted(rows[2:], key=lambda row: int(row[2].split()[0])):
        if method in FUNCTIONS:
            shares[data.replace("_", " ")][method] = share
    head = ["data", *(f"true of those ≥ .95, {name}" for name in FUNCTIONS.values())]
    lines = [head, ["---"] * len(head)]
    lines += [[data, *(own.get(m, "–") for m in FUNCTIONS)] for data, own in sorted(shares.items())]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tables(cells: list[Cell]) -> str:
    """All methods on the data sets they share, after those that share several, if there are any."""
    cells = [c for c in cells if c.setting.get("d") == NUM_VARIABLES and "functions" in c.setting]
    # The columns are standardised: there is one CaPS.
    cells = [cell for cell in cells if cell.method != "CaPS, raw units"]
    lost = [cell for cell in cells if cell.status != "done"]
    cells = of_one_commit([cell for cell in cells if cell.status == "done"])
    often = [cell for cell in cells if cell.method in _methods_with_several(cells)]
    if {cell.method for cell in often} <= {"empty", *BASELINES} or len(often) == len(cells):
        return table(cells, lost)
    whole = table(cells, lost)
    parts = ("Methods with several data sets of each kind:", table(often), "All:", whole)
    return "\n\n".join(parts)


def of_one_commit(cells: list[Cell]) -> list[Cell]:
    """Cells of every method by the commit that measured most of its data sets: no row mixes two."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in cells:
        counts[cell.method][commit_of(cell)] += 1
    kept = {
        method: max(found, key=lambda c, of=found: (of[c], c)) for method, found in counts.items()
    }
    return [cell for cell in cells if commit_of(cell) == kept[cell.method]]


def table(cells: list[Cell], lost: Sequence[Cell] = ()) -> str:
    """Distances from the truth and CPU seconds of every method, best on nonlinear rows first.

    Methods that were lost on every data set come last, with the way they were lost.
    """
    found: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        found[cell.method, cell.setting["functions"]].append(cell)
    found = {key: _common(key, found) for key in list(found)}
    found = defaultdict(list, found)
    methods = sorted({name for name, _ in found} - set(BASELINES))
    rows = [
        (name, *(_mean(found[name, kind], what) for what, kind, _ in COLUMNS)) for name in methods
    ]
    rows.sort(key=lambda row: (np.isnan(row[2]), row[2]))
    head = ["method", *(title for *_, title in COLUMNS), "CPU s", "data sets"]
    lines = [head, ["---"] * len(head)]
    for name, *distances in rows:
        own = [cell for _, kind, _ in COLUMNS[1:] for cell in found[name, kind]]
        cpu = np.mean([cell.measures["cpu"] for cell in own])
        shown = ["–" if np.isnan(x) else f"{x:.1f}" for x in distances]
        lines.append([name, *shown, f"{cpu:.2g}", str(len(own))])
    done = {cell.method for cell in cells}
    for name in sorted({cell.method for cell in lost} - done):
        ways = sorted({cell.status for cell in lost if cell.method == name})
        lines.append([name, "; ".join(ways), *["–"] * len(COLUMNS), "0"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _methods_with_several(cells: list[Cell]) -> set[str]:
    """Methods that were measured on several data sets of every kind."""
    kinds = {kind for _, kind, _ in COLUMNS}
    counts = Counter((cell.method, cell.setting["functions"]) for cell in cells)
    names = {cell.method for cell in cells}
    return {name for name in names if all(counts[name, kind] >= SEVERAL for kind in kinds)}


def _common(key: tuple[str, str], found: dict[tuple[str, str], list[Cell]]) -> list[Cell]:
    """Cells of data sets that all methods with such functions have: others compare nothing."""
    seeds = [{c.seed for c in cells} for (_, kind), cells in found.items() if kind == key[1]]
    return [cell for cell in found[key] if cell.seed in set.intersection(*seeds)]


def _mean(cells: list[Cell], measure: str) -> float:
    """Mean of a measure; those that return one class have no distance between graphs."""
    values = [cell.measures[measure] for cell in cells if measure in cell.measures]
    return float(np.mean(values)) if values else float("nan")


def main() -> None:
    """Read what is stored and write the tables."""
    path = ROOT / "README.md"
    text = with_certainty(path.read_text(encoding="utf-8"), CERTAINTY.read_text(encoding="utf-8"))
    path.write_text(written(text, Store(CELLS).read()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
