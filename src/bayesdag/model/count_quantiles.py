"""Cumulative probabilities and quantiles of negative binomial counts, in JAX.

Small counts are added up one after the other, which is exact; where that would take long, the
distribution is that of a gamma variable of the same mean and variance, by the cube root of Wilson
& Hilferty (1931), which is near enough where single counts no longer matter.
"""

from jaxtyping import Bool, Float

from bayesdag.types import Array
from bayesdag.types.late_imports import jax, jnp

LONGEST_WALK = 2048  # counts that are added up, at most
_REACH = 14.0  # standard deviations within which all counts are found
_HIGHEST = 1 - 2e-6  # probability; the sum of all masses may miss 1 by rounding


def cumulative(r: Array, mean: Float[Array, " n"], count: Float[Array, " n"]) -> Float[Array, " n"]:
    """Probability of a count that is not larger."""
    far = _is_far(r, mean)
    last = jnp.where(far, 0.0, jnp.clip(count, 0.0, LONGEST_WALK))

    def add(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        k, log_mass, log_sum = state
        log_mass = log_mass + _log_ratio(r, mean, k)
        more = jnp.where(k < last, jnp.logaddexp(log_sum, log_mass), log_sum)
        return k + 1, log_mass, more

    first = _log_mass_of_zero(r, mean)
    start = (jnp.zeros((), mean.dtype), first, first)
    _, _, log_sum = jax.lax.while_loop(lambda state: (state[0] < last).any(), add, start)
    root, spread = _cube_root(r, mean)
    ratio = jnp.maximum(count + 0.5, 1e-6) / mean
    smooth = jax.scipy.special.ndtr((jnp.cbrt(ratio) - root) / spread)
    return jnp.where(count < 0, 0.0, jnp.where(far, smooth, jnp.minimum(jnp.exp(log_sum), 1.0)))


def quantile(
    r: Array, mean: Float[Array, " n"], probability: Float[Array, " n"]
) -> Float[Array, " n"]:
    """The smallest count that is not exceeded with this probability."""
    far = _is_far(r, mean)
    wanted = jnp.log(jnp.clip(probability, 1e-30, _HIGHEST))

    def is_open(state: tuple[Array, Array, Array, Array]) -> Bool[Array, ""]:
        return ((state[2] < wanted) & ~far).any() & (state[0] < LONGEST_WALK)

    def add(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        k, log_mass, log_sum, found = state
        found = jnp.where(log_sum < wanted, k + 1, found)
        log_mass = log_mass + _log_ratio(r, mean, k)
        return k + 1, log_mass, jnp.logaddexp(log_sum, log_mass), found

    first = _log_mass_of_zero(r, mean)
    start = (jnp.zeros((), mean.dtype), first, first, jnp.zeros_like(mean))
    found = jax.lax.while_loop(is_open, add, start)[3]
    root, spread = _cube_root(r, mean)
    normal = jax.scipy.special.ndtri(jnp.clip(probability, 1e-6, 1 - 1e-6))
    ratio = jnp.maximum(root + spread * normal, 0.0)
    return jnp.where(far, jnp.maximum(jnp.ceil(mean * ratio**3 - 0.5), 0.0), found)


def _is_far(r: Array, mean: Float[Array, " n"]) -> Bool[Array, " n"]:
    """Where too many counts would have to be added up."""
    return mean + _REACH * jnp.sqrt(mean + mean**2 / r) > LONGEST_WALK


def _log_mass_of_zero(r: Array, mean: Float[Array, " n"]) -> Float[Array, " n"]:
    return -r * jnp.log1p(mean / r)


def _log_ratio(r: Array, mean: Float[Array, " n"], k: Array) -> Float[Array, " n"]:
    """Log mass of k + 1 over that of k."""
    return jnp.log((k + r) / (k + 1)) - jnp.log1p(r / mean)


def _cube_root(r: Array, mean: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Mean and deviation of the cube root of a gamma variable of mean 1."""
    shape = mean**2 / (mean + mean**2 / r)
    return 1 - 1 / (9 * shape), jnp.sqrt(1 / (9 * shape))
