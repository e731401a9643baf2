"""Kinds of generated columns: half measurements, half binary, ordinal and categorical."""

import numpy as np
from jaxtyping import Float

from bayesdag.data.kinds import CONTINUOUS, Kind

# Name and number of levels of every second column, in turn.
LEVELS = (("binary", 2), ("ordinal", 4), ("categorical", 3))


def half_levels(rng: np.random.Generator, d: int) -> tuple[Kind, ...]:
    """Every second column has levels, with numbers for labels; shuffled."""
    levels = [LEVELS[k % len(LEVELS)] for k in range(d // 2)]
    found = [Kind(name, tuple(str(k) for k in range(num))) for name, num in levels]
    found += [CONTINUOUS] * (d - len(found))
    return tuple(found[k] for k in rng.permutation(d))


def cut(values: Float[np.ndarray, " n"], cuts: Float[np.ndarray, " m"]) -> Float[np.ndarray, " n"]:
    """Codes of the intervals in which the values lie."""
    return np.searchsorted(cuts, values).astype(float)
