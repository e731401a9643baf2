"""Additive: evidence of sums of smooth curves, in closed form.

x_j = Σ_i f_ij(x_i) + ε_j, where every f_ij is a natural cubic spline. Curves are linear in a basis
that all variables share, so the prior is conjugate, sums of squares and products of the basis are
computed once, and a parent set costs one small matrix: curves at the price of lines. A family is
a sum of lines or of curves, equally probable beforehand, so that lines pay for no curves. What it
does not know: parents that act together (interactions), and noise that is not Gaussian.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import expit, gammaln, ndtri

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.model.mechanisms.splines import AdditiveSplines, curvature_matrix
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.random import generator
from bayesdag.scores import _sufficient_statistics
from bayesdag.types import Key, Params, ParentSets

# Engine units: data that are standardised have most of their rows between the outermost.
KNOTS = (-2.2, -1.3, -0.6, 0.0, 0.6, 1.3, 2.2)
NUM_FEATURES = len(KNOTS) - 1  # of a variable: itself, and what splines add to a line
CLASSES = (1, NUM_FEATURES)  # features of each parent in a sum of lines, and of curves
_INTERCEPT_PRECISION = 0.01
_NUM_QUANTILES = 1000  # of a normal variable, by which the basis is made orthonormal


class CurveMoments(NamedTuple):
    """Sums of squares and products of the basis, of the rows that count for each node.

    Columns are 1, the features of all variables, then the variables themselves.

    Attributes:
        group: entry of each node.
        num_rows: rows of each entry.
        products: sums of squares and products of the columns.
    """

    group: Int[np.ndarray, " d"]
    num_rows: Int[np.ndarray, " g"]
    products: Float[np.ndarray, "g c c"]

    @property
    def num_variables(self) -> int:
        """Nodes."""
        return len(self.group)

    def columns(self, members: Int[np.ndarray, "*b p"], num: int) -> Int[np.ndarray, "*b q"]:
        """Columns of the constant and of the first features of these variables."""
        own = 1 + members[..., None] * NUM_FEATURES + np.arange(num)
        own = own.reshape(*members.shape[:-1], -1)
        return np.concatenate([np.zeros((*own.shape[:-1], 1), int), own], axis=-1)

    def target(self, node: Int[np.ndarray, "*b"]) -> Int[np.ndarray, "*b"]:
        """Column of each node itself."""
        return 1 + self.num_variables * NUM_FEATURES + node


class _Regression(NamedTuple):
    """Posterior of the weights of some families: mean, root of the precision, and what is left."""

    mean: Float[np.ndarray, "b q"]
    root: Float[np.ndarray, "b q q"]
    left: Float[np.ndarray, " b"]
    num_rows: Int[np.ndarray, " b"]
    log_marginal: Float[np.ndarray, " b"]

    def take(self, which: Bool[np.ndarray, " b"]) -> "_Regression":
        """Some of the families."""
        return _Regression(*(leaf[which] for leaf in self))


@dataclass(frozen=True)
class Additive:
    """Evidence of sums of lines or curves, Gaussian noise; a prior worth one row.

    Weights of features with variance 1 are N(0, σ²) beforehand and σ² ~ IG(shape, scale), in
    engine units. Interactions between parents are not modelled, and arrows that rest on the
    shape of the noise are not found.

    Attributes:
        noise_shape: shape of the inverse gamma prior of σ².
        noise_scale: scale of that prior.
    """

    noise_shape: float = 1.0
    noise_scale: float = 0.1

    def __post_init__(self) -> None:
        for name in ("noise_shape", "noise_scale"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name):g}; it must be above 0")

    def prepare(self, data: Dataset) -> CurveMoments:
        """Sums over the rows that count for each node."""
        x = np.asarray(data.scaled, float)
        table = np.concatenate([np.ones((len(x), 1)), features(x).reshape(len(x), -1), x], axis=1)
        found = _sufficient_statistics.rows_of(table, data.observed)
        mean = found.mean * np.sqrt(found.num_rows)[:, None]
        products = found.scatter + mean[:, :, None] * mean[:, None, :]
        return CurveMoments(found.group, found.num_rows, products)

    def log_evidence(
        self, stats: CurveMoments, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log p(x_node | x_parents), for m parent sets."""
        result = np.empty(len(parents))
        for which, members in _in_pieces(parents):
            nodes = np.full(len(which), node)
            by_class = [self._regression(stats, nodes, members, num) for num in CLASSES]
            result[which] = np.logaddexp(*(found.log_marginal for found in by_class)) - log(2)
        return result

    def log_evidence_of_additions(
        self, stats: CurveMoments, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """The same with every further parent j, at the price of one set.

        Entries of the node itself and of variables that are parents already mean nothing.
        """
        pairs = [(node, np.flatnonzero(row)) for node, row in zip(nodes, parents, strict=True)]
        by_class = [
            np.stack([self._additions(stats, int(node), members, num) for node, members in pairs])
            for num in CLASSES
        ]
        return np.logaddexp(*by_class) - log(2)

    def scm(self, data: Dataset) -> SCM:
        """Additive splines with Gaussian noise."""
        return SCM(AdditiveSplines(num_knots=len(KNOTS)), Gaussian(), data.scaling)

    def draw(self, key: Key, stats: CurveMoments, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """Exact posterior draws given each graph: lines or curves, σ², then the weights."""
        rng = generator(key)
        nodes, parents = _sufficient_statistics.of_graphs(graphs)
        num, widest = len(nodes), max(1, int(parents.sum(axis=1).max(initial=0)))
        values = np.zeros((num, widest, len(KNOTS)))
        listed = np.zeros((num, widest), dtype=np.int32)
        bias, log_scale = np.empty(num), np.empty(num)
        for which, members in _in_pieces(parents):
            p = members.shape[1]
            line, curve = (self._regression(stats, nodes[which], members, n) for n in CLASSES)
            bent = rng.random(len(which)) < expit(curve.log_marginal - line.log_marginal)
            for chosen, found, features in ((~bent, line, 1), (bent, curve, NUM_FEATURES)):
                at = which[chosen]
                weights, log_scale[at] = self._drawn(rng, found.take(chosen))
                by_parent = weights[:, 1:].reshape(len(at), p, features)
                bias[at] = weights[:, 0]
                values[at, :p] = by_parent @ _basis()[:, :features].T
            listed[which] = np.pad(members, ((0, 0), (0, widest - p)))
        return _params(graphs.shape, values, listed, bias, log_scale)

    def describe(self) -> str:
        """The score with its prior, in words."""
        return "sums of lines or of curves, a prior worth one row"

    def _drawn(
        self, rng: np.random.Generator, found: "_Regression"
    ) -> tuple[Float[np.ndarray, "b q"], Float[np.ndarray, " b"]]:
        """Weights of some families, and the logarithm of their noise scale."""
        shape = self.noise_shape + 0.5 * found.num_rows
        variance = (self.noise_scale + 0.5 * found.left) / rng.gamma(shape)
        noise = rng.standard_normal(found.mean.shape)[..., None]
        step = np.linalg.solve(np.swapaxes(found.root, 1, 2), noise)[..., 0]
        return found.mean + np.sqrt(variance)[:, None] * step, 0.5 * np.log(variance)

    def _regression(
        self,
        stats: CurveMoments,
        node: Int[np.ndarray, " b"],
        members: Int[np.ndarray, "b p"],
        num: int,
    ) -> _Regression:
        """The node on the first `num` features of its parents."""
        entry, columns, target = stats.group[node], stats.columns(members, num), stats.target(node)
        gram = stats.products[entry[:, None, None], columns[:, :, None], columns[:, None, :]]
        slope = stats.products[entry[:, None], columns, target[:, None]]
        precision = _precision(members.shape[1] * num)
        root = np.linalg.cholesky(gram + np.diag(precision))
        half = np.linalg.solve(root, slope[..., None])
        mean = np.linalg.solve(np.swapaxes(root, 1, 2), half)[..., 0]
        left = stats.products[entry, target, target] - (half[..., 0] ** 2).sum(axis=1)
        left, num_rows = np.maximum(left, 0.0), stats.num_rows[entry]
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        log_marginal = self._log_marginal(num_rows, left, volume, precision)
        return _Regression(mean, root, left, num_rows, log_marginal)

    def _log_marginal(
        self, num_rows: np.ndarray, left: np.ndarray, volume: np.ndarray, precision: np.ndarray
    ) -> Float[np.ndarray, " b"]:
        """Of the rows, from what is left of their squares and the log root determinant."""
        shape = self.noise_shape + 0.5 * num_rows
        prior = 0.5 * np.log(precision).sum()
        constant = self.noise_shape * np.log(self.noise_scale) - gammaln(self.noise_shape)
        constant = constant + gammaln(shape) - 0.5 * num_rows * np.log(2 * np.pi)
        return constant + prior - volume - shape * np.log(self.noise_scale + 0.5 * left)

    def _additions(
        self, stats: CurveMoments, node: int, members: Int[np.ndarray, " p"], num: int
    ) -> Float[np.ndarray, " d"]:
        """Evidence of one node with these parents and, in turn, each variable besides."""
        products, d = stats.products[stats.group[node]], stats.num_variables
        target, columns = int(stats.target(np.array([node]))[0]), stats.columns(members, num)
        blocks = 1 + np.arange(d * NUM_FEATURES).reshape(d, NUM_FEATURES)[:, :num]
        precision = _precision(len(members) * num)
        root = np.linalg.cholesky(products[np.ix_(columns, columns)] + np.diag(precision))
        whitened = np.linalg.solve(root, products[columns])
        own, others = whitened[:, target], np.moveaxis(whitened[:, blocks], 0, 2)
        # What the parents leave of the curves of each variable, and of their part in the node.
        alone = products[blocks[:, :, None], blocks[:, None, :]] + np.eye(num)
        rest = alone - others @ np.swapaxes(others, 1, 2)
        # A parent already: nothing of it is left, and its entry means nothing.
        rest[members] = np.eye(num)
        inner = np.linalg.cholesky(rest)
        shared = products[blocks, target] - others @ own
        explained = (np.linalg.solve(inner, shared[..., None])[..., 0] ** 2).sum(axis=1)
        left = np.maximum(products[target, target] - own @ own - explained, 0.0)
        volume = np.log(np.diagonal(inner, axis1=1, axis2=2)).sum(axis=1)
        volume = volume + np.log(np.diagonal(root)).sum()
        num_rows = np.full(d, stats.num_rows[stats.group[node]])
        return self._log_marginal(num_rows, left, volume, np.append(precision, np.ones(num)))


def _in_pieces(
    parents: ParentSets,
) -> Iterator[tuple[Int[np.ndarray, " b"], Int[np.ndarray, "b p"]]]:
    """Parent sets by size, in pieces of bounded memory."""
    return _sufficient_statistics.by_size(parents, extra=4 * NUM_FEATURES**2 * parents.shape[1])


def features(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d q"]:
    """Every variable itself, and what splines add to it."""
    return cardinal(values) @ _basis()


def cardinal(x: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n k"]:
    """Natural cubic splines that are 1 at one of the knots and 0 at the others."""
    knots = np.array(KNOTS)
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    gap = (knots[left + 1] - knots[left])[..., None]
    after = (x[..., None] - knots[left][..., None]) / gap
    before = 1 - after
    unit, bends = np.eye(len(knots)), curvature_matrix(knots)
    straight = before * unit[left] + after * unit[left + 1]
    bent = (np.maximum(before, 0) ** 3 - before) * bends[left]
    bent = bent + (np.maximum(after, 0) ** 3 - after) * bends[left + 1]
    return straight + bent * gap**2 / 6


@cache
def _basis() -> Float[np.ndarray, "k q"]:
    """Values at the knots of the features: a line and curves, orthonormal for a normal variable.

    The same for all data: the evidence of more rows is then that of fewer, times what these
    predict of the others.
    """
    knots = np.array(KNOTS)
    x = ndtri((np.arange(_NUM_QUANTILES) + 0.5) / _NUM_QUANTILES)
    design = cardinal(x)
    lines, at_knots = np.stack([np.ones_like(x), x], axis=1), np.stack([np.ones_like(knots), knots])
    curved = np.eye(len(knots)) - at_knots.T @ np.linalg.lstsq(lines, design, rcond=None)[0]
    variance, direction = np.linalg.eigh((design @ curved).T @ (design @ curved) / len(x))
    kept = np.argsort(-variance)[: NUM_FEATURES - 1]
    bent = curved @ direction[:, kept] / np.sqrt(variance[kept])
    return np.concatenate([knots[:, None], bent], axis=1)


def _precision(num_features: int) -> Float[np.ndarray, " q"]:
    """Of the intercept and of the weights, in units of the noise."""
    return np.append(_INTERCEPT_PRECISION, np.ones(num_features))


def _params(
    shape: tuple[int, ...],
    values: Float[np.ndarray, "m w k"],
    listed: Int[np.ndarray, "m w"],
    bias: Float[np.ndarray, " m"],
    log_scale: Float[np.ndarray, " m"],
) -> Params:
    """Parameters of s graphs with d nodes each."""
    num, d = shape[:2]
    curvatures = values @ curvature_matrix(np.array(KNOTS)).T
    own = {"members": listed, "values": values, "curvatures": curvatures, "bias": bias}
    mechanism = {name: leaf.reshape(num, d, *leaf.shape[1:]) for name, leaf in own.items()}
    mechanism["knots"] = np.tile(np.array(KNOTS), (num, d, 1))
    return {"mechanism": mechanism, "noise": {"log_scale": log_scale.reshape(num, d)}}


build = Additive
