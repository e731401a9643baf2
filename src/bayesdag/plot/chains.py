"""Traces of the chains."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from bayesdag.errors import InputError
from bayesdag.plot.axes import CYCLE, Axes, MaybeAxes, literal, new_axes, plain


def traces(
    stats: Mapping[str, Float[np.ndarray, "chain draw"]],
    *,
    name: str = "log_joint",
    axes: MaybeAxes = None,
) -> Axes:
    """One statistic of the draws, chain by chain."""
    if name not in stats:
        raise InputError(f"no statistic is called {name!r}; there are: {', '.join(stats)}")
    axes = plain(new_axes(axes, (6.0, 2.8)))
    for chain, values in enumerate(stats[name]):
        axes.plot(values, lw=0.6, color=CYCLE[chain % len(CYCLE)], label=f"chain {chain + 1}")
    axes.set(xlabel="draw", ylabel=literal(name.replace("_", " ")))
    if 1 < len(stats[name]) <= len(CYCLE):
        axes.legend(frameon=False, fontsize=8, ncols=4)
    return axes
