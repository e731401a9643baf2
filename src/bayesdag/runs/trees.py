"""Trees of arrays (dictionaries, tuples and lists), walked as JAX does but without it.

The order of leaves is that of `jax.tree`: dictionaries by sorted keys; None has no leaves.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast, overload

from bayesdag.types import Pytree


def leaves(tree: Pytree) -> Iterator[Any]:
    """Everything in a tree that is no dictionary, tuple or list.

    >>> list(leaves({"b": (1, None), "a": [2]}))
    [2, 1]
    """
    if tree is None:
        return
    if isinstance(tree, dict):
        branches = cast(dict[Any, Any], tree)
        for name in sorted(branches):
            yield from leaves(branches[name])
    elif isinstance(tree, tuple | list):
        for branch in cast(list[Any], tree):
            yield from leaves(branch)
    else:
        yield tree


@overload
def map_leaves(function: Callable[[Any], Any], tree: Pytree, /) -> Pytree: ...
@overload
def map_leaves(function: Callable[..., Any], tree: Pytree, /, *others: Pytree) -> Pytree: ...
def map_leaves(function: Callable[..., Any], tree: Pytree, /, *others: Pytree) -> Pytree:
    """A tree of what `function` makes of each leaf, and of those in its place in other trees.

    >>> map_leaves(lambda a, b: a + b, {"x": (1, 2)}, {"x": (10, 20)})
    {'x': (11, 22)}
    """
    if tree is None:
        return None
    if isinstance(tree, dict):
        named = cast(dict[Any, Any], tree)
        return {
            name: map_leaves(function, named[name], *(other[name] for other in others))
            for name in sorted(named)
        }
    if isinstance(tree, tuple | list):
        branches = zip(cast(list[Any], tree), *others, strict=True)
        mapped = [map_leaves(function, *branch) for branch in branches]
        whole = cast(Any, type(cast(Any, tree)))
        return whole(*mapped) if hasattr(whole, "_fields") else whole(mapped)
    return function(tree, *others)


def filled(template: Pytree, values: Iterator[Any]) -> Pytree:
    """A tree of the same structure with other leaves, which are taken in order."""
    return map_leaves(lambda _: next(values), template)
