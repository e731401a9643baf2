"""The units an engine works in, and the way back to the units of the table."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.errors import InputError

SCALINGS = ("standardise", "centre", "none")


@dataclass(frozen=True, eq=False)
class Scaling:
    """Engine units are `(x - shift) / scale`, column by column.

    Two scalings with the same numbers are equal and hash alike, so that compiled code
    which depends on one is compiled once.
    """

    shift: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]

    def __post_init__(self) -> None:
        for name in ("shift", "scale"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        if not (np.isfinite(self.shift).all() and np.isfinite(self.scale).all()):
            raise InputError("a scaling has a shift or a scale that is not finite")
        if not (self.scale > 0).all():
            raise InputError("a scaling has a scale that is not positive; it has no inverse")

    @classmethod
    def of(cls, values: Float[np.ndarray, "n d"], kind: str = "standardise") -> "Scaling":
        """The scaling called `kind` for these rows; a constant column keeps its unit."""
        if kind not in SCALINGS:
            raise InputError(f"no scaling is called {kind!r}; there are: {', '.join(SCALINGS)}")
        # Sums depend on the order of memory, and equal tables must get equal scalings.
        values = np.ascontiguousarray(values)
        unit = np.ones(values.shape[1])
        if kind == "none":
            return cls(0 * unit, unit)
        # Twice, because the first mean of a column far from zero carries a rounding error.
        shift = values.mean(axis=0)
        shift = shift + (values - shift).mean(axis=0)
        if kind == "centre":
            return cls(shift, unit)
        deviation = np.sqrt(((values - shift) ** 2).mean(axis=0))
        return cls(shift, np.where(deviation > 0, deviation, 1.0))

    @classmethod
    def of_measured(
        cls, values: Float[np.ndarray, "n d"], missing: Bool[np.ndarray, "n d"], kind: str
    ) -> "Scaling":
        """The scaling called `kind` for the cells that were measured."""
        columns = zip(values.T, missing.T, strict=True)
        parts = [cls.of(_measured(x, gap), kind) for x, gap in columns]
        return cls(
            np.concatenate([part.shift for part in parts]),
            np.concatenate([part.scale for part in parts]),
        )

    def apply(self, x: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch d"]:
        """`x` in engine units."""
        return (x - self.shift) / self.scale

    def invert(self, x: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch d"]:
        """`x` back in original units."""
        return x * self.scale + self.shift

    def joined(self, other: "Scaling") -> "Scaling":
        """That of these columns, then of the others."""
        return Scaling(
            np.concatenate([self.shift, other.shift]), np.concatenate([self.scale, other.scale])
        )

    def of_columns(self, columns: list[int]) -> "Scaling":
        """That of some columns."""
        return Scaling(self.shift[columns], self.scale[columns])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaling) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    @property
    def _bytes(self) -> bytes:
        return self.shift.tobytes() + self.scale.tobytes()


def frozen(array: np.ndarray, dtype: type) -> np.ndarray:
    """A read-only copy in row order; the caller's own array stays writable."""
    copy = np.array(array, dtype=dtype, order="C", copy=True)
    copy.setflags(write=False)
    return copy


def _measured(column: Float[np.ndarray, " n"], missing: Bool[np.ndarray, " n"]) -> np.ndarray:
    """The cells of a column that were measured, as a table; all, if none was."""
    return column[~missing if not missing.all() else slice(None)][:, None]
