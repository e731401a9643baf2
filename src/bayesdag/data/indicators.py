"""Binary columns that are never true together: indicators of the levels of one column, perhaps.

Software that takes numbers only makes people write one column of levels as several of 0 and 1.
That one of them is 1 then makes the others 0, and arrows between them say nothing else.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data.kinds import Kind

_EXPECTED = 10.0  # rows in which two would be true together, were they independent


def exclusive(
    values: Float[np.ndarray, "n d"], kinds: Sequence[Kind], missing: Bool[np.ndarray, "n d"] | None
) -> list[list[int]]:
    """Sets of binary columns of which no two are ever true in the same row, though they could."""
    binary = [j for j, kind in enumerate(kinds) if kind.name == "binary"]
    true = values[:, binary] == 1
    if missing is not None:
        true &= ~missing[:, binary]
    counts = true.sum(axis=0)
    expected = np.outer(counts, counts) / max(1, len(values))
    apart = (true.T.astype(float) @ true == 0) & (expected >= _EXPECTED)
    return [[binary[j] for j in group] for group in _cliques(apart)]


def _cliques(apart: Bool[np.ndarray, "b b"]) -> Iterator[list[int]]:
    """Sets of columns that are pairwise apart, each column in one of them, first come."""
    taken: set[int] = set()
    for first in range(len(apart)):
        group = [first] if first not in taken else []
        for j in range(first + 1, len(apart)):
            if group and j not in taken and apart[group, j].all():
                group.append(j)
        if len(group) > 1:
            taken.update(group)
            yield group


def words(names: Sequence[str], groups: list[list[int]]) -> list[str]:
    """What to do about each set."""
    return [
        f"{', '.join(names[j] for j in group)} are never true in the same row: if they are the "
        "levels of one column, put them into one (text will do); arrows between them say no more "
        "than that one excludes the others"
        for group in groups
    ]
