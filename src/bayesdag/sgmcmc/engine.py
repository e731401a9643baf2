"""The base of the paper's two engines: a model, chains over it, and how they start."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Batch, Energy, Gradient
from bayesdag.model.priors._contexts import GivenContexts
from bayesdag.model.priors.uniform import Uniform
from bayesdag.posterior import Posterior
from bayesdag.random import jax_key
from bayesdag.runs import loop
from bayesdag.runs.devices import on_cpu
from bayesdag.runs.loop import RunState, Schedule
from bayesdag.sgmcmc import chains, dagspace
from bayesdag.sgmcmc.chains import DataContext
from bayesdag.sgmcmc.settings import EngineSettings
from bayesdag.types import (
    Array,
    Duration,
    ExactDependence,
    Key,
    Keys,
    Monitor,
    Params,
    Pytree,
    Sampler,
)

# Seconds of one step of ten chains and 512 rows (`benchmarks/results`); one core, one H200.
_STEP_AT_TWENTY, _STEP_AT_TWENTY_ON_GPU = 0.09, 0.0027


class Temperatures(NamedTuple):
    """Temperatures of the targets exp(-U / temperature), for each kind of unknown."""

    potentials: float
    params: float


@dataclass(frozen=True)
class Engine(EngineSettings, ABC):
    """A method whose chains move through orders, masks and functions; settings are its fields."""

    supported_constraints = frozenset({"required", "forbidden", "beliefs", "environments"})
    supports_interventions = True
    exact_dependence = ExactDependence.REFUSED

    def min_rows(self, d: int) -> int:
        """Ten: fewer say nothing about a noise scale."""
        del d
        return 10

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Steps times the time of one, which compiling precedes."""
        steps = self.num_warmup + self.num_samples * self.thinning
        work = min(num_rows, self.batch_size) / 512 * self.num_chains / 10
        faster = ("fewer columns", "preset 'quick'", "method 'collapsed'")
        if on_cpu():
            step = _STEP_AT_TWENTY * work * (num_variables / 20) ** 2.3
            return Duration(20.0 + steps * step, (*faster, "a GPU"))
        step = _STEP_AT_TWENTY_ON_GPU * (num_variables / 20)
        return Duration(20.0 + steps * step, faster, on_accelerator=True)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Joint draws of graphs, functions and noise scales."""
        return self.given(knowledge).fit_many(jax_key(key)[None], [data], knowledge, monitor)[0]

    def given(self, knowledge: Constraints) -> "Engine":
        """The same settings, with a prior that counts no edges into contexts."""
        if not knowledge.num_contexts:
            return self
        return replace(self, prior=GivenContexts(self.prior, knowledge.num_contexts))

    def fit_many(
        self,
        keys: Keys,
        datasets: Sequence[Dataset],
        knowledge: Constraints,
        monitor: Monitor | None = None,
    ) -> list[Posterior]:
        """One posterior per data set; all of equal shape, fitted in one compiled run."""
        datasets = self.in_engine_units(datasets)
        context = chains.context(datasets, knowledge)
        _, n, d = context.x.shape
        state, kernel = started(self, keys, n, d), chains.StackedDatasets(self)
        done = loop.run(keys, kernel, state, context, self.schedule, monitor)
        return self.posteriors(keys, done, datasets, context)

    def in_engine_units(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        """The data sets with the scaling that the chains work in: their own."""
        return datasets

    @abstractmethod
    def posteriors(
        self, keys: Keys, done: RunState, datasets: Sequence[Dataset], context: DataContext
    ) -> list[Posterior]:
        """Posteriors from a finished run, one per data set."""

    @abstractmethod
    def start(self, key: Key, num_rows: int, d: int) -> Pytree:
        """All chains of one data set before the first step."""

    @abstractmethod
    def step(
        self, key: Key, step: Array, state: Pytree, context: DataContext
    ) -> tuple[Pytree, dict[str, Array]]:
        """The next state of all chains, and statistics per chain."""

    @abstractmethod
    def keep(self, key: Key, state: Pytree, context: DataContext) -> Params:
        """The joint draw of every chain."""

    @abstractmethod
    def clipped_share(self, state: Pytree) -> Array:
        """Fraction of functions' coordinates where mini-batches alone are too noisy."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Notes for readers of the posterior about these settings."""

    @property
    @abstractmethod
    def temperatures(self) -> Temperatures:
        """Temperatures of the chains' targets."""

    @cached_property
    def energy(self) -> Energy:
        """U, with these settings."""
        return Energy(
            mechanism=self.mechanism,
            noise=self.noise,
            prior=self.prior if self.sparsity is None else Uniform(),
            sparsity=self.sparsity or 0.0,
            potential_scale=self.potential_scale,
        )

    @property
    def schedule(self) -> Schedule:
        """Schedule of the chains: steps and draws."""
        return Schedule(self.num_warmup, self.num_samples, self.thinning)

    def lift(self, coordinates: Array, context: DataContext) -> tuple[Array, Array]:
        """Potentials that agree with what is required, and the log volume of the map."""
        return dagspace.lift(coordinates, context.support, self.potential_scale)

    def init_params(self, key_mechanism: Key, key_noise: Key, d: int) -> Params:
        """Functions and noise scales at the start, per chain."""
        return {
            "mechanism": chains.init_parts(self, self.mechanism, key_mechanism, d),
            "noise": chains.init_parts(self, self.noise, key_noise, d),
        }

    def data_gradients(
        self, graphs: Array, params: Params, batch: Batch, wanted: tuple[str, ...]
    ) -> Gradient:
        """Gradient of the data's part of U per chain, in its graph and in what is wanted."""
        of_chain = chains.over_chains(
            lambda graph, own: self.energy.data_gradient(graph, own, batch, wanted),
            one_by_one=chains.keeps_in_cache(self),
        )
        return of_chain(graphs, params)

    @cached_property
    def _potential_sampler(self) -> Sampler:
        return chains.tempered(self, self.potential_sampler or self.sampler)

    @cached_property
    def _param_sampler(self) -> Sampler:
        return chains.tempered(self, self.sampler)

    def energy_now(
        self, graphs: Array, params: Params, slope: Gradient, context: DataContext
    ) -> Array:
        """U of every chain but for the order's part, estimated from this batch."""
        structure = jax.vmap(self.energy.structure, in_axes=(0, None))
        energy = slope.energy + structure(graphs, context.support.log_odds)
        return energy + jax.vmap(self.energy.params)(params)


def all_rows(num_rows: int) -> Array:
    """The order of the first epoch: as in the table."""
    return jnp.arange(num_rows, dtype=jnp.int32)


@partial(jax.jit, static_argnums=(0, 2, 3))
def started(engine: Engine, keys: Keys, num_rows: int, d: int) -> Pytree:
    """The chains of every data set; compiled once for equal settings and shapes."""
    return jax.vmap(lambda key: engine.start(key, num_rows, d))(keys)
