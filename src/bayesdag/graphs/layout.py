"""Where to draw the nodes of a DAG: causes above their effects, with few crossings.

Layers, as Sugiyama, Tagawa and Toda (1981) proposed them: every edge runs downwards, edges that
span several layers bend at invisible nodes, the order within layers follows the neighbours'
barycentres, and coordinates are those that lie nearest to the neighbours' without overlap.
Coordinates grow to the right and downwards. The same graph always gives the same drawing.
"""

# numpy's stubs leave the types of nonzero and flatnonzero unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.graphs.adjacency import topological_order
from bayesdag.types import Graph

ORDER_SWEEPS = 12
PLACE_SWEEPS = 8
# Least distances in units of that between two nodes, by the number of bends among two neighbours.
GAPS = (1.0, 0.8, 0.3)
PASSING = (-0.25, 0.25)  # an edge runs straight down from and to here, in layers, past a node


class Layout(NamedTuple):
    """A drawing of a DAG.

    Attributes:
        places: (x, y) of every node.
        bends: for edges (i, j) that span several layers, the points through which they run, so
            that they avoid the nodes between; others are straight.
    """

    places: Float[np.ndarray, "d 2"]
    bends: dict[tuple[int, int], Float[np.ndarray, "k 2"]]


@dataclass
class _Layers:
    """Nodes and bends, layer by layer, with their neighbours above and below."""

    rows: list[list[int]]
    widths: list[float]
    num_nodes: int  # larger numbers are bends
    bends: dict[tuple[int, int], list[tuple[int, int]]] = field(
        default_factory=dict[tuple[int, int], list[tuple[int, int]]]
    )  # of each edge: (number, layer)
    above: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    below: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def link(self, upper: int, lower: int) -> None:
        self.below.setdefault(upper, []).append(lower)
        self.above.setdefault(lower, []).append(upper)

    def offsets(self, row: Sequence[int], gap: float) -> list[float]:
        """Places of a row whose members stand as close as they may."""
        found = [0.0]
        for left, right in zip(row[:-1], row[1:], strict=True):
            num_bends = (left >= self.num_nodes) + (right >= self.num_nodes)
            apart = (self.widths[left] + self.widths[right]) / 2 + GAPS[num_bends] * gap
            found.append(found[-1] + apart)
        return found


