"""Common parts of the paper's two engines: data, batches, starts and samplers."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Batch
from bayesdag.runs.devices import on_cpu
from bayesdag.sgmcmc.dagspace import Support, support
from bayesdag.sgmcmc.settings import EngineSettings
from bayesdag.types import Array, Key, Keys, Params, Pytree, Sampler

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

    potentials: Pytree
    params: Pytree
    learned: Params
    optimiser: Pytree
    carry: Pytree
    rows: Int[Array, " n"]
    energy: Float[Array, " chain"]


class DataContext(NamedTuple):
    """The data and the knowledge, which the chains read and never change.

    Attributes:
        x: rows in engine units.
        counted: 1 where a cell counts in the likelihood.
        support: what is known about edges.
    """

    x: Float[Array, "n d"]
    counted: Float[Array, "n d"]
    support: Support


@runtime_checkable
class ChainKernel(Protocol):
    """One data set's chains: how they move, and what a draw keeps of them."""

    def step(
        self, key: Key, step: Array, state: Pytree, context: DataContext
    ) -> tuple[Pytree, dict[str, Array]]:
        """The next state of all chains, and statistics per chain."""
        ...

    def keep(self, key: Key, state: Pytree, context: DataContext) -> Params:
        """The draw of every chain."""
        ...


@runtime_checkable
class Initialised(Protocol):
    """A mechanism, noise or edge network: it says where its parameters start."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters at the start of a chain."""
        ...


@dataclass(frozen=True)
class StackedDatasets:
    """The step of an engine for several data sets at once: what the loop runs."""

    engine: ChainKernel

    def step(self, key: Keys, step: Array, state: Pytree, context: DataContext) -> tuple:
        """Every data set one step further; each has its own key."""

        def one(key: Key, state: Pytree, x: Array, counted: Array) -> tuple:
            return self.engine.step(key, step, state, DataContext(x, counted, context.support))

        return _per_dataset(one)(key, state, context.x, context.counted)

    def keep(self, key: Keys, state: Pytree, context: DataContext) -> Params:
        """The draws of every data set."""

        def one(key: Key, state: Pytree, x: Array, counted: Array) -> Params:
            return self.engine.keep(key, state, DataContext(x, counted, context.support))

        return _per_dataset(one)(key, state, context.x, context.counted)


def context(datasets: Sequence[Dataset], knowledge: Constraints) -> DataContext:
    """Data sets of equal shape, stacked, with what is known about their columns."""
    shapes = {data.values.shape for data in datasets}
    if len(shapes) > 1:
        raise InputError(f"data sets fitted together must have one shape, not {sorted(shapes)}")
    return DataContext(
        x=jnp.asarray(np.stack([data.scaled for data in datasets]), jnp.float32),
        counted=jnp.asarray(np.stack([data.observed for data in datasets]), jnp.float32),
        support=support(
            knowledge.required, knowledge.forbidden, knowledge.log_odds, knowledge.precedes
        ),
    )


def in_original_units(data: Dataset) -> Dataset:
    """The same table, not scaled."""
    return dataclasses.replace(data, scaling=Scaling.of(data.values, "none"))


def init_parts(settings: EngineSettings, part: Initialised, key: Key, d: int) -> Params:
    """Parameters of a mechanism, noise or edge network, drawn separately per chain."""
    keys = jax.random.split(key, settings.num_chains)
    return jax.vmap(lambda key: part.init(key, d))(keys)


def carries(settings: EngineSettings, d: int) -> Pytree:
    """Carry of the relaxation from step to step, per chain."""
    return jax.tree.map(
        lambda x: jnp.broadcast_to(x, (settings.num_chains, *x.shape)), settings.relaxation.init(d)
    )


def tempered(settings: EngineSettings, sampler: Sampler) -> Sampler:
    """The sampler at the engine's temperature; a gain that stops does so after the warm-up."""
    changes = {"noise_scale": sampler.noise_scale * math.sqrt(settings.temperature)}
    if getattr(sampler, "num_adapt", None) is not None:
        changes["num_adapt"] = settings.num_warmup
    return dataclasses.replace(sampler, **changes)  # pyright: ignore[reportArgumentType, reportCallIssue]


def next_batch(
    settings: EngineSettings, key: Key, step: Array, rows: Int[Array, " n"], context: DataContext
) -> tuple[Batch, Int[Array, " n"]]:
    """The rows of this step in tiles, and the order in which the epoch visits all rows."""
    chosen, rows = next_rows(key, step, rows, settings.batch_size)
    num_tiles = _num_tiles(settings, chosen.shape[0], context.x.shape[0])
    return tiled(context, chosen, num_tiles, settings.correct_noise), rows


def _num_tiles(settings: EngineSettings, num_rows: int, total: int) -> int:
    """Tiles a batch is cut into; eight at least where its gradient noise is measured."""
    rows = settings.tile_rows or (_TILE_ROWS if keeps_in_cache(settings) else num_rows)
    least = 8 if settings.correct_noise and num_rows < total else 1
    return max(math.ceil(num_rows / rows), least)


def keeps_in_cache(settings: EngineSettings) -> bool:
    """Whether to work through chains and tiles one by one: hidden layers on a CPU."""
    return on_cpu() and hasattr(settings.mechanism, "width")


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


def tiled(context: DataContext, rows: Array, num_tiles: int, correct: bool) -> Batch:
    """The chosen rows, cut into tiles of equal size."""
    n, b = context.x.shape[0], rows.shape[0]
    size = math.ceil(b / num_tiles)

    def cut(values: Array) -> Array:
        values = values if b == n else values[rows]
        filled = jnp.pad(values, ((0, num_tiles * size - b), (0, 0)))
        return filled.reshape(num_tiles, size, -1)

    sampling = 1 - b / n if correct else 0.0
    return Batch(cut(context.x), cut(context.counted), n / b, sampling)


def _per_dataset(function: Callable) -> Callable:
    """`function` of one data set for all of them; for a single one nothing is batched."""

    def apply(*trees: Pytree) -> Pytree:
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
