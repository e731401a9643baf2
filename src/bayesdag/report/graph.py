"""The graph as the page draws it: where nodes stand, how probable arrows are, which functions."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.data import Dataset
from bayesdag.graphs import layout
from bayesdag.posterior import Posterior
from bayesdag.posterior.functions import function_bands
from bayesdag.posterior.graph_queries import EquivalenceClasses, consensus_graph
from bayesdag.report.numbers import short, sparse
from bayesdag.text import printable

CHARACTER = 8.4  # width of a letter in pixels
PADDING = 24.0
GAP = 22.0
ASPECT = 1.3
MOST_FUNCTIONS = 240
LEAST_FOR_FUNCTION = 0.05
LONGEST_LABEL = 28


class ShownRows(NamedTuple):
    """Measured rows that the page shows behind the functions."""

    values: Float[np.ndarray, "n d"]
    observed: Bool[np.ndarray, "n d"]


def graph_view(posterior: Posterior, classes: EquivalenceClasses) -> dict[str, Any]:
    """Names, places and probabilities, as plain data."""
    edge = posterior.edge_matrix()
    drawing = drawn(edge, posterior.names)
    return {
        "names": [printable(name) for name in posterior.names],
        "places": [short(place, 5) for place in drawing.places],
        "bends": [[i, j, short(points, 5)] for (i, j), points in drawing.bends.items()],
        "edge": sparse(edge),
        "path": sparse(posterior.path_probabilities().to_numpy()),
        "blanket": sparse(np.triu(posterior.markov_blanket_probabilities().to_numpy(), 1)),
        "compelled": sparse(classes.compelled_matrix()),
    }


def drawn(edge: Float[np.ndarray, "d d"], names: tuple[str, ...]) -> layout.Layout:
    """The consensus DAG in layers, in pixels, about as wide and high as its place on the page."""
    widths = [PADDING + CHARACTER * min(len(printable(name)), LONGEST_LABEL) for name in names]
    chosen = consensus_graph(edge)
    flat = layout.layered_layout(chosen, widths, gap=GAP).places
    num_layers = max(float(np.ptp(flat[:, 1])), 1.0)
    height = float(np.clip(np.ptp(flat[:, 0]) / ASPECT / num_layers, 88.0, 420.0))
    return layout.layered_layout(chosen, widths, gap=GAP, layer_height=height)


def shown_rows(data: Dataset, most: int) -> ShownRows:
    """At most so many rows, evenly taken from the table."""
    which = evenly(data.num_rows, most)
    return ShownRows(data.values[which], data.observed[which])


def functions_view(posterior: Posterior, rows: ShownRows | None) -> list[dict[str, Any]]:
    """Functions with their bands on the most probable edges, as plain data."""
    edge, names = posterior.edge_matrix(), posterior.names
    strong = np.argwhere(edge >= LEAST_FOR_FUNCTION)
    order = np.argsort(-edge[strong[:, 0], strong[:, 1]], kind="stable")[:MOST_FUNCTIONS]
    found = function_bands(
        posterior._ensemble,
        posterior.summary["columns"],
        [(names[int(i)], names[int(j)]) for i, j in strong[order]],
        values=None if rows is None else rows.values,
        observed=None if rows is None else rows.observed,
    )
    node = {name: place for place, name in enumerate(names)}
    return [
        {
            "source": node[one.cause],
            "target": node[one.outcome],
            "mean": short(one.mean),
            "low": short(one.low),
            "high": short(one.high),
            "rows": one.rows.tolist(),
            "points": short(one.partial_residuals),
        }
        for one in found
    ]


def evenly(count: int, most: int) -> Int[np.ndarray, " k"]:
    """At most `most` of the numbers below `count`, evenly spread."""
    if count <= most:
        return np.arange(count)
    return (np.arange(most) * count) // most
