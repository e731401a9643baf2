"""One commit speaks for each row of results: which one, and which of two is the later."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from bayesdag.bench.cells import Cell, Origin, Row
from bayesdag.bench.stamps import place_in_history


def of_one_commit(cells: Iterable[Cell]) -> list[Cell]:
    """Of each row the cells of the commit that measured most of it; of equals, the latest.

    So a later commit replaces a row once it has as many cells as the one before, and never mixes
    with it. Lost cells do not count, so that a limit of time hides no result.
    """
    cells = list(cells)
    chosen = speaking(cells)
    return [cell for cell in cells if cell.origin == chosen[cell.row]]


def speaking(cells: Iterable[Cell]) -> dict[Row, Origin]:
    """The commit that speaks for each row."""
    counts: dict[Row, Counter[Origin]] = defaultdict(Counter)
    for cell in cells:
        counts[cell.row][cell.origin] += cell.status == "done"
    return {
        row: max(found, key=lambda origin, of=found: (of[origin], age(origin), str(origin)))
        for row, found in counts.items()
    }


def joined(stored: Iterable[Cell], given: Iterable[Cell]) -> list[Cell]:
    """Stored cells and given ones, one commit for each row.

    A row is never replaced by an earlier commit, whatever it has measured. Of two cells of one
    commit the given one counts, unless it was lost and the stored one was not.
    """
    found = {cell.key: cell for cell in of_one_commit(stored)}
    before = speaking(found.values())
    others = []
    for cell in of_one_commit(given):
        origin = before.get(cell.row, cell.origin)
        if cell.origin != origin:
            others += [cell] if age(cell.origin) >= age(origin) else []
        elif cell.status == "done" or found.get(cell.key, cell).status != "done":
            found[cell.key] = cell
    return of_one_commit([*found.values(), *others])


def age(origin: Origin) -> tuple[int, bool]:
    """Sorts commits from early to late; one with other files comes before the commit itself."""
    commit, changed = origin
    return place_in_history(commit), not changed
