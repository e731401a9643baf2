"""What a regression leaves for a network, before any network is trained.

A network that beats a line or a sum of curves must find something in their residuals. Random
hidden units, as a network starts with, look for it: the log Bayes factor of a regression on many
of them, against nothing, follows from one Cholesky factor. Where it is small, no network can
earn the parameters that it pays for.
"""

from functools import cache

import numpy as np
from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.model.mechanisms import networks
from bayesdag.scores._neural.control_flow import one_by_one
from bayesdag.scores._neural.linear_algebra import (
    cholesky,
    weighted_gram,
    with_added_diagonal,
)

NUM_UNITS = 48
# Variances of what the units explain together, in units of the noise; each is tried.
_VARIANCES = (0.02, 0.2, 2.0)
_MOST = 4.0  # residuals beyond as many scales count as if they were there
_JITTER = 1e-4  # fraction of the rows
_SEED = 7


def log_bayes_factor(
    inputs: Float[Array, "n k"],
    basis: Float[Array, "n q"],
    residuals: tuple[Float[Array, " n"], Float[Array, " n"]],
    weight: Float[Array, " n"],
    used: Float[Array, " k"],
) -> Float[Array, ""]:
    """Of random units against nothing, for residuals or for their sizes; the larger one.

    What the basis explains of the units does not count. Sizes are looked at because the scale
    of the noise reads the same hidden units.

    Args:
        inputs: whitened.
        basis: of the regression that left the residuals.
        residuals: in units of one scale for all rows, and of the scale that the best form of
            the noise has for each.
        weight: of each row, 0 or 1.
    """
    xp = namespace(inputs)
    plain, own = (xp.clip(residual, -_MOST, _MOST) for residual in residuals)
    responses = xp.stack([_standard(plain, weight), _standard(xp.abs(own), weight)])
    units = _random_units(inputs, used)
    ones = xp.ones_like(plain)[None, :]
    columns = xp.concatenate([ones, basis.T, units.T, responses])
    gram, _ = weighted_gram(columns.T, weight)
    count = xp.maximum(weight.sum(), 1.0)
    start = 1 + basis.shape[1]
    ends = start + NUM_UNITS
    # More than a response can have: the factor exists, and its last rows are not looked at.
    room = xp.full(2, 4.0 * xp.trace(gram[ends:, ends:]), gram.dtype)

    def against_nothing(variance: Array) -> Array:
        # Hidden units below a basis and a ridge: eliminating the basis leaves their own part.
        ridge = xp.full(NUM_UNITS, NUM_UNITS / variance, gram.dtype)
        added = xp.concatenate([xp.full(start, _JITTER * count, gram.dtype), ridge, room])
        root = cholesky(with_added_diagonal(gram, added))
        volume = xp.log(xp.diagonal(root)[start:ends]).sum() - 0.5 * xp.log(ridge).sum()
        explained = 0.5 * (root[ends:, start:ends] ** 2).sum(axis=1)
        return explained.max() - volume

    factors = one_by_one(against_nothing, xp.asarray(_VARIANCES, gram.dtype))
    # A factor that rounding has spoiled rules nothing out.
    return xp.where(xp.isfinite(factors).all(), factors.max(), xp.inf)


def _standard(values: Float[Array, " n"], weight: Float[Array, " n"]) -> Float[Array, " n"]:
    """Mean 0 and variance 1 among the rows that count."""
    xp = namespace(values)
    count = xp.maximum(weight.sum(), 1.0)
    centred = values - (weight * values).sum() / count
    return centred / xp.sqrt((weight * centred**2).sum() / count + 1e-12)


def _random_units(inputs: Float[Array, "n k"], used: Float[Array, " k"]) -> Float[Array, "n u"]:
    """Rectifiers in random directions, with kinks among the rows."""
    xp, (directions, offsets) = namespace(inputs), _draws(inputs.shape[1])
    directions = xp.asarray(directions, inputs.dtype) * used[:, None]
    size = xp.sqrt((directions**2).sum(axis=0) + 1e-12)
    return networks.units(directions / size[None, :], xp.asarray(offsets, inputs.dtype), inputs)


@cache
def _draws(k: int) -> tuple[Float[np.ndarray, "k u"], Float[np.ndarray, " u"]]:
    """Directions of random units, the same for all families of one size, and their offsets."""
    rng = np.random.default_rng(_SEED)
    return rng.standard_normal((k, NUM_UNITS)), rng.uniform(-1.5, 1.5, NUM_UNITS)
