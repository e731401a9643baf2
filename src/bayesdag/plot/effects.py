"""Effects and functions with their uncertainty."""

import numpy as np
from jaxtyping import Float

from bayesdag.plot.axes import BLUE, INK, SOFT, Axes, MaybeAxes, literal, new_axes, plain


def effect_density(
    draws: Float[np.ndarray, "chain draw"],
    weights: Float[np.ndarray, "chain draw"],
    *,
    interval: tuple[float, float],
    no_path: float,
    label: str = "effect",
    axes: MaybeAxes = None,
) -> Axes:
    """Posterior of an effect: a histogram, its 95 % HDI, and the probability of no path.

    Args:
        interval: the highest-density interval.
        no_path: probability that there is no influence at all; those draws are 0.
    """
    axes = plain(new_axes(axes, (5.0, 3.2)))
    flat, mass = draws.reshape(-1), weights.reshape(-1)
    axes.hist(flat, bins=50, weights=mass, color=BLUE, alpha=0.75)
    axes.axvline(0, color=INK, linestyle="--", lw=1)
    axes.plot(interval, [0, 0], color=INK, lw=5, solid_capstyle="butt", label="95 % HDI")
    axes.plot([], [], " ", label=f"P(no path) = {no_path:.2f}")
    axes.set(xlabel=literal(label), ylabel="probability")
    axes.legend(frameon=False, fontsize=8)
    return axes


def function_band(
    x: Float[np.ndarray, " g"],
    mean: Float[np.ndarray, " g"],
    low: Float[np.ndarray, " g"],
    high: Float[np.ndarray, " g"],
    *,
    cause: str = "cause",
    outcome: str = "outcome",
    points: tuple[np.ndarray, np.ndarray] | None = None,
    axes: MaybeAxes = None,
) -> Axes:
    """A fitted function with its credible band; `points` are rows to show behind it."""
    axes = plain(new_axes(axes, (5.0, 3.4)))
    if points is not None:
        axes.scatter(*points, s=8, color=SOFT, alpha=0.4, linewidths=0)
    axes.fill_between(x, low, high, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(x, mean, color=BLUE)
    axes.set(xlabel=literal(cause), ylabel=literal(outcome))
    return axes
