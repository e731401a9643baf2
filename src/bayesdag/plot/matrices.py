"""Probabilities of pairs as a heat map, and how they agree with a truth."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from bayesdag.plot.axes import BLUE, SOFT, Axes, MaybeAxes, literal, new_axes, plain

MOST_WRITTEN = 12  # variables, up to which the numbers stand in the cells


def heat_map(
    names: Sequence[str],
    probability: Float[np.ndarray, "d d"],
    *,
    title: str = "P(row → column)",
    axes: MaybeAxes = None,
) -> Axes:
    """Probabilities of ordered pairs; rows are causes, columns effects."""
    d = len(names)
    side = 1.8 + 0.42 * d if d <= 20 else 1.8 + 0.16 * d
    axes = new_axes(axes, (side + 0.8, side))
    shown = np.where(np.eye(d, dtype=bool), np.nan, probability)
    image = axes.imshow(shown, cmap="Blues", vmin=0, vmax=1)
    labels = [literal(name) for name in names]
    axes.set_xticks(range(d), labels, rotation=90, fontsize=9 if d <= 40 else 5)
    axes.set_yticks(range(d), labels, fontsize=9 if d <= 40 else 5)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    if d <= MOST_WRITTEN:
        for i, j in np.argwhere(shown >= 0.01):
            dark = shown[i, j] > 0.6
            words = f"{shown[i, j]:.2f}"
            axes.text(j, i, words, ha="center", va="center", size=7, color="w" if dark else "k")
    axes.figure.colorbar(image, ax=axes, shrink=0.7, label=title)
    return axes


def reliability_curve(
    forecast: Float[np.ndarray, " bins"],
    observed: Float[np.ndarray, " bins"],
    low: Float[np.ndarray, " bins"],
    high: Float[np.ndarray, " bins"],
    *,
    axes: MaybeAxes = None,
) -> Axes:
    """What was forecast against what was true, with 95 % intervals: `metrics.reliability`."""
    axes = plain(new_axes(axes, (4.2, 4.0)))
    axes.plot([0, 1], [0, 1], color=SOFT, linestyle=":", label="calibrated")
    # Wilson's interval always holds the observed share, but for rounding.
    errors = np.maximum(np.stack([observed - low, high - observed]), 0)
    axes.errorbar(forecast, observed, errors, color=BLUE, marker="o", ms=4, lw=1, label="observed")
    axes.set(xlabel="forecast probability", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1))
    axes.set_aspect("equal")
    axes.legend(frameon=False)
    return axes
