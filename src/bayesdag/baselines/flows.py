"""Normalising flows by affine coupling: densities that bend, with an exact Jacobian.

Dinh, Sohl-Dickstein & Bengio (2017), Density estimation using real NVP, ICLR. A layer leaves every
second coordinate as it is, and scales and shifts the others by a network of those.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.types import Array, Key, Params


def start_flow(key: Key, num_layers: int, size: int, hidden: int) -> Params:
    """Layers that change nothing yet: their last weights are zero."""
    first = jax.random.normal(key, (num_layers, size, hidden)) / size**0.5
    return {
        "first": first,
        "first_bias": jnp.zeros((num_layers, hidden)),
        "last": jnp.zeros((num_layers, hidden, 2, size)),
        "last_bias": jnp.zeros((num_layers, 2, size)),
    }


def transform(flow: Params, x: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """A point after all layers, and the log of the Jacobian's determinant."""
    log_det = jnp.zeros(())
    for layer in range(flow["first"].shape[0]):
        given = (jnp.arange(x.shape[0]) % 2 == layer % 2).astype(x.dtype)
        hidden = jnp.tanh((x * given) @ flow["first"][layer] + flow["first_bias"][layer])
        # A mean, not a sum: Adam moves every weight at once, and a sum of many units would leap.
        mean = jnp.einsum("h,hkn->kn", hidden, flow["last"][layer]) / hidden.shape[0]
        both = mean + flow["last_bias"][layer]
        # Bounded, so that no step of an optimiser makes a scale explode.
        log_scale, shift = (1 - given) * jnp.tanh(both[0]), (1 - given) * both[1]
        x = x * jnp.exp(log_scale) + shift
        log_det = log_det + log_scale.sum()
    return x, log_det
