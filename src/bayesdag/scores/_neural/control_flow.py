"""Loops and branches of fits: compiled where JAX traces them, plain where NumPy computes.

A compiled program takes every step and every branch, and many fits at once; NumPy takes one fit at
a time and only the steps that it needs.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.runs.trees import leaves, map_leaves

Carry = TypeVar("Carry")
Result = TypeVar("Result")


def repeat(
    like: Array,
    num_steps: int,
    step: Callable[[Carry, Any], Carry],
    carry: Carry,
    finished: Callable[[Carry], bool] | None = None,
) -> Carry:
    """What a number of steps make of the carry.

    Args:
        like: an array of the kind that the steps compute with.
        finished: whether further steps would change nothing; only NumPy asks.
    """
    xp = namespace(like)
    if xp is np:
        for t in range(num_steps):
            carry = step(carry, t)
            if finished is not None and finished(carry):
                break
        return carry
    from jax import lax

    return lax.scan(lambda now, t: (step(now, t), None), carry, xp.arange(num_steps))[0]


def for_each(function: Callable[..., Result], *over: Any) -> Result:
    """Results of a function for every entry of the leading dimension, stacked."""
    if namespace(next(leaves(over))) is not np:
        import jax

        return jax.vmap(function)(*over)
    num = len(next(leaves(over)))
    return stack([function(*(entry(tree, k) for tree in over)) for k in range(num)])


def one_by_one(function: Callable[[Array], Array], over: Float[Array, " o"]) -> Float[Array, " o"]:
    """The same for single numbers, one after another, which takes less memory."""
    xp = namespace(over)
    if xp is np:
        return np.stack([function(one) for one in over])
    from jax import lax

    return lax.map(function, over)


def best_of(
    function: Callable[[Array], tuple[Result, Array]],
    options: Float[Array, " o"],
    now: Array,
) -> tuple[Result, Array, Array]:
    """The result of least loss among the options, its loss, and the option.

    NumPy takes the first one whose loss is below `now`, and tries no more; a loss that is no
    number is below none.
    """
    xp = namespace(options)
    if xp is not np:
        results, losses = for_each(function, options)
        best = xp.argmin(xp.where(xp.isfinite(losses), losses, xp.inf))
        return entry(results, best), losses[best], options[best]
    first, *others = options
    option, (result, loss) = first, function(first)
    for other in others:
        if loss < now:
            break
        option, (result, loss) = other, function(other)
    return result, loss, option


def either(condition: Any, yes: Callable[[], Array], no: Callable[[], Array]) -> Array:
    """One of two values; NumPy computes only that one."""
    if isinstance(condition, bool | np.bool_):
        return yes() if condition else no()
    return namespace(condition).where(condition, yes(), no())


def choose(condition: Array | np.bool_, yes: Result, no: Result) -> Result:
    """One of two nested named tuples."""
    if isinstance(condition, np.bool_):
        return yes if condition else no
    where = namespace(condition).where
    return map_leaves(lambda a, b: where(condition, a, b), yes, no)


def entry(tree: Any, k: Any) -> Any:
    """Entry k of the leading dimension of every array in nested named tuples."""
    return map_leaves(lambda leaf: leaf[k], tree)


def stack(trees: list[Any]) -> Any:
    """Nested named tuples of the same structure, with a new leading dimension."""
    return map_leaves(lambda *parts: namespace(parts[0]).asarray(parts), *trees)
