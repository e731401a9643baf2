"""Stein variational gradient descent: directions of particles from their slopes and a kernel.

Liu & Wang (2016), Stein variational gradient descent, NeurIPS. Positions come in parts (graph
embeddings, functions, noise), each with a squared-exponential kernel of its own; the kernels add.
"""

import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.types import Array


def stein_directions(
    positions: tuple[Float[Array, "m _"], ...],
    slopes: tuple[Float[Array, "m _"], ...],
    bandwidths: tuple[float, ...],
) -> tuple[Float[Array, "m _"], ...]:
    """Slopes of all particles averaged by the kernel, and what drives them apart, per part."""
    kernels = [_kernel(p, w) for p, w in zip(positions, bandwidths, strict=True)]
    total = sum(kernels[1:], start=kernels[0])
    moved = []
    for position, slope, kernel, width in zip(positions, slopes, kernels, bandwidths, strict=True):
        # Σ_k ∂k(x_k, x_m)/∂x_k = 2/h Σ_k k(x_k, x_m) (x_m - x_k)
        apart = kernel.sum(axis=0)[:, None] * position - kernel.T @ position
        moved.append((total.T @ slope + 2 / width * apart) / len(position))
    return tuple(moved)


def _kernel(position: Float[Array, "m p"], bandwidth: float) -> Float[Array, "m m"]:
    """exp(-|x - y|² / h) of all pairs."""
    square = (position**2).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * position @ position.T
    return jnp.exp(-jnp.maximum(distance, 0) / bandwidth)
