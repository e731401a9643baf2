"""What the chains of the paper's two engines share: data, batches, starts and samplers.

`method` is one of the two engines.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Batch
from bayesdag.sgmcmc.dagspace import Support, support
from bayesdag.types import Array, Key, Keys, Params, Sampler

_TILE_ROWS = 32  # measured: a CPU's cache then holds the activations of one chain


class ChainState(NamedTuple):
    """All chains of one data set.

    Attributes:
        potentials: sampler state; its position has shape (chain, d).
        params: sampler state of Θ and, unless it is learned, σ.
        learned: what Adam moves: φ, and σ in the published runs.
        optimiser: state of Adam.
        carry: of the relaxation, for each chain.
        rows: the order in which this epoch visits the rows.
        energy: of the data under each chain, averaged over recent steps.
    """

    potentials: Any
    params: Any
    learned: Params
    optimiser: Any
    carry: Any
    rows: Int[Array, " n"]
    energy: Float[Array, " chain"]


class ChainContext(NamedTuple):
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
class StackedDatasets:
    """The step of a method for several data sets at once: what the loop runs."""

    method: Any

    def step(self, key: Keys, step: Array, state: Any, context: ChainContext) -> tuple:
        """Every data set one step further; each has its own key."""

        def one(key: Key, state: Any, x: Array, counted: Array) -> tuple:
            return self.method.step(key, step, state, ChainContext(x, counted, context.support))

        return _each(one)(key, state, context.x, context.counted)

    def keep(self, key: Keys, state: Any, context: ChainContext) -> Params:
        """The draws of every data set."""

        def one(key: Key, state: Any, x: Array, counted: Array) -> Params:
            return self.method.keep(key, state, ChainContext(x, counted, context.support))

        return _each(one)(key, state, context.x, context.counted)


def context(datasets: Sequence[Dataset], knowledge: Constraints) -> ChainContext:
    """Data sets of equal shape, stacked, with what is known about their columns."""
    shapes = {data.values.shape for data in datasets}
    if len(shapes) > 1:
        raise InputError(f"data sets fitted together must have one shape, not {sorted(shapes)}")
    return ChainContext(
        x=jnp.asarray(np.stack([data.scaled for data in datasets]), jnp.float32),
        counted=jnp.asarray(np.stack([data.observed for data in datasets]), jnp.float32),
        support=support(knowledge.required, knowledge.forbidden, knowledge.log_odds),
    )


def in_original_units(data: Dataset) -> Dataset:
    """The same table, not scaled."""
    return dataclasses.replace(data, scaling=Scaling.of(data.values, "none"))


def init_parts(method: Any, part: Any, key: Key, d: int) -> Params:
    """Parameters of a mechanism, noise or edge network, anew for each chain."""
    keys = jax.random.split(key, method.num_chains)
    return jax.vmap(lambda key: part.init(key, d))(keys)


def carries(method: Any, d: int) -> Any:
    """What the relaxation carries from step to step, for each chain."""
    return jax.tree.map(
        lambda x: jnp.broadcast_to(x, (method.num_chains, *x.shape)), method.relaxation.init(d)
    )


def tempered(method: Any, sampler: Any) -> Sampler:
    """The sampler at the method's temperature; a gain that stops does so after the warm-up."""
    changes = {"noise_scale": sampler.noise_scale * math.sqrt(method.temperature)}
    if getattr(sampler, "num_adapt", None) is not None:
        changes["num_adapt"] = method.num_warmup
    return dataclasses.replace(sampler, **changes)


def next_batch(
    method: Any, key: Key, step: Array, state: Any, context: ChainContext
) -> tuple[Batch, Any]:
    """The rows of this step in tiles, and the state that has visited them."""
    rows, visited = next_rows(key, step, state.rows, method.batch_size)
    num_tiles = _num_tiles(method, rows.shape[0], context.x.shape[0])
    batch = tiled(context, rows, num_tiles, method.correct_noise)
    return batch, state._replace(rows=visited)


def _num_tiles(method: Any, num_rows: int, total: int) -> int:
    """Tiles a batch is cut into; eight at least where its gradient noise is measured."""
    rows = method.tile_rows or (_TILE_ROWS if keeps_in_cache(method) else num_rows)
    least = 8 if method.correct_noise and num_rows < total else 1
    return max(math.ceil(num_rows / rows), least)


def keeps_in_cache(method: Any) -> bool:
    """Whether to work through chains and tiles one by one: hidden layers on a CPU."""
    return on_cpu() and hasattr(method.mechanism, "width")


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


def tiled(context: ChainContext, rows: Array, num_tiles: int, correct: bool) -> Batch:
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
