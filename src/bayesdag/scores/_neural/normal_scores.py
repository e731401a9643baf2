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

NUM_KNOTS = 33  # of the table of h from which functions are drawn
# A column is warped if its density, estimated from other rows, beats a normal one by as much.
LEAST_GAIN = 5.0  # nats; among 120 columns of normal variables the largest gain was 5
_LEAST_DISTINCT = 0.5  # fraction of the rows; a column with fewer values has no density
_MOST_SOURCES = 4000  # rows from which a density is estimated
_PILOT = 0.74  # bandwidth in standard deviations, times the fifth root of the number of rows
_NEIGHBOURS = (0.1, 0.2)  # half-widths of a bandwidth, in rows, times their number to the .8
_LEAST_BANDWIDTH = 1e-3  # of a standardised column
_LEAST_DENSITY = 1e-12
_POINT_SPACING = 0.25  # of the points where densities are computed, in widths of kernels
_POINTS_AT_ONCE = 16  # whose kernels fit into the cache, and whose sources are near one another
_REACH = 8.5  # of a kernel, in its widths; what is beyond is below the least density
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
        z = ndtri((_ranks(own) - 0.5) / len(own))
        unit = own.std()
        gain = _log_density(rng, (own - own.mean()) / unit) - _log_normal(z)
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


def _ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """From 1 on; equal values share the mean of theirs."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[which.reshape(-1)]


def _log_normal(z: Float[np.ndarray, " n"]) -> float:
    """Log density of standard normal numbers, all together."""
    return float(-0.5 * (z @ z) - 0.5 * len(z) * np.log(2 * np.pi))


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
    densities = _left_out(x, sources, widths, own)
    total = np.log(np.maximum(densities, _LEAST_DENSITY)).sum(axis=1)
    return float(logsumexp(total) - np.log(len(total)))


def _left_out(
    x: Float[np.ndarray, " n"],
    sources: Float[np.ndarray, " s"],
    widths: Float[np.ndarray, "e s"],
    own: Int[np.ndarray, " n"],
) -> Float[np.ndarray, "e n"]:
    """Density at every row from all sources but itself, for every estimator.

    Kernels are added up where rows lie, not nearer to one another than a part of their widths;
    cubics with the values and slopes of there serve the rows between them.
    """
    order = np.argsort(x, kind="stable")
    by_value = np.argsort(sources, kind="stable")
    least = np.interp(x[order], sources[by_value], widths.min(axis=0)[by_value])
    points = x[order][_spaced(x[order], _POINT_SPACING * least)]
    found = np.stack([_between(x, points, *_kernels(points, sources, own_)) for own_ in widths])
    itself = own >= 0
    found[:, itself] -= 1 / widths[:, own[itself]]
    others = np.where(itself, len(sources) - 1, len(sources))
    return np.maximum(found, 0) / others / np.sqrt(2 * np.pi)


def _spaced(ordered: Float[np.ndarray, " n"], spacing: Float[np.ndarray, " n"]) -> list[int]:
    """Places in an ordered column, each as far from the last as the spacing there allows."""
    reach = np.searchsorted(ordered, ordered + spacing, side="right") - 1
    places, last = [0], len(ordered) - 1
    while places[-1] < last:
        places.append(max(int(reach[places[-1]]), places[-1] + 1))
    return places


def _kernels(
    at: Float[np.ndarray, " p"], sources: Float[np.ndarray, " s"], widths: Float[np.ndarray, " s"]
) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]:
    """The sum of the kernels of all sources within reach of each point, and its slope.

    Args:
        at: points, smallest first.
    """
    by_value = np.argsort(sources, kind="stable")
    sources, reach, per_width = sources[by_value], _REACH * widths[by_value], 1 / widths[by_value]
    # Bounds that only grow: no source before the first or after the last is within reach.
    lowest = np.minimum.accumulate((sources - reach)[::-1])[::-1]
    highest = np.maximum.accumulate(sources + reach)
    values, slopes = np.empty(len(at)), np.empty(len(at))
    for start in range(0, len(at), _POINTS_AT_ONCE):
        piece = slice(start, start + _POINTS_AT_ONCE)
        first = np.searchsorted(highest, at[piece][0])
        near = slice(first, np.searchsorted(lowest, at[piece][-1], side="right"))
        distance = (at[piece, None] - sources[near]) * per_width[near]
        kernel = np.square(distance)
        kernel *= -0.5
        kernel = np.exp(kernel, out=kernel)
        values[piece] = np.einsum("ps,s->p", kernel, per_width[near])
        kernel *= distance
        slopes[piece] = -np.einsum("ps,s->p", kernel, per_width[near] ** 2)
    return values, slopes


def _between(
    x: Float[np.ndarray, " n"],
    points: Float[np.ndarray, " p"],
    values: Float[np.ndarray, " p"],
    slopes: Float[np.ndarray, " p"],
) -> Float[np.ndarray, " n"]:
    """Cubics between points, with the values and slopes that are known there."""
    if len(points) == 1:
        return np.full(len(x), values[0])
    left = np.clip(np.searchsorted(points, x, side="right") - 1, 0, len(points) - 2)
    length = points[left + 1] - points[left]
    t = (x - points[left]) / np.maximum(length, 1e-300)
    rise = (values[left] * (1 + 2 * t) + slopes[left] * length * t) * (1 - t) ** 2
    return rise + (values[left + 1] * (3 - 2 * t) - slopes[left + 1] * length * (1 - t)) * t**2


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
