"""The graph in layers: width and opacity of an arrow by its probability."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int8

from bayesdag.graphs.layout import Layout, layered_layout
from bayesdag.plot.axes import AMBER, BLUE, INK, Axes, MaybeAxes, literal, new_axes

LETTER, PADDING, BOX_HEIGHT = 0.105, 0.25, 0.36  # inches
GAP, LAYER = 0.3, 0.95
Matrix = Float[np.ndarray, "d d"]


def graph(
    names: Sequence[str],
    probability: Matrix,
    dag: Int8[np.ndarray, "d d"],
    compelled: Matrix | None = None,
    *,
    threshold: float = 0.5,
    axes: MaybeAxes = None,
) -> Axes:
    """Draws arrows above `threshold`; solid ones have a compelled direction, dashed a free one.

    Args:
        probability: of every arrow.
        dag: decides where nodes stand, causes above; say the consensus graph.
        compelled: probability that an arrow is there and its direction compelled; without it
            all arrows are solid.
    """
    widths = [PADDING + LETTER * len(name) for name in names]
    drawing = layered_layout(dag, widths, gap=GAP, layer_height=LAYER)
    # Arrows that pass boxes by may leave the room that these take up.
    whole = np.vstack([drawing.places, *drawing.bends.values()])
    spread = np.ptp(whole, axis=0) if len(names) else np.zeros(2)
    size = (float(spread[0]) + max(widths, default=1.0) + 0.4, float(spread[1]) + 0.9)
    axes = new_axes(axes, size)
    for i, j in np.argwhere(probability > threshold):
        free = compelled is not None and bool(compelled[i, j] < probability[i, j] / 2)
        _arrow(axes, drawing, widths, int(i), int(j), float(probability[i, j]), free=free)
    for place, name, width in zip(drawing.places, names, widths, strict=True):
        _box(axes, place, name, width)
    axes.set_xlim(*_limits(whole[:, 0], max(widths, default=1.0) / 2 + 0.1))
    axes.set_ylim(*_limits(whole[:, 1], BOX_HEIGHT)[::-1])
    axes.set_aspect("equal")
    axes.set_axis_off()
    return axes


def _limits(values: np.ndarray, margin: float) -> tuple[float, float]:
    return float(values.min()) - margin, float(values.max()) + margin


def _box(axes: Axes, place: np.ndarray, name: str, width: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = (place[0] - width / 2, place[1] - BOX_HEIGHT / 2)
    style = "round,pad=0,rounding_size=0.06"
    axes.add_patch(
        FancyBboxPatch(
            corner, width, BOX_HEIGHT, boxstyle=style, fc="#eef1f6", ec="#8a95a5", zorder=3
        )
    )
    x, y = place
    axes.text(x, y, literal(name), ha="center", va="center", color=INK, size=9, zorder=4)


def _arrow(
    axes: Axes, drawing: Layout, widths: Sequence[float], i: int, j: int, p: float, *, free: bool
) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    bends = drawing.bends.get((i, j), np.zeros((0, 2)))
    points = np.vstack([drawing.places[i], bends, drawing.places[j]])
    points[0] = _border(points[0], points[1], widths[i])
    points[-1] = _border(points[-1], points[-2], widths[j])
    colour = AMBER if free else BLUE
    axes.add_patch(
        FancyArrowPatch(
            path=Path(*_smooth(points, Path)),
            arrowstyle="-|>",
            mutation_scale=11,
            linewidth=0.6 + 2.4 * p,
            alpha=0.25 + 0.7 * p,
            color=colour,
            linestyle=(0, (4, 2)) if free else "solid",
            zorder=2,
        )
    )


def _border(centre: np.ndarray, towards: np.ndarray, width: float) -> np.ndarray:
    """Where the line from the centre of a box leaves it."""
    step = towards - centre
    half = np.array([width / 2, BOX_HEIGHT / 2])
    with np.errstate(divide="ignore"):
        share = float(np.min(half / np.maximum(np.abs(step), 1e-12)))
    return centre + min(share, 1.0) * step


def _smooth(points: np.ndarray, path: Any) -> tuple[list[np.ndarray], list[Any]]:
    """A line whose bends are rounded: quadratic curves between the middles of its parts."""
    if len(points) == 2:
        return list(points), [path.MOVETO, path.LINETO]
    places, codes = [points[0]], [path.MOVETO]
    for before, after in zip(points[1:-2], points[2:-1], strict=True):
        places += [before, (before + after) / 2]
        codes += [path.CURVE3, path.CURVE3]
    return [*places, points[-2], points[-1]], [*codes, path.CURVE3, path.CURVE3]
