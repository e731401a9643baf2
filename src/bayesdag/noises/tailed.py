"""Noise with tails of its own for every variable: Student-t with free degrees."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bayesdag.types import Array, Key, Params, Rows


@dataclass(frozen=True)
class Tailed:
    """Residuals σ_i · t(ν_i), stored as log σ_i and log ν_i; ν_i is at least 3.

    A large ν is Gaussian noise, for which nothing is lost.
    """

    def init(self, key: Key, d: int) -> Params:
        """Unit scales and Gaussian tails."""
        del key  # deterministic
        return {"log_scale": jnp.zeros(d), "log_degrees": jnp.full(d, jnp.log(1000.0))}

    def log_prob(self, params: Params, residual: Rows) -> Rows:
        """Log density of each residual."""
        log_scale = params["log_scale"][None, :]
        degrees = jnp.exp(params["log_degrees"])[None, :]
        standard = residual * jnp.exp(-log_scale)
        constant = _log_gamma_ratio(degrees / 2) - 0.5 * jnp.log(degrees * jnp.pi)
        return constant - log_scale - 0.5 * (degrees + 1) * jnp.log1p(standard**2 / degrees)

    def sample(self, params: Params, key: Key, shape: tuple[int, ...]) -> Rows:
        """Residuals of shape (n, d)."""
        scale, degrees = jnp.exp(params["log_scale"]), jnp.exp(params["log_degrees"])
        drawn = jax.random.t(key, degrees[None, :], shape, dtype=scale.dtype)
        return scale[None, :] * drawn


def _log_gamma_ratio(a: Array) -> Array:
    """log Γ(a + ½) - log Γ(a) by Stirling's series, to 3e-5 for a ≥ 1.5.

    The difference of two large log gammas would keep few digits in float32.
    """
    return (
        0.5 * jnp.log(a) - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    )


build = Tailed
