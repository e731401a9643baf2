"""The evidence of the paper engine's own linear model, by one-dimensional quadrature.

x_j = Σ_i θ_ij x_i + ε_j with θ_ij ~ N(0, 1) and σ_j² ~ IG(1.5, 1), independent of each other:
this judges that engine under its own prior, where BGe would blame it for another one. Unlike
BGe it tells Markov equivalent graphs apart, because the noise has a scale of its own.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy.special import gammaln

from bayesdag.data import Dataset
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.random import generator
from bayesdag.scores import _sufficient_statistics
from bayesdag.scores._grid_sampling import Chords
from bayesdag.types import Key, Params, ParentSets

NEGLIGIBLE = 45.0  # nats below the peak at which the quadrature stops: e^-45 of the mass
NODES_A_WIDTH = 2.0  # grid points for each standard deviation of the sharpest possible peak
POINTS_TOGETHER = 32  # the number of points is a multiple of it, so that few sizes occur
ENVELOPE = 0.35  # nats by which the log density may exceed its linear interpolation


class Family(NamedTuple):
    """Nodes and their parents, in the principal axes of the parents' scatter.

    Attributes:
        num_rows: N.
        total: sum of squares of the node.
        eigenvalues: of the scatter matrix of the parents, times the prior variance.
        projection: products of the node with each principal axis.
        axes: principal axes, as columns.
    """

    num_rows: Int[np.ndarray, " b"]
    total: Float[np.ndarray, " b"]
    eigenvalues: Float[np.ndarray, "b p"]
    projection: Float[np.ndarray, "b p"]
    axes: Float[np.ndarray, "b p p"]

    def residual(self) -> Float[np.ndarray, " b"]:
        """Sum of squares that no weights explain."""
        known = self.eigenvalues > 1e-12 * np.maximum(self.total[:, None], 1.0)
        explained = self.projection**2 / np.where(known, self.eigenvalues, np.inf)
        return np.maximum(self.total - explained.sum(axis=1), 0)

    def take(self, rows: Int[np.ndarray, " r"]) -> "Family":
        """Some of the families."""
        return Family(*(field[rows] for field in self))


@dataclass(frozen=True)
class LinearGaussian:
    """Evidence in engine units of linear families with independent priors.

    The model has no intercept and takes centred data. Each node is therefore centred over
    the rows in which it was observed, at no charge, and the intercepts that `draw` returns
    are those that make the means agree.

    Attributes:
        weight_scale: prior standard deviation of every weight.
        noise_shape: shape of the inverse gamma prior of σ².
        noise_scale: scale of that prior.
    """

    weight_scale: float = 1.0
    noise_shape: float = 1.5
    noise_scale: float = 1.0

    def prepare(self, data: Dataset) -> _sufficient_statistics.RowMoments:
        """Means and sums of squares and products of the rows that count for each node."""
        return _sufficient_statistics.rows_of(data.scaled, data.observed)

    def log_evidence(
        self, stats: _sufficient_statistics.RowMoments, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """log p(x_node | x_parents), for m parent sets."""
        result = np.empty(len(parents))
        for which, members in _sufficient_statistics.by_size(parents, extra=2000):
            family = self._family(stats, np.full(len(which), node), members)
            needed = -(-self._num_points(family) // POINTS_TOGETHER) * POINTS_TOGETHER
            # By size, so that the value of a set does not depend on those asked for with it.
            for count in np.unique(needed).tolist():
                rows = np.flatnonzero(needed == count)
                some = family.take(rows)
                grid = self._grid(some, count)
                values = self._log_density(some, grid)
                step = grid[:, 1] - grid[:, 0]
                result[which[rows]] = np.logaddexp.reduce(values, axis=1) + np.log(step)
        return result

    def scm(self, data: Dataset) -> SCM:
        """Linear mechanisms with Gaussian noise."""
        return SCM(Linear(), Gaussian(), data.scaling)

    def draw(
        self,
        key: Key,
        stats: _sufficient_statistics.RowMoments,
        graphs: Shaped[np.ndarray, "s d d"],
    ) -> Params:
        """Exact posterior draws given each graph: σ by its density, then θ given σ."""
        rng = generator(key)
        nodes, parents = _sufficient_statistics.of_graphs(graphs)
        weights = np.zeros(graphs.shape)
        bias, log_scale = np.empty(len(nodes)), np.empty(len(nodes))
        for which, members in _sufficient_statistics.by_size(parents, extra=2000):
            node, mean = nodes[which], stats.mean[stats.group[nodes[which]]]
            family = self._family(stats, node, members)
            log_scale[which] = self._draw_log_scale(rng, family)
            variance = np.exp(2 * log_scale[which])[:, None]
            precision = variance + family.eigenvalues
            whitened = family.projection / precision
            whitened += np.sqrt(variance / precision) * rng.standard_normal(members.shape)
            slopes = self.weight_scale * (family.axes @ whitened[:, :, None])[:, :, 0]
            weights[_sufficient_statistics.edges_of(graphs.shape, which, members)] = slopes
            explained = (slopes * np.take_along_axis(mean, members, axis=1)).sum(axis=1)
            bias[which] = mean[np.arange(len(which)), node] - explained
        return _sufficient_statistics.linear_params(weights, bias, log_scale)

    def _family(
        self,
        stats: _sufficient_statistics.RowMoments,
        node: Int[np.ndarray, " b"],
        members: Int[np.ndarray, "b p"],
    ) -> Family:
        """The regression of each node on its parents, in the axes of their scatter."""
        entry = stats.group[node][:, None]
        scatter = stats.scatter[entry[:, :, None], members[:, :, None], members[:, None, :]]
        eigenvalues, axes = np.linalg.eigh(self.weight_scale**2 * scatter)
        target = self.weight_scale * stats.scatter[entry, members, node[:, None]]
        return Family(
            num_rows=stats.num_rows[entry[:, 0]],
            total=stats.scatter[entry[:, 0], node, node],
            eigenvalues=np.maximum(eigenvalues, 0),
            projection=(np.swapaxes(axes, 1, 2) @ target[:, :, None])[:, :, 0],
            axes=axes,
        )

    def _log_density(
        self, family: Family, log_sigma: Float[np.ndarray, "b k"]
    ) -> Float[np.ndarray, "b k"]:
        """log p(x_i, log σ | x_S), the weights integrated out."""
        num_parents = family.eigenvalues.shape[1]
        variance = np.exp(2 * log_sigma)
        log_det, explained = np.zeros_like(variance), np.zeros_like(variance)
        # One axis at a time: a third dimension would only cost memory.
        for axis in range(num_parents):
            spread = variance + family.eigenvalues[:, axis, None]
            log_det += np.log(spread)
            explained += family.projection[:, axis, None] ** 2 / spread
        free = (family.num_rows - num_parents)[:, None]
        square = (family.total[:, None] - explained) / variance
        likelihood = -free * log_sigma - 0.5 * (log_det + square)
        likelihood -= 0.5 * family.num_rows[:, None] * np.log(2 * np.pi)
        prior = -2 * self.noise_shape * log_sigma - self.noise_scale / variance
        constant = np.log(2) + self.noise_shape * np.log(self.noise_scale)
        return likelihood + prior + constant - gammaln(self.noise_shape)

    def _num_points(self, family: Family) -> Int[np.ndarray, " b"]:
        """Points that the grid of each family needs."""
        low, high, most = self._range(family)
        return ((high - low) * NODES_A_WIDTH * np.sqrt(2 * most)).astype(int) + 2

    def _grid(self, family: Family, count: int | None = None) -> Float[np.ndarray, "b k"]:
        """Equally spaced log σ that cover all of the density, however many peaks it has."""
        low, high, _ = self._range(family)
        count = int(self._num_points(family).max()) if count is None else count
        return low[:, None] + (high - low)[:, None] * np.linspace(0, 1, count)

    def _range(self, family: Family) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ends of the grid of each family, and the rows that bound how narrow a peak is.

        Setting the derivative to zero shows that every peak has σ² between
        (residual + 2 scale)/(N + 2 shape) and (total + 2 scale)/(N - |S| + 2 shape), and bounds
        how fast the density falls outside; no peak is narrower than 1/√(4(N + 2 shape)). The
        trapezoid rule then converges faster than any power of the spacing.
        """
        most = family.num_rows + 2 * self.noise_shape
        free = np.maximum(family.num_rows - family.eigenvalues.shape[1], 0)
        least = free + 2 * self.noise_shape
        low = 0.5 * np.log((family.residual() + 2 * self.noise_scale) / most)
        high = 0.5 * np.log((family.total + 2 * self.noise_scale) / least)
        low = low - np.sqrt(NEGLIGIBLE / most)
        high = high + (NEGLIGIBLE + np.sqrt(NEGLIGIBLE**2 + 4 * NEGLIGIBLE * least)) / (2 * least)
        return low, high, most

    def _draw_log_scale(self, rng: np.random.Generator, family: Family) -> Float[np.ndarray, " b"]:
        """log σ by rejection from the exponential of a linear interpolation of its density.

        Between grid points the log density lies at most an eighth of the squared spacing
        times the curvature above its chord: for any number of rows less than `ENVELOPE`,
        wherever the density is within twelve nats of its peak.
        """
        grid = self._grid(family)
        values = self._log_density(family, grid)
        peak = values.max(axis=1)
        chords = Chords(grid, values - peak[:, None])
        waiting = np.arange(len(grid))
        result = np.empty(len(grid))
        while len(waiting):
            proposal, chord = chords.draw(rng, waiting)
            height = self._log_density(family.take(waiting), proposal[:, None])[:, 0]
            excess = height - peak[waiting] - chord
            accepted = rng.random(len(waiting)) < np.exp(excess - ENVELOPE)
            result[waiting[accepted]] = proposal[accepted]
            waiting = waiting[~accepted]
        return result


build = LinearGaussian
