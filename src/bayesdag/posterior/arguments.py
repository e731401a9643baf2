"""Numbers that a question takes: refused, with their name, where no answer could follow."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data import Scaling
from bayesdag.errors import InputError

# In engine units: squares of more would leave the range of float32.
FARTHEST = 1e9


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuses what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}; it must be a whole number, {least} or more")


def check_probability(name: str, value: float | int) -> None:
    """Refuses what is not a number between 0 and 1."""
    if not 0 <= value <= 1:  # False for NaN too
        raise InputError(f"{name} is {value:g}; it must be a number between 0 and 1")


def check_interval_probability(name: str, value: float | int) -> None:
    """Refuses what no interval can hold: nothing, or everything."""
    if not 0 < value < 1:
        raise InputError(f"{name} is {value:g}; it must lie between 0 and 1, for example 0.95")


def check_reach(
    names: Sequence[str],
    scaling: Scaling,
    mask: Bool[np.ndarray, " d"],
    values: Float[np.ndarray, " d"],
) -> None:
    """Refuses values so far from the data that computing with them would overflow."""
    with np.errstate(over="ignore"):
        far = mask & ~(np.abs(scaling.apply(values)) < FARTHEST)
    if far.any():
        column = int(np.argmax(far))
        raise InputError(
            f"{names[column]!r} cannot be {values[column]:g}, which is too far from the data to "
            f"compute with (they lie around {scaling.shift[column]:g}); take a value nearer to them"
        )
