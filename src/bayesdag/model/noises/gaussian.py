"""Gaussian noise with a standard deviation of its own for every variable."""

from dataclasses import dataclass

from bayesdag.types import Key, Params, Rows
from bayesdag.types.late_imports import jax, jnp


@dataclass(frozen=True)
class Gaussian:
    """Residuals N(0, σ_i²), stored as log σ_i so that every real number is allowed."""

    def init(self, key: Key, d: int) -> Params:
        """Unit scales: the published starting point."""
        del key  # deterministic
        return {"log_scale": jnp.zeros(d)}

    def log_prob(self, params: Params, residual: Rows) -> Rows:
        """Log density of each residual."""
        log_scale = params["log_scale"][None, :]
        standard = residual * jnp.exp(-log_scale)
        return -0.5 * standard**2 - log_scale - 0.5 * jnp.log(2 * jnp.pi)

    def sample(self, params: Params, key: Key, shape: tuple[int, ...]) -> Rows:
        """Residuals of shape (n, d)."""
        scale = jnp.exp(params["log_scale"])
        return scale[None, :] * jax.random.normal(key, shape, dtype=scale.dtype)


build = Gaussian
