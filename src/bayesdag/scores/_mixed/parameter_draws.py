"""Parameters of mixed mechanisms, drawn from the posterior of every family of some graphs."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import softmax

from bayesdag.data import Dataset
from bayesdag.model.mechanisms.mixed import MixedMechanism
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.random import generator
from bayesdag.scores import _sufficient_statistics
from bayesdag.scores._mixed import contingency, gaussian, newton
from bayesdag.scores._mixed.families import Component, FamilyModels
from bayesdag.scores._mixed.features import (
    KNOTS,
    MixedClass,
    MixedColumns,
    Scale,
    ordinal_line,
)
from bayesdag.scores._mixed.gaussian import Regression
from bayesdag.types import Key, Params

_LEAST_PROBABILITY = 1e-12  # logits of a table are finite


class DrawnFunction(NamedTuple):
    """Weights of one node, as its mechanism reads them.

    Attributes:
        weights: by configuration, feature and output.
        by_level: whether configurations have weights of their own.
        scale: of the measurements it reads.
        log_dispersion: of a count.
        ordered: whether outputs are logits of P(code ≤ k).
        hidden: weights into hidden units, of the features before products; None: no network.
    """

    weights: Float[np.ndarray, "c f h"]
    by_level: bool
    scale: Scale
    log_dispersion: float = 0.0
    ordered: bool = False
    hidden: Float[np.ndarray, "f u"] | None = None


def scm_of(data: Dataset) -> SCM:
    """The SCM of columns of these kinds."""
    kinds = tuple(kind.name for kind in data.kinds)
    levels = tuple(len(kind.levels) if kind.is_discrete else 0 for kind in data.kinds)
    return SCM(MixedMechanism(kinds, levels), Gaussian(), data.scaling)


def draw(key: Key, models: FamilyModels, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
    """One function for every node of every graph."""
    rng = generator(key)
    nodes, parents = _sufficient_statistics.of_graphs(graphs)
    num, d = graphs.shape[:2]
    most = max(1, int(parents.sum(axis=1).max(initial=0)))
    functions: list[DrawnFunction | None] = [None] * len(nodes)
    for k, function in _functions(rng, models, nodes, parents, most):
        functions[k] = function
    found = [one for one in functions if one is not None]
    return {
        "mechanism": _assembled(models.columns, found, parents, (num, d, most)),
        "noise": {"log_scale": np.zeros((num, d), dtype=np.float32)},
    }


def _functions(
    rng: np.random.Generator,
    models: FamilyModels,
    nodes: Int[np.ndarray, " f"],
    parents: Bool[np.ndarray, "f d"],
    most: int,
) -> Iterator[tuple[int, DrawnFunction]]:
    """Functions of all families; equal families share what is computed, not what is drawn."""
    for node in np.unique(nodes).tolist():
        which = np.flatnonzero(nodes == node)
        different, index = np.unique(parents[which], axis=0, return_inverse=True)
        labels, values = models.components(node, different)
        for number, chosen in enumerate(different):
            families = which[index.reshape(-1) == number]
            picked = rng.choice(len(labels), size=len(families), p=softmax(values[number]))
            for label in np.unique(picked):
                component, own = labels[label], families[picked == label]
                if component.kind is None:
                    yield from zip(
                        own.tolist(), _tables(rng, models, node, chosen, len(own)), strict=True
                    )
                    continue
                fitted = models.modes(node, chosen, component)
                for k in own:
                    yield int(k), _regression(rng, models, node, chosen, component, fitted, most)


def _tables(
    rng: np.random.Generator,
    models: FamilyModels,
    node: int,
    parents: Bool[np.ndarray, " d"],
    num: int,
) -> list[DrawnFunction]:
    """Logits of so many tables of probabilities."""
    members = np.flatnonzero(parents)
    p = contingency.draw_probabilities(rng, models.rows, node, members, models.ess, num)
    p = np.maximum(p, _LEAST_PROBABILITY)
    logits = np.log(p[:, :, 1:]) - np.log(p[:, :, :1])
    return [DrawnFunction(one[:, None, :], by_level=True, scale=Scale.RAW) for one in logits]


def _regression(
    rng: np.random.Generator,
    models: FamilyModels,
    node: int,
    parents: Bool[np.ndarray, " d"],
    component: Component,
    fitted: "newton.Mode | Regression",
    most: int,
) -> DrawnFunction:
    """Weights of a regression, in the layout of the mechanism's features."""
    columns, kind = models.columns, component.kind
    log_dispersion = float(np.log(component.hyper[1])) if columns.group(node) == "count" else 0.0
    ordered = columns.kinds[node].name == "ordinal" and component.hyper[1] == 1
    if isinstance(fitted, Regression):
        drawn = [gaussian.draw(rng, fitted, c) for c in range(len(fitted.mean))]
        weights = np.zeros((len(drawn), fitted.mean.shape[1], 2))
        for c, (mean, log_scale) in enumerate(drawn):
            weights[c, :, 0] = mean
            weights[c, 0, 1] = log_scale
    else:
        weights = _outputs(columns, node, newton.draw(rng, fitted, 0), ordered)[None]
        if kind == MixedClass.BY_LEVEL:
            weights = _by_configuration(weights[0], columns.num_configurations(parents))
    if kind == MixedClass.BY_LEVEL:
        placed = _spread_lines(columns, parents, weights, most)
        return DrawnFunction(placed, True, component.scale, log_dispersion, ordered)
    hidden = None
    if kind == MixedClass.NETWORK:
        units = models.network_fits.units(node, parents, component.scale)
        hidden = _spread_features(columns, parents, MixedClass.LINES, units, most)
        placed = _spread_units(columns, parents, weights[0], units.shape[1], most)
    else:
        placed = _spread_features(columns, parents, kind, weights[0], most)
    return DrawnFunction(placed[None], False, component.scale, log_dispersion, ordered, hidden)


