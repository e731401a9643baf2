"""Figures for notebooks and papers, drawn with matplotlib from plain arrays.

Every function draws on `axes` where it is given, else on a new figure, and returns the axes.
"""

from bayesdag.plot.axes import save
from bayesdag.plot.chains import traces
from bayesdag.plot.effects import effect_density, function_band
from bayesdag.plot.graph import graph
from bayesdag.plot.matrices import heat_map, reliability_curve

__all__ = [
    "effect_density",
    "function_band",
    "graph",
    "heat_map",
    "reliability_curve",
    "save",
    "traces",
]
