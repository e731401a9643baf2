"""What a regression leaves for a network, before any network is trained.

A network that beats a line or a sum of curves must find something in their residuals. Random
hidden units, as a network starts with, look for it: the log Bayes factor of a regression on many
of them, against nothing, follows from one Cholesky factor. Where it is small, no network can
earn the parameters that it pays for.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesdag.scores._neural.linear_algebra import dot
from bayesdag.types import Array

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
    plain, own = (jnp.clip(residual, -_MOST, _MOST) for residual in residuals)
    responses = jnp.stack([_standard(plain, weight), _standard(jnp.abs(own), weight)], axis=1)
    units = _random_units(inputs, used)
    ones = jnp.ones_like(inputs[:, :1])
    table = jnp.concatenate([ones, basis, units, responses], axis=1) * weight[:, None]
    gram, count = dot(table.T, table), jnp.maximum(weight.sum(), 1.0)
    start = 1 + basis.shape[1]
    ends = start + NUM_UNITS
    # More than a response can have: the factor exists, and its last rows are not looked at.
    room = 4.0 * jnp.trace(gram[ends:, ends:]) * jnp.ones(2)

    def against_nothing(variance: Array) -> Array:
        # Hidden units below a basis and a ridge: eliminating the basis leaves their own part.
        ridge = NUM_UNITS / variance * jnp.ones(NUM_UNITS)
        added = jnp.concatenate([jnp.full(start, _JITTER * count), ridge, room])
        root = jnp.linalg.cholesky(gram + jnp.diag(added))
        volume = jnp.log(jnp.diagonal(root)[start:ends]).sum() - 0.5 * jnp.log(ridge).sum()
        explained = 0.5 * (root[ends:, start:ends] ** 2).sum(axis=1)
        return explained.max() - volume

    factors = jax.lax.map(against_nothing, jnp.asarray(_VARIANCES, gram.dtype))
    # A factor that rounding has spoiled rules nothing out.
    return jnp.where(jnp.isfinite(factors).all(), factors.max(), jnp.inf)


def _standard(values: Float[Array, " n"], weight: Float[Array, " n"]) -> Float[Array, " n"]:
    """Mean 0 and variance 1 among the rows that count."""
    count = jnp.maximum(weight.sum(), 1.0)
    centred = values - (weight * values).sum() / count
    return centred / jnp.sqrt((weight * centred**2).sum() / count + 1e-12)


def _random_units(inputs: Float[Array, "n k"], used: Float[Array, " k"]) -> Float[Array, "n u"]:
    """Rectifiers in random directions, with kinks among the rows."""
    k = inputs.shape[1]
    rng = np.random.default_rng(_SEED)
    directions = rng.standard_normal((k, NUM_UNITS))
    offsets = rng.uniform(-1.5, 1.5, NUM_UNITS)
    directions = jnp.asarray(directions, inputs.dtype) * used[:, None]
    size = jnp.sqrt((directions**2).sum(axis=0) + 1e-12)
    before = dot(inputs, directions / size[None, :]) + jnp.asarray(offsets, inputs.dtype)[None, :]
    return jnp.maximum(before, 0.0)
