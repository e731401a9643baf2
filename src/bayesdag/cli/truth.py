"""The log score of the best graph found beside that of the true one, where it is known."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from bayesdag.data import Dataset


def read_edges(path: Path, names: tuple[str, ...]) -> "np.ndarray":
    """The graph of a CSV file whose first two columns are called cause and effect."""
    import numpy as np

    from bayesdag.errors import InputError

    if not path.is_file():
        raise InputError(f"--truth: there is no file {path}")
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = [row for row in csv.reader(file) if row] or [[]]
    if [word.strip() for word in head[:2]] != ["cause", "effect"]:
        raise InputError(f"--truth: the first line of {path.name} must be: cause,effect")
    place = {name: number for number, name in enumerate(names)}
    graph = np.zeros((len(names), len(names)), dtype=np.int8)
    for row in rows:
        for name in row[:2]:
            if name not in place:
                raise InputError(f"--truth names {name!r}, which is no column of the table")
        graph[place[row[0]], place[row[1]]] = 1
    return graph


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
