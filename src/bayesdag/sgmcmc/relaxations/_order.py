"""From a permutation matrix, hard or soft, to the order it stands for."""

import jax.numpy as jnp

from bayesdag.types import Graph


def order_of(permutation: Graph) -> Graph:
    """P L Pᵀ with L *strictly* lower triangular: edges run from higher to lower rank."""
    below = jnp.tril(jnp.ones_like(permutation), k=-1)
    return permutation @ below @ permutation.T
