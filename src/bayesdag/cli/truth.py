"""The log score of the best graph found beside that of the true one, where it is known."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from bayesdag.data import Dataset


def read_edges(path: Path, names: tuple[str, ...]) -> "np.ndarray":
    """The graph of a CSV file whose first two columns are called cause and effect."""
    import numpy as np

    from bayesdag.errors import InputError, did_you_mean
    from bayesdag.graphs import is_acyclic

    head, *rows = _rows(path)
    if head[:2] != ["cause", "effect"]:
        raise InputError(f"--truth: the first line of {path.name} must be: cause,effect")
    place = {name: number for number, name in enumerate(names)}
    graph = np.zeros((len(names), len(names)), dtype=np.int8)
    for row in rows:
        if len(row) < 2:
            raise InputError(f"--truth: {row[0]!r} in {path.name} has no effect beside it")
        for name in row[:2]:
            if name not in place:
                hint = did_you_mean(name, names)
                raise InputError(f"--truth names {name!r}, no column of the table ({hint})")
        graph[place[row[0]], place[row[1]]] = 1
    if not is_acyclic(graph):
        raise InputError(f"--truth: the edges in {path.name} form a cycle; only a DAG has a score")
    return graph


def _rows(path: Path) -> list[list[str]]:
    """Cells of the rows that are not empty; at least one row."""
    from bayesdag.errors import InputError
    from bayesdag.text import why_unreadable

    try:
        text = path.read_text(encoding="utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--truth: {path} {why_unreadable(error)}") from error
    except csv.Error as error:
        raise InputError(f"--truth: {path} is no readable CSV file ({error})") from error
    return [[cell.strip() for cell in row] for row in rows if any(row)] or [[]]


def refuse_gaps(data: "Dataset") -> None:
    """Refuses a table with missing cells before anything is fitted."""
    from bayesdag.errors import InputError

    if data.missing is not None:
        raise InputError(
            "--truth compares scores of graphs on one table, and with missing cells every "
            "completion of the table has scores of its own; leave --truth out"
        )


def beside_the_truth(scores: dict[str, float]) -> str:
    """The log score of the true graph and of the best one of each stage, in a sentence."""
    truth = scores["given graph"]
    stages = {stage: best for stage, best in scores.items() if stage != "given graph"}
    listed = ", ".join(
        f"{stage} {best:.1f} ({best - truth:+.1f})" for stage, best in stages.items()
    )
    return f"log score of the true graph {truth:.1f}; best found by {listed}"
