"""Fits everyday tables as a stranger would and writes what came out: a page of one table.

    python docs/everyday_tables.py FOLDER [--minutes 1] [--limit 900] [--only iris,heart]

FOLDER holds CSV files, for example those that scikit-learn and statsmodels bundle; nothing is
done to them. Every fit is one call of the command, whose result goes to FOLDER/NAME.json; tables
that have one are not fitted again, and rows of tables that have none stay as they are. The page is
docs/cases/everyday-tables.md.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "cases" / "everyday-tables.md"
SURE = 0.95
FIRST = ("sex", "age")  # what nothing in such a table acts on
NUM_SHOWN = 3
BEGIN, END = "<!-- tables: written by docs/everyday_tables.py -->", "<!-- end of tables -->"


def fitted(path: Path, minutes: float | None, limit: float) -> dict[str, Any]:
    """What one fit by the command says, and the CPU seconds it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "result.nc"))
        command = [sys.executable, "-m", "bayesdag", "fit", str(path), "--out", out]
        command += ["--quiet", "--json", "--top", "1000"]
        command += [] if minutes is None else ["--minutes", str(minutes)]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not finished after {limit:.0f} s"}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if run.returncode:
        return {"failed": run.stderr.strip().splitlines()[-1], "cpu": cpu}
    found = json.loads(run.stdout)
    provenance = found["provenance"]
    return {
        "cpu": cpu,
        "edges": [[e["source"], e["target"], e["probability"]] for e in found["edges"]],
        "notes": provenance.get("notes", []),
        "columns": _size(path),
        "kinds": _kinds(path),
    }


def _size(path: Path) -> list[int]:
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    return [len(rows), len(head.split(","))]


def _kinds(path: Path) -> dict[str, int]:
    """How many columns are of which kind, as the command sees them."""
    command = [sys.executable, "-m", "bayesdag", "inspect", str(path), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(Counter(column["kind"] for column in json.loads(run.stdout)["columns"]))


def row(name: str, found: dict[str, Any]) -> str:
    """One line of the page."""
    if "failed" in found:
        return f"| {name} | – | – | – | {found['failed']} | – | – | – |"
    edges = found["edges"]
    sure = [f"{a} → {b}" for a, b, p in edges if p >= SURE]
    into = [(p, f"{a} → {b}") for a, b, p in edges if b.lower() in FIRST]
    worst = "–" if not into else f"{max(into)[1]} {max(into)[0]:.2f}"
    shown = ", ".join(sure[:NUM_SHOWN]) + (
        f" and {len(sure) - NUM_SHOWN} more" * (len(sure) > NUM_SHOWN)
    )
    size = f"{found['columns'][0]} × {found['columns'][1]}"
    kinds = ", ".join(f"{num} {kind}" for kind, num in found["kinds"].items())
    cells = (name, size, kinds, f"{found['cpu']:.0f}", str(len(sure)), shown or "none", worst)
    cells += (_left_out(found["notes"]),)
    return "| " + " | ".join(cells) + " |"


def _left_out(notes: list[str]) -> str:
    """What the time did not allow, in a few words."""
    said = " ".join(note for note in notes if note.startswith("left out, because"))
    rows = re.search(r"rows: (\d+) of", said)
    parts = [word for word in ("networks", "further searches") if word in said]
    parts += [f"all but {rows[1]} rows"] if rows else []
    linear = any("with linear functions, although" in note for note in notes)
    additive = any("with sums of curves" in note for note in notes)
    parts += ["curves"] * linear + ["networks"] * additive
    return ", ".join(parts) or "nothing"


def table(results: dict[str, dict[str, Any]], before: str = "") -> str:
    """All tables, in the order of their names; of those without a result what stood there."""
    heads = (
        "table",
        "rows × columns",
        "kinds",
        "CPU s",
        "arrows at .95 or more",
        "such as",
        "into sex or age",
        "left out for time",
    )
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    rows = {line.split("|")[1].strip(): line for line in before.strip().splitlines()[2:]}
    rows |= {name: row(name, found) for name, found in results.items()}
    lines += [rows[name] for name in sorted(rows)]
    return "\n".join(lines)


def main() -> None:
    """Fit what has no result yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    wanted = [name for name in given.only.split(",") if name]
    for path in sorted(given.folder.glob("*.csv")):
        kept = path.with_suffix(".json")
        if not kept.exists() and (not wanted or path.stem in wanted):
            kept.write_text(json.dumps(fitted(path, given.minutes, given.limit)), encoding="utf-8")
    results = {path.stem: json.loads(path.read_text()) for path in given.folder.glob("*.json")}
    page = PAGE.read_text(encoding="utf-8")
    start, stop = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(
        f"{page[:start]}\n{table(results, page[start:stop])}\n{page[stop:]}", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
