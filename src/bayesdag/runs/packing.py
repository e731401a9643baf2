"""States of runs as named arrays, and names for results by what decides them."""

import hashlib
import sys
from typing import Any

import numpy as np

from bayesdag.runs import trees
from bayesdag.runs.journal import Arrays
from bayesdag.types import HostKey, Pytree
from bayesdag.types.late_imports import jax, jnp


def fingerprint(*decides: Pytree) -> str:
    """A name for a result, by everything that decides it."""
    digest = hashlib.blake2b(digest_size=12)
    for leaf in trees.leaves(decides):
        value = np.asarray(_plain(leaf))
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def pack(state: Pytree) -> dict[str, np.ndarray]:
    """The leaves of a tree, numbered."""
    return {f"leaf{k}": np.asarray(_plain(leaf)) for k, leaf in enumerate(trees.leaves(state))}


def unpack_like(structure: Pytree, arrays: Arrays) -> Pytree:
    """Inverse of `pack`: a tree of the same structure, whatever its leaves."""
    return trees.filled(structure, iter(leaves_of(arrays)))


def leaves_of(arrays: Arrays) -> list[np.ndarray]:
    """Arrays that `pack` has numbered, in order."""
    return [arrays[f"leaf{k}"] for k in range(len(arrays))]


def with_room(like: np.ndarray, leaf: np.ndarray) -> np.ndarray | None:
    """`leaf` at the start of an array of the longer run's shape."""
    if like.shape == leaf.shape:
        return leaf
    if like.ndim != leaf.ndim or like.shape[1:] != leaf.shape[1:] or len(like) < len(leaf):
        return None
    longer = np.array(like)
    longer[: len(leaf)] = leaf
    return longer


def unpack(template: Pytree, leaves: list[np.ndarray]) -> Pytree:
    """A tree in the structure of `template`; keys become keys of JAX again."""
    restored = (
        jax.random.wrap_key_data(jnp.asarray(leaf)) if _is_key(like) else leaf
        for like, leaf in zip(trees.leaves(template), leaves, strict=True)
    )
    return trees.filled(template, restored)


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, HostKey):
        return np.array(leaf.words, np.uint32)
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: object) -> bool:
    """Whether it is a key of JAX; where nobody has loaded JAX there are none."""
    if isinstance(leaf, np.ndarray | np.generic | int | float) or "jax" not in sys.modules:
        return False
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
