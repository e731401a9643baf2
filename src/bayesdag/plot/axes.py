"""Where a figure is drawn, and the looks that all figures share."""

from pathlib import Path
from typing import TYPE_CHECKING, Optional

from bayesdag.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    MaybeAxes = Axes | None
else:  # matplotlib is imported where it draws; checks of types look the name up
    Axes = "matplotlib.axes.Axes"
    MaybeAxes = Optional[Axes]  # noqa: UP045 (of a name, not of a type)

BLUE, AMBER, INK, SOFT = "#2450c4", "#8f4a00", "#1b2230", "#55606f"
CYCLE = ("#2450c4", "#b25a00", "#1c7a45", "#a5278e", "#5b6470", "#0c7d8c", "#b3261e", "#6c4bd1")


def new_axes(axes: MaybeAxes = None, size: tuple[float, float] = (6.0, 4.0)) -> Axes:
    """`axes` itself, or the axes of a new figure; says what to install without matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise InputError(
            "figures need matplotlib, which is not installed: pip install 'bayesdag[plot]' "
            "(a report needs nothing more: bayesdag report)"
        ) from error
    if axes is not None:
        return axes
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def plain(axes: Axes) -> Axes:
    """Axes without a box around them."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def literal(text: str) -> str:
    """A name as matplotlib writes it: dollar signs begin no formula."""
    return text.replace("$", r"\$")


def save(axes: Axes, path: Path, form: str) -> None:
    """Write the figure of some axes as svg, pdf or png; the same figure gives the same bytes."""
    from matplotlib import rc_context

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure = axes.get_figure(root=True)
    assert figure is not None, "axes are drawn in a figure"
    with rc_context({"svg.hashsalt": "bayesdag"}):
        figure.savefig(path, format=form, dpi=200, metadata=dates.get(form))