def layered_layout(
    graph: Graph,
    widths: Sequence[float] | None = None,
    *,
    gap: float = 1.0,
    layer_height: float = 1.0,
) -> Layout:
    """Where the nodes of a DAG are drawn, centred at x = 0, and how its edges bend.

    Args:
        graph: acyclic; any non-zero entry is an edge.
        widths: how wide each node is drawn; 0 by default.
        gap: least distance between the borders of two nodes of a layer.
        layer_height: distance between two layers.

    >>> layered_layout(np.array([[0, 1], [0, 0]])).places.tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    edges = np.asarray(graph) != 0
    d = len(edges)
    wide = [0.0] * d if widths is None else [float(width) for width in widths]
    linked = [i for i in range(d) if edges[i].any() or edges[:, i].any()]
    places, bends = np.zeros((d, 2)), {}
    unit = np.array([1.0, layer_height])
    first_free = 0
    if linked:
        layer = _layer_of_each(edges)
        layers = _with_bends(edges, layer, linked, wide)
        _order_rows(layers)
        x = _coordinates(layers, gap)
        first_free = len(layers.rows)
        for i in linked:
            places[i] = x[i], layer[i]
        bends = {
            edge: np.array([(x[b], row + side) for b, row in points for side in PASSING]) * unit
            for edge, points in layers.bends.items()
        }
    _place_isolated(places, [i for i in range(d) if i not in linked], wide, gap, first_free)
    return Layout(places * unit, bends)


def _layer_of_each(edges: np.ndarray) -> list[int]:
    """Longest path from a source; nodes then sink to just above their first child."""
    order = [int(i) for i in topological_order(edges)]
    layer = [0] * len(edges)
    for i in order:
        for j in np.flatnonzero(edges[i]):
            layer[int(j)] = max(layer[int(j)], layer[i] + 1)
    for i in reversed(order):
        children = [layer[int(j)] for j in np.flatnonzero(edges[i])]
        if children:
            layer[i] = max(layer[i], min(children) - 1)
    return layer


def _with_bends(
    edges: np.ndarray, layer: list[int], linked: list[int], widths: list[float]
) -> _Layers:
    rows: list[list[int]] = [[] for _ in range(1 + max(layer[i] for i in linked))]
    layers = _Layers(rows, list(widths), num_nodes=len(widths))
    for i in linked:
        rows[layer[i]].append(i)
    for i, j in zip(*(found.tolist() for found in np.nonzero(edges)), strict=True):
        last = int(i)
        for row in range(layer[int(i)] + 1, layer[int(j)]):
            bend = len(layers.widths)
            layers.widths.append(0.0)
            layers.bends.setdefault((int(i), int(j)), []).append((bend, row))
            rows[row].append(bend)
            layers.link(last, bend)
            last = bend
        layers.link(last, int(j))
    return layers


def _order_rows(layers: _Layers) -> None:
    """Sort rows by the barycentres of their neighbours; the order with fewest crossings wins."""
    best, fewest = [list(row) for row in layers.rows], _num_crossings(layers)
    for sweep in range(ORDER_SWEEPS):
        downwards = sweep % 2 == 0
        rows = layers.rows if downwards else layers.rows[::-1]
        neighbours = layers.above if downwards else layers.below
        for fixed, free in zip(rows[:-1], rows[1:], strict=True):
            position = {node: place for place, node in enumerate(fixed)}
            own = {node: place for place, node in enumerate(free)}
            free.sort(key=lambda v, p=position, o=own: _barycentre(neighbours.get(v), p, o[v]))
        crossings = _num_crossings(layers)
        if crossings < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows[:] = best


def _barycentre(
    neighbours: Sequence[int] | None, position: dict[int, int], own: int
) -> tuple[float, int]:
    """Mean place of the neighbours; a node without any stays where it is."""
    if not neighbours:
        return float(own), own
    return sum(position[n] for n in neighbours) / len(neighbours), own


def _num_crossings(layers: _Layers) -> int:
    total = 0
    for upper, lower in zip(layers.rows[:-1], layers.rows[1:], strict=True):
        position = {node: place for place, node in enumerate(lower)}
        ends = [position[n] for node in upper for n in sorted(layers.below.get(node, []))]
        # Ends of edges in the order of their starts: each inversion is a crossing.
        array = np.array(ends)
        total += int((array[:, None] > array[None, :])[np.triu_indices(len(ends), 1)].sum())
    return total


def _coordinates(layers: _Layers, gap: float) -> dict[int, float]:
    """x of every node: near its neighbours, in the order of its row, without overlap."""
    x: dict[int, float] = {}
    for row in layers.rows:
        x |= _separated(row, [0.0] * len(row), layers.offsets(row, gap))
    for sweep in range(PLACE_SWEEPS):
        downwards = sweep % 2 == 0
        for row in layers.rows if downwards else layers.rows[::-1]:
            wanted = [_mean_of_neighbours(layers, node, x, downwards, sweep) for node in row]
            x |= _separated(row, wanted, layers.offsets(row, gap))
    middle = (max(x.values()) + min(x.values())) / 2
    return {node: value - middle for node, value in x.items()}


def _mean_of_neighbours(
    layers: _Layers, node: int, x: dict[int, float], downwards: bool, sweep: int
) -> float:
    both = sweep >= PLACE_SWEEPS - 2  # at the end both sides count, so that neither is bent
    above, below = layers.above.get(node, []), layers.below.get(node, [])
    chosen = [*above, *below] if both else (above if downwards else below)
    return sum(x[n] for n in chosen) / len(chosen) if chosen else x[node]


def _separated(
    row: Sequence[int], wanted: Sequence[float], offsets: Sequence[float]
) -> dict[int, float]:
    """Places nearest to the wanted ones (least squares), at least as far apart as `offsets`.

    Without the gaps this is isotonic regression: neighbours that are too close form a block
    at the mean of what they want.
    """
    blocks: list[list[float]] = []  # mean, size
    for value, offset in zip(wanted, offsets, strict=True):
        blocks.append([value - offset, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, size = blocks.pop()
            total = blocks[-1][1] + size
            blocks[-1] = [(blocks[-1][0] * blocks[-1][1] + mean * size) / total, total]
    means = [mean for mean, size in blocks for _ in range(int(size))]
    return {node: means[k] + offsets[k] for k, node in enumerate(row)}


def _place_isolated(
    places: np.ndarray, isolated: list[int], widths: list[float], gap: float, first_row: int
) -> None:
    """Nodes without edges: in rows of about the drawing's width below it, in `places`."""
    if not isolated:
        return
    total = sum(widths[i] + gap for i in isolated)
    room = max(float(np.ptp(places[:, 0])), (4 * gap * total) ** 0.5)
    row: list[int] = []
    rows = [row]
    used = 0.0
    for i in isolated:
        if row and used + widths[i] > room:
            row = []
            rows.append(row)
            used = 0.0
        row.append(i)
        used += widths[i] + gap
    for number, members in enumerate(rows):
        alone = _Layers([members], widths, num_nodes=len(widths))
        x = dict(zip(members, alone.offsets(members, gap), strict=True))
        middle = (x[members[0]] + x[members[-1]]) / 2
        for i in members:
            places[i] = x[i] - middle, first_row + number
