"""What the chains of the paper's engine carry from step to step, and the rows they read."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesdag.dagspace import Support, support
from bayesdag.data import Dataset, Scaling
from bayesdag.energy import Batch
from bayesdag.knowledge import Constraints
from bayesdag.types import Array, InputError, Key, Keys, Params


class State(NamedTuple):
    """All chains of one data set.

    Attributes:
        potentials: sampler state; its position has shape (chain, d).
        params: sampler state of Θ and, unless it is learned, σ.
        learned: what Adam moves: φ, and σ in the published runs.
        optimiser: state of Adam.
        carry: of the relaxation, for each chain.
        rows: the order in which this epoch visits the rows.
    """

    potentials: Any
    params: Any
    learned: Params
    optimiser: Any
    carry: Any
    rows: Int[Array, " n"]


class Context(NamedTuple):
    """What the chains read and never change.

    Attributes:
        x: rows in engine units.
        counted: 1 where a cell counts in the likelihood.
        support: what is known about edges.
    """

    x: Float[Array, "n d"]
    counted: Float[Array, "n d"]
    support: Support


@dataclass(frozen=True)
class Together:
    """The step of a method for several data sets at once: what the loop runs."""

    method: Any

    def step(self, key: Keys, step: Array, state: Any, context: Context) -> tuple:
        """Every data set one step further; each has its own key."""

        def one(key: Key, state: Any, x: Array, counted: Array) -> tuple:
            return self.method.step(key, step, state, Context(x, counted, context.support))

        return _each(one)(key, state, context.x, context.counted)

    def keep(self, key: Keys, state: Any, context: Context) -> Params:
        """The draws of every data set."""

        def one(key: Key, state: Any, x: Array, counted: Array) -> Params:
            return self.method.keep(key, state, Context(x, counted, context.support))

        return _each(one)(key, state, context.x, context.counted)


def context(datasets: Sequence[Dataset], knowledge: Constraints) -> Context:
    """Data sets of equal shape, stacked, with what is known about their columns."""
    shapes = {data.values.shape for data in datasets}
    if len(shapes) > 1:
        raise InputError(f"data sets fitted together must have one shape, not {sorted(shapes)}")
    return Context(
        x=jnp.asarray(np.stack([data.scaled for data in datasets]), jnp.float32),
        counted=jnp.asarray(np.stack([data.observed for data in datasets]), jnp.float32),
        support=support(knowledge.required, knowledge.forbidden, knowledge.log_odds),
    )


def in_original_units(data: Dataset) -> Dataset:
    """The same table, not scaled."""
    return dataclasses.replace(data, scaling=Scaling.of(data.values, "none"))


def next_rows(key: Key, step: Array, rows: Array, batch_size: int) -> tuple[Array, Array]:
    """The rows of this step and the order they come from, shuffled at every epoch."""
    n = rows.shape[0]
    steps = math.ceil(n / batch_size)
    if steps == 1:
        return rows, rows
    position = step % steps
    rows = jax.lax.cond(
        position == 0, lambda: jax.random.permutation(key, n).astype(rows.dtype), lambda: rows
    )
    # The last batch of an epoch is filled up with the epoch's first rows.
    chosen = rows[(position * batch_size + jnp.arange(batch_size)) % n]
    return chosen, rows


def tiled(context: Context, rows: Array, num_tiles: int, correct: bool) -> Batch:
    """The chosen rows, cut into tiles of equal size."""
    n, b = context.x.shape[0], rows.shape[0]
    size = math.ceil(b / num_tiles)

    def cut(values: Array) -> Array:
        values = values if b == n else values[rows]
        filled = jnp.pad(values, ((0, num_tiles * size - b), (0, 0)))
        return filled.reshape(num_tiles, size, -1)

    sampling = 1 - b / n if correct else 0.0
    return Batch(cut(context.x), cut(context.counted), n / b, sampling)


def _each(function: Callable) -> Callable:
    """`function` of one data set for all of them; for a single one nothing is batched."""

    def apply(*trees: Any) -> Any:
        if jax.tree.leaves(trees)[0].shape[0] == 1:
            only = function(*jax.tree.map(lambda x: x[0], trees))
            return jax.tree.map(lambda x: x[None], only)
        return over_chains(function, one_by_one=on_cpu())(*trees)

    return apply


def over_chains(function: Callable, one_by_one: bool) -> Callable:
    """`function` of one chain for all of them, one after the other or together."""
    if one_by_one:
        return lambda *trees: jax.lax.map(lambda each: function(*each), trees)
    return jax.vmap(function)


def on_cpu() -> bool:
    """Whether memory traffic is what costs, rather than launching."""
    return jax.default_backend() == "cpu"
