"""What samplers do to every leaf of a tree of unknowns."""

import jax
import jax.numpy as jnp

from bayesdag.types import Array, Key, Params


def normal_like(key: Key, tree: Params) -> Params:
    """Independent standard normal draws in the shape of `tree`."""
    leaves, structure = jax.tree.flatten(tree)
    keys = jax.random.split(key, len(leaves))
    draws = [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves, strict=True)]
    return structure.unflatten(draws)


def smooth(old: Params, new: Params, decay: float, count: Array) -> Params:
    """Moving average that starts at the first value instead of zero."""
    weight = jnp.where(count == 0, 1.0, 1 - decay)
    return jax.tree.map(lambda o, n: o + weight * (n - o), old, new)


def share_of_zeros(tree: Params) -> Array:
    """Share of entries that are zero, over all leaves."""
    leaves = jax.tree.leaves(tree)
    zeros = jnp.stack([(leaf == 0).sum() for leaf in leaves]).sum()
    return zeros / sum(leaf.size for leaf in leaves)
