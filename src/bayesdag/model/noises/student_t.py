"""Student-t noise: like Gaussian noise, but an outlier pulls less."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from bayesdag.types import Key, Params, Rows


@dataclass(frozen=True)
class StudentT:
    """Residuals σ_i · t(ν), with log σ_i as parameter.

    Attributes:
        degrees: ν, the same for all variables; the tails fall like |x|^-(ν + 1).
    """

    degrees: float = 5.0

    def init(self, key: Key, d: int) -> Params:
        """Unit scales."""
        del key  # deterministic
        return {"log_scale": jnp.zeros(d)}

    def log_prob(self, params: Params, residual: Rows) -> Rows:
        """Log density of each residual."""
        log_scale = params["log_scale"][None, :]
        standard = residual * jnp.exp(-log_scale)
        half = (self.degrees + 1) / 2
        constant = gammaln(half) - gammaln(self.degrees / 2) - 0.5 * jnp.log(self.degrees * jnp.pi)
        return constant - log_scale - half * jnp.log1p(standard**2 / self.degrees)

    def sample(self, params: Params, key: Key, shape: tuple[int, ...]) -> Rows:
        """Residuals of shape (n, d)."""
        scale = jnp.exp(params["log_scale"])
        return scale[None, :] * jax.random.t(key, self.degrees, shape, dtype=scale.dtype)


build = StudentT
