"""Trees are walked as JAX walks them."""

from typing import NamedTuple

import jax
import numpy as np

from bayesdag.runs import trees


class Pair(NamedTuple):
    """A tuple with names."""

    left: object
    right: object


TREE = {"b": Pair([1.5, None], (np.arange(3), {})), "a": {"z": 2, "y": ()}}


def test_leaves_come_in_the_order_of_jax():
    expected = jax.tree.leaves(TREE)
    found = list(trees.leaves(TREE))
    assert len(found) == len(expected)
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_mapping_keeps_the_structure():
    found = trees.map_leaves(lambda one, other: np.add(one, other), TREE, TREE)
    expected = jax.tree.map(lambda leaf: np.add(leaf, leaf), TREE)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    assert jax.tree.all(jax.tree.map(np.array_equal, found, expected))


def test_a_tree_is_filled_with_other_leaves_in_order():
    filled = trees.filled(TREE, iter("abc"))
    assert jax.tree.leaves(filled) == list("abc")
    assert jax.tree.structure(filled) == jax.tree.structure(TREE)
