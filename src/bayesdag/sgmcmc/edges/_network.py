"""The network behind q(W|p): two hidden layers, the second of them residual."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesdag.types import Array, Key, Params

_EPSILON = 1e-5  # in the variance of LayerNorm


def init(key: Key, sizes: tuple[int, int, int]) -> Params:
    """Weights uniform ± 1/√(fan in), from (inputs, hidden units, outputs)."""
    inputs, width, outputs = sizes
    shapes = [(inputs, width), (width, width), (width, outputs)]
    # One draw cut into six pieces compiles faster than six draws; without the barrier each
    # piece would draw all of it again.
    counts = [count for fan_in, size in shapes for count in (fan_in * size, size)]
    drawn = jax.random.uniform(key, (sum(counts),), minval=-1, maxval=1)
    pieces = iter(jnp.split(jax.lax.optimization_barrier(drawn), np.cumsum(counts)[:-1]))
    layers = [
        {
            "weight": next(pieces).reshape(fan_in, size) / fan_in**0.5,
            "bias": next(pieces) / fan_in**0.5,
        }
        for fan_in, size in shapes
    ]
    for layer in layers[1:]:
        layer |= {"gain": jnp.ones(width), "offset": jnp.zeros(width)}
    return tuple(layers)


def apply(params: Params, inputs: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    """Outputs; LayerNorm stands before the second and the third layer."""
    first, second, last = params
    hidden = jax.nn.relu(inputs @ first["weight"] + first["bias"])
    hidden = hidden + jax.nn.relu(_normal(second, hidden) @ second["weight"] + second["bias"])
    return _normal(last, hidden) @ last["weight"] + last["bias"]


def standardise(x: Float[Array, " size"]) -> Float[Array, " size"]:
    """LayerNorm without parameters."""
    return (x - x.mean()) * jax.lax.rsqrt(x.var() + _EPSILON)


def _normal(layer: Params, hidden: Float[Array, " width"]) -> Float[Array, " width"]:
    return standardise(hidden) * layer["gain"] + layer["offset"]
