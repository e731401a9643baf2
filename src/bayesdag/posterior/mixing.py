"""Effective sample sizes and split R-hat of many quantities at once.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021,
"Rank-normalization, folding, and localization") with Geyer's initial monotone sequence, as in
ArviZ, which the tests compare with. Thousands of edges are taken together here, and a table of
probabilities can be printed before ArviZ would have been imported.
"""

import numpy as np
from jaxtyping import Float

from bayesdag.posterior.libraries import special

Chains = Float[np.ndarray, "chain draw k"]
_TOGETHER = 1 << 21  # numbers whose spectra are held at once


def effective_sizes(values: Chains, of_ranks: bool = False) -> Float[np.ndarray, " k"]:
    """Draws that would know the mean as well, were they independent; of quantities that vary.

    Args:
        of_ranks: of normal scores of the ranks ("bulk") instead of the values.
    """
    halves = _halves(values)
    if of_ranks:
        halves = np.stack([_normal_scores(one) for one in np.moveaxis(halves, 2, 0)], axis=2)
    num = max(1, _TOGETHER // (halves.shape[0] * halves.shape[1]))
    parts = [halves[:, :, k : k + num] for k in range(0, halves.shape[2], num)]
    return np.concatenate([_sizes(part) for part in parts])


def split_rhat(values: Chains) -> Float[np.ndarray, " k"]:
    """Spread of the halves of all chains around one another, over the spread within them."""
    halves = _halves(values)
    num = halves.shape[1]
    between = num * halves.mean(axis=1).var(axis=0, ddof=1)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    return np.sqrt((between / within + num - 1) / num)


def _halves(values: Chains) -> Float[np.ndarray, "half draws k"]:
    """Every chain as two; a draw in the middle is left out."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_scores(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain draw"]:
    """Normal quantiles of the ranks; equal values share their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    rank = (last - 0.5 * (count - 1))[place.reshape(values.shape)]
    return np.asarray(special.ndtri((rank - 0.375) / (values.size + 0.25)), dtype=float)


def _sizes(halves: Chains) -> Float[np.ndarray, " k"]:
    """Total number of draws over the autocorrelation time (Geyer's initial monotone sequence)."""
    num_chains, num_draws, _ = halves.shape
    within = _autocovariance(halves).mean(axis=0)
    unbiased = within[0] * num_draws / (num_draws - 1)
    total = within[0].copy()
    if num_chains > 1:
        total += halves.mean(axis=1).var(axis=0, ddof=1)
    correlation = 1 - (unbiased - within) / total
    correlation[0] = 1.0
    # Sums of neighbours are positive and fall, up to the first that is not.
    most = max(0, (num_draws - 3) // 2)
    pairs = correlation[: 2 * most + 2].reshape(most + 1, 2, -1).sum(axis=1)
    ended = pairs <= 0
    end = np.where(ended.any(axis=0), ended.argmax(axis=0), most)
    counted = np.arange(most + 1)[:, None] < end[None, :]
    falling = np.where(counted, np.minimum.accumulate(pairs, axis=0), 0.0).sum(axis=0)
    every = np.arange(len(end))
    tail = correlation[2 * end, every]
    tail = np.where((tail > 0) | (pairs[end, every] >= 0), tail, 0.0)
    size = num_chains * num_draws
    return size / np.maximum(-1 + 2 * falling + tail, 1 / np.log10(size))


def _autocovariance(halves: Chains) -> Float[np.ndarray, "chain lag k"]:
    """Of every chain at every lag, by the fast Fourier transform."""
    num = halves.shape[1]
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, n=1 << (2 * num - 1).bit_length(), axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.fft.irfft(power, n=1 << (2 * num - 1).bit_length(), axis=1)[:, :num] / num
