"""Gradient descent on pytrees: optax's optimisers, in one place for all gradient methods."""

from typing import Any

import jax
import optax

from bayesdag.types import Params


def descend(
    optimiser: optax.GradientTransformation, grad: Params, state: optax.OptState, position: Params
) -> tuple[Params, optax.OptState]:
    """The position after one step against the gradient, and the optimiser's new state."""
    # Its step counter is a whole number, and mixed with floats in powers.
    with jax.numpy_dtype_promotion("standard"):
        change, state = optimiser.update(grad, state, position)
    moved: Any = optax.apply_updates(position, change)
    return moved, state
