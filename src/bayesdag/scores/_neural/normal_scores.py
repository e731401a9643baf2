"""Normal scores of columns whose own distribution is not normal.

Noise enters through a monotone function of the target more often than not: products, logarithms,
sensors. A family is therefore scored on the values as they are and on their normal scores,
z = h(x) with h monotone and z standard normal. Both are densities of the same rows,

    log p(x_j | parents) = log p(z_j | parents) + Σ log h'(x_j),

where the last term is the same for all parents: the density that the column has by itself,
estimated from the other rows, over that of a normal variable. Copulas of normal variables thus
keep their equivalence, whatever their margins.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp, ndtri

from bayesdag.types import Array
from bayesdag.types.late_imports import compiled, jax, jnp, late

stats = late("scipy.stats")

NUM_KNOTS = 33  # of the table of h from which functions are drawn
# A column is warped if its density, estimated from other rows, beats a normal one by as much.
LEAST_GAIN = 5.0  # nats; among 120 columns of normal variables the largest gain was 5
_LEAST_DISTINCT = 0.5  # fraction of the rows; a column with fewer values has no density
_MOST_SOURCES = 4000  # rows from which a density is estimated
_PILOT = 0.74  # bandwidth in standard deviations, times the fifth root of the number of rows
_NEIGHBOURS = (0.1, 0.2)  # half-widths of a bandwidth, in rows, times their number to the .8
_LEAST_BANDWIDTH = 1e-3  # of a standardised column
_LEAST_DENSITY = 1e-12
_LEAST_STEP = 1e-5  # of the table, as a fraction of its range


class NormalScores(NamedTuple):
    """What is known of the margins of d columns.

    Attributes:
        warped: columns that have normal scores of their own; the others are left as they are.
        values: their normal scores.
        log_slope: Σ log h' over the rows that nature chose; 0 for columns that are left.
        table: values of each column at which h takes the values of `grid`.
        grid: even values of h.
    """

    warped: Int[np.ndarray, " w"]
    values: Float[np.ndarray, "n w"]
    log_slope: Float[np.ndarray, " d"]
    table: Float[np.ndarray, "d m"]
    grid: Float[np.ndarray, " m"]

    @property
    def place(self) -> Int[np.ndarray, " d"]:
        """The column of the table [values, normal scores] in which each column is warped."""
        d = len(self.log_slope)
        place = np.arange(d)
        place[self.warped] = d + np.arange(len(self.warped))
        return place

    @property
    def origin(self) -> Int[np.ndarray, " c"]:
        """The column from which each column of that table comes."""
        return np.concatenate([np.arange(len(self.log_slope)), self.warped])


def normal_scores(
    rng: np.random.Generator,
    values: Float[np.ndarray, "n d"],
    observed: Bool[np.ndarray, "n d"],
) -> NormalScores:
    """Normal scores of the columns that are not normal; rows that were set say nothing of them."""
    d, found = values.shape[1], no_scores(values)
    grid, table, log_slope = found.grid, found.table, found.log_slope
    scores, warped = [], []
    for j in range(d):
        own = values[observed[:, j], j]
        if len(np.unique(own)) < max(_LEAST_DISTINCT * len(own), 3):
            continue
        z = ndtri((stats.rankdata(own) - 0.5) / len(own))
        unit = own.std()
        gain = _log_density(rng, (own - own.mean()) / unit) - float(stats.norm.logpdf(z).sum())
        if gain > LEAST_GAIN:
            at = np.argsort(own, kind="stable")
            scores.append(np.interp(values[:, j], own[at], z[at]))
            table[j] = _increasing(np.interp(grid, z[at], own[at]))
            log_slope[j] = gain - len(own) * np.log(unit)
            warped.append(j)
    columns = np.stack(scores, axis=1) if scores else found.values
    return found._replace(warped=np.array(warped, dtype=int), values=columns)


def no_scores(values: Float[np.ndarray, "n d"]) -> NormalScores:
    """All columns are left as they are."""
    n, d = values.shape
    highest = float(ndtri(1 - 0.5 / n))
    grid = np.linspace(-highest, highest, NUM_KNOTS)
    none = np.array([], dtype=int)
    return NormalScores(none, np.zeros((n, 0)), np.zeros(d), np.tile(grid, (d, 1)), grid)


def _increasing(values: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """The table with steps that are not too small, so that it has an inverse."""
    least = _LEAST_STEP * max(values[-1] - values[0], 1e-30)
    return values[0] + np.append(0, np.cumsum(np.maximum(np.diff(values), least)))


def _log_density(rng: np.random.Generator, x: Float[np.ndarray, " n"]) -> float:
    """Σ log density of the rows, each estimated from others; mean over estimators.

    A kernel of one width suits columns near a normal one, widths by the distance of neighbours
    those with peaks and long tails.
    """
    chosen = np.sort(rng.permutation(len(x))[:_MOST_SOURCES])
    sources = x[chosen]
    own = np.full(len(x), -1)
    own[chosen] = np.arange(len(chosen))
    widths = np.stack([_even_widths(sources), *(_widths(sources, k) for k in _NEIGHBOURS)])
    x, sources, widths = (a.astype(np.float32) for a in (x, sources, widths))
    densities = np.asarray(_left_out(x, sources, widths, own.astype(np.int32)), float)
    total = np.log(np.maximum(densities, _LEAST_DENSITY)).sum(axis=1)
    return float(logsumexp(total) - np.log(len(total)))


@compiled()
def _left_out(
    x: Float[Array, " n"],
    sources: Float[Array, " s"],
    widths: Float[Array, "e s"],
    own: Int[Array, " n"],
) -> Float[Array, "e n"]:
    """Density at every row from all sources but itself, for every estimator."""
    number = jnp.arange(len(sources))

    def at(row: tuple[Array, Array]) -> Array:
        value, self_number = row
        distance = (value - sources)[None, :] / widths
        kernel = jnp.where(number == self_number, 0.0, jnp.exp(-0.5 * distance**2)) / widths
        others = jnp.where(self_number >= 0, len(sources) - 1.0, float(len(sources)))
        return kernel.sum(axis=1) / others.astype(kernel.dtype)

    found = jax.lax.map(at, (x, own), batch_size=64)
    return found.T / np.sqrt(2 * np.pi)


def _even_widths(sources: Float[np.ndarray, " s"]) -> Float[np.ndarray, " s"]:
    width = _PILOT * sources.std() * len(sources) ** -0.2
    return np.full(len(sources), max(width, _LEAST_BANDWIDTH))


def _widths(sources: Float[np.ndarray, " s"], factor: float) -> Float[np.ndarray, " s"]:
    """Half the distance that the neighbours of each source span."""
    s = len(sources)
    k = int(np.clip(factor * s**0.8, 3, s - 1))
    ordered = np.sort(sources)
    low = np.clip(np.searchsorted(ordered, sources) - k // 2, 0, s - 1 - k)
    return np.maximum((ordered[low + k] - ordered[low]) / 2, _LEAST_BANDWIDTH)