def _outputs(
    columns: MixedColumns, node: int, theta: Float[np.ndarray, " q"], ordered: bool
) -> Float[np.ndarray, "p h"]:
    """Weights of every feature and output of a node of levels or counts."""
    k = int(columns.num_levels[node])
    if columns.group(node) == "count":
        return theta[:, None]
    if not ordered:
        return theta.reshape(-1, k - 1)
    thresholds, slopes = theta[: k - 1], theta[k - 1 :]
    # A draw from the Gaussian approximation may put thresholds in the wrong order.
    return np.concatenate([np.sort(thresholds)[None], np.tile(-slopes[:, None], (1, k - 1))])


def _by_configuration(weights: Float[np.ndarray, "p h"], size: int) -> Float[np.ndarray, "c f h"]:
    """The constant of all configurations added to that of each."""
    own = weights[1:].reshape(size, -1, weights.shape[1]).copy()
    own[:, 0] += weights[0]
    return own


def _spread_lines(
    columns: MixedColumns,
    parents: Bool[np.ndarray, " d"],
    weights: Float[np.ndarray, "c f h"],
    most: int,
) -> Float[np.ndarray, "c g h"]:
    """[constant, lines of numbers] as [constant, lines of all members]."""
    placed = np.zeros((len(weights), 1 + most, weights.shape[2]))
    placed[:, 0] = weights[:, 0]
    members = np.flatnonzero(parents)
    slots = 1 + np.flatnonzero(columns.is_number[members])
    placed[:, slots] = weights[:, 1:]
    return placed


def _spread_features(
    columns: MixedColumns,
    parents: Bool[np.ndarray, " d"],
    kind: MixedClass | None,
    weights: Float[np.ndarray, "p h"],
    most: int,
) -> Float[np.ndarray, "g h"]:
    """Features that add up, in the layout [constant, lines, curves and indicators, products]."""
    block, start = _block(columns), 1
    placed = np.zeros((1 + most + most * block, weights.shape[1]))
    placed[0] = weights[0]
    for slot, j in enumerate(np.flatnonzero(parents).tolist()):
        beside = 1 + most + slot * block
        if columns.is_level[j]:
            k = int(columns.num_levels[j])
            if columns.kinds[j].name == "ordinal" and kind != MixedClass.CURVES:
                placed[beside : beside + k] = ordinal_line(k)[:, None] * weights[start]
                start += 1
            else:
                placed[beside : beside + k] = weights[start : start + k]
                start += k
            continue
        placed[1 + slot] = weights[start]
        start += 1
        if kind == MixedClass.CURVES:
            placed[beside : beside + len(KNOTS)] = weights[start : start + len(KNOTS)]
            start += len(KNOTS)
    if kind != MixedClass.QUADRATIC:
        return placed
    products = np.zeros((most, most, weights.shape[1]))
    slots = np.flatnonzero(columns.is_number[np.flatnonzero(parents)])
    first, second = np.triu_indices(len(slots))
    products[slots[first], slots[second]] = weights[start:]
    return np.concatenate([placed, products.reshape(most * most, -1)])


