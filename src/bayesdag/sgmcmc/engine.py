"""What the paper's two engines have in common: a model, chains over it, and how they start."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import jax

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Energy, Gradient
from bayesdag.model.priors.uniform import Uniform
from bayesdag.posterior import Posterior
from bayesdag.sgmcmc import dagspace
from bayesdag.sgmcmc.chains import ChainContext, on_cpu
from bayesdag.types import (
    Array,
    Duration,
    ExactDependence,
    Key,
    Keys,
    Mechanism,
    Monitor,
    Noise,
    Params,
    StructurePrior,
)

# Seconds of one step of ten chains and 512 rows (`benchmarks/results`); one core, one H200.
_STEP_AT_TWENTY, _STEP_AT_TWENTY_ON_GPU = 0.09, 0.0027


class Engine(ABC):
    """A method whose chains move through orders, masks and functions; settings are its fields."""

    mechanism: Mechanism
    noise: Noise
    prior: StructurePrior
    sparsity: float | None
    potential_scale: float
    num_chains: int
    num_warmup: int
    num_samples: int
    thinning: int
    batch_size: int
    free_absence: bool = False

    supported_constraints: ClassVar[frozenset[str]] = frozenset(
        {"required", "forbidden", "beliefs"}
    )
    supports_interventions: ClassVar[bool] = True
    exact_dependence: ClassVar[ExactDependence] = "refused"

    def min_rows(self, d: int) -> int:
        """Ten: fewer say nothing about a noise scale."""
        del d
        return 10

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Steps times the time of one, which compiling precedes."""
        steps = self.num_warmup + self.num_samples * self.thinning
        share = min(num_rows, self.batch_size) / 512 * self.num_chains / 10
        faster = ("fewer columns", "preset 'quick'", "method 'collapsed'")
        if on_cpu():
            step = _STEP_AT_TWENTY * share * (num_variables / 20) ** 2.3
            return Duration(20.0 + steps * step, (*faster, "a GPU"))
        step = _STEP_AT_TWENTY_ON_GPU * (num_variables / 20)
        return Duration(20.0 + steps * step, faster, on_accelerator=True)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Joint draws of graphs, functions and noise scales."""
        return self.fit_many(key[None], [data], knowledge, monitor)[0]

    @abstractmethod
    def fit_many(
        self,
        keys: Keys,
        datasets: Sequence[Dataset],
        knowledge: Constraints,
        monitor: Monitor | None = None,
    ) -> list[Posterior]:
        """One posterior a data set; all of equal shape, fitted in one compiled run."""

    @abstractmethod
    def start(self, key: Key, num_rows: int, d: int) -> Any:
        """All chains of one data set before the first step."""

    @cached_property
    def energy(self) -> Energy:
        """U, with these settings."""
        return Energy(
            mechanism=self.mechanism,
            noise=self.noise,
            prior=self.prior if self.sparsity is None else Uniform(),
            sparsity=self.sparsity or 0.0,
            free_absence=self.free_absence,
            potential_scale=self.potential_scale,
        )

    def lift(self, coordinates: Array, context: ChainContext) -> tuple[Array, Array]:
        """Potentials that agree with what is required, and the log volume of the map."""
        return dagspace.lift(coordinates, context.support, self.potential_scale)

    def energy_now(
        self, graphs: Array, params: Params, slope: Gradient, context: ChainContext
    ) -> Array:
        """U of every chain but for the order's part, estimated from this batch."""
        structure = jax.vmap(self.energy.structure, in_axes=(0, None))
        energy = slope.energy + structure(graphs, context.support.log_odds)
        return energy + jax.vmap(self.energy.params)(params)


@partial(jax.jit, static_argnums=(0, 2, 3))
def started(method: Engine, keys: Keys, num_rows: int, d: int) -> Any:
    """The chains of every data set; compiled once for equal settings and shapes."""
    return jax.vmap(lambda key: method.start(key, num_rows, d))(keys)
