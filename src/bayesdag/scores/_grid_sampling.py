"""Draws from one-dimensional densities that are known on a grid, many at once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Chords(NamedTuple):
    """Densities exp(piecewise linear): the log density joined by chords between grid points.

    Attributes:
        grid: equally spaced points, a row for each density.
        log_density: its values there, with a maximum of 0 in each row.
    """

    grid: Float[np.ndarray, "b k"]
    log_density: Float[np.ndarray, "b k"]

    def draw(
        self, rng: np.random.Generator, rows: Int[np.ndarray, " r"]
    ) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, " r"]]:
        """One point from each of some rows, and the log density of the chord there."""
        left, right = self.log_density[rows, :-1], self.log_density[rows, 1:]
        rise = right - left
        # ∫ exp over a cell, in units of its width: (e^right - e^left) / rise.
        gap = np.maximum(np.abs(rise), 1e-9)
        mass = np.cumsum(np.exp(np.maximum(left, right)) * -np.expm1(-gap) / gap, axis=1)
        threshold = rng.random(len(rows)) * mass[:, -1]
        cell = np.minimum((mass <= threshold[:, None]).sum(axis=1), mass.shape[1] - 1)
        every = np.arange(len(rows))
        slope = rise[every, cell]
        slope = np.where(np.abs(slope) < 1e-9, 1e-9, slope)
        # Inverse of the distribution function within the cell, which is exponential.
        share = np.log1p(rng.random(len(rows)) * np.expm1(slope)) / slope
        width = self.grid[rows, 1] - self.grid[rows, 0]
        return self.grid[rows, cell] + share * width, left[every, cell] + share * slope