def _spread_units(
    columns: MixedColumns,
    parents: Bool[np.ndarray, " d"],
    weights: Float[np.ndarray, "p h"],
    num_units: int,
    most: int,
) -> Float[np.ndarray, "g h"]:
    """An output layer: lines, no products, and units."""
    lines = _spread_features(columns, parents, MixedClass.LINES, weights[:-num_units], most)
    products = np.zeros((most * most, weights.shape[1]))
    return np.concatenate([lines, products, weights[-num_units:]])


def _block(columns: MixedColumns) -> int:
    """Features of a member beside its line."""
    return max(len(KNOTS), int(columns.num_levels.max(initial=0)))


def _assembled(
    columns: MixedColumns,
    functions: list[DrawnFunction],
    parents: Bool[np.ndarray, "f d"],
    shape: tuple[int, int, int],
) -> Params:
    """Functions of all nodes and graphs as arrays; weights in one pool for each graph."""
    num, d, most = shape
    members, strides = _members(columns, functions, parents, most)
    sizes = np.array([one.weights.size for one in functions]).reshape(num, d)
    offset = np.concatenate([np.zeros((num, 1), int), np.cumsum(sizes, axis=1)], axis=1)
    pool = np.zeros((num, int(offset[:, -1].max())), dtype=np.float32)
    for k, one in enumerate(functions):
        start = offset[k // d, k % d]
        pool[k // d, start : start + one.weights.size] = one.weights.reshape(-1)
    knots = np.stack([columns.tables[0].knots, columns.tables[-1].knots]).astype(np.float32)
    params = {
        "members": members.reshape(num, d, most),
        "strides": strides.reshape(num, d, most),
        "offset": offset[:, :-1].astype(np.int32),
        "width": np.array([one.weights.shape[1] for one in functions], np.int32).reshape(num, d),
        "weights": pool,
        "log_dispersion": _by_node([one.log_dispersion for one in functions], num, d),
        "ordered": _by_node([float(one.ordered) for one in functions], num, d),
        "knots": np.tile(knots, (num, 1, 1, 1)),
        "centre": np.tile(columns.centre.astype(np.float32), (num, 1)),
        "unit": np.tile(columns.unit.astype(np.float32), (num, 1)),
    }
    units = max((one.hidden.shape[1] for one in functions if one.hidden is not None), default=0)
    if units:
        hidden = np.zeros((len(functions), 1 + most + most * _block(columns), units), np.float32)
        for k, one in enumerate(functions):
            if one.hidden is not None:
                hidden[k] = one.hidden
        params["hidden"] = hidden.reshape(num, d, *hidden.shape[1:])
    if len(columns.margins.warped):
        margins = columns.margins
        params["warped"] = _by_node([float(one.scale) for one in functions], num, d)
        params["warp"] = np.tile(margins.table.astype(np.float32), (num, 1, 1))
        params["reach"] = np.full((num, d), margins.grid[-1], dtype=np.float32)
    return params


def _by_node(values: list[float], num: int, d: int) -> Float[np.ndarray, "s d"]:
    return np.array(values, dtype=np.float32).reshape(num, d)


def _members(
    columns: MixedColumns,
    functions: list[DrawnFunction],
    parents: Bool[np.ndarray, "f d"],
    most: int,
) -> tuple[Int[np.ndarray, "f m"], Int[np.ndarray, "f m"]]:
    """Parents of every function, filled up with the node itself, and strides of their codes."""
    d = parents.shape[1]
    members = np.tile((np.arange(len(functions)) % d)[:, None], (1, most)).astype(np.int32)
    strides = np.zeros(members.shape, dtype=np.int32)
    for k, one in enumerate(functions):
        own = np.flatnonzero(parents[k])
        members[k, : len(own)] = own
        if one.by_level:
            levels = np.where(columns.is_level[own], columns.num_levels[own], 1)
            before = np.concatenate([[1], np.cumprod(levels)[:-1]]) if len(own) else []
            strides[k, : len(own)] = np.where(columns.is_level[own], before, 0)
    return members, strides
