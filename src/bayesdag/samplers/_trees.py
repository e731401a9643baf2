"""What samplers do to every leaf of a tree of unknowns."""

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag.types import Array, Key, Params


def normal_like(key: Key, tree: Params) -> Params:
    """Independent standard normal draws in the shape of `tree`.

    One long draw cut into pieces: a generator for each leaf would take most of the time
    that a step takes to compile.
    """
    leaves, structure = jax.tree.flatten(tree)
    ends = np.cumsum([leaf.size for leaf in leaves])
    drawn = jax.random.normal(key, (ends[-1],), leaves[0].dtype)
    # Without the barrier each piece would draw all of it again.
    pieces = jnp.split(jax.lax.optimization_barrier(drawn), ends[:-1])
    shaped = [piece.reshape(leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True)]
    return structure.unflatten(shaped)


def smooth(old: Params, new: Params, decay: float, count: Array) -> Params:
    """Moving average that starts at the first value instead of zero."""
    weight = jnp.where(count == 0, 1.0, 1 - decay)
    return jax.tree.map(lambda o, n: o + weight * (n - o), old, new)


def share_of_zeros(tree: Params) -> Array:
    """Share of entries that are zero, over all leaves."""
    leaves = jax.tree.leaves(tree)
    zeros = jnp.stack([(leaf == 0).sum() for leaf in leaves]).sum()
    return zeros / sum(leaf.size for leaf in leaves)
