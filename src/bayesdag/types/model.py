"""Protocols of what is assumed of the world: mechanisms, noises, priors over structures."""

from typing import Protocol, runtime_checkable

from jaxtyping import Shaped

from bayesdag.types.arrays import Array, Components, Graph, Key, Params, Rows


@runtime_checkable
class Mechanism(Protocol):
    """The mean of every variable given its parents, in the units the engine sees."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters at the start of a chain."""
        ...

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once; column j depends on x only through graph[:, j]."""
        ...

    def node(self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        """Mean of variable `i` alone, so that ancestral sampling costs one pass, not d."""
        ...


@runtime_checkable
class Heteroscedastic(Protocol):
    """A mechanism whose parents decide the scale of the noise, too."""

    def node_scale(self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        """Factor of the noise of variable `i` in every row."""
        ...


@runtime_checkable
class PostNonlinear(Protocol):
    """A mechanism whose targets may be monotone functions of a sum: h(x) = mean + noise."""

    def warp(self, params: Params, x: Array, i: Array) -> Array:
        """h of variable `i`, value by value."""
        ...

    def unwarp(self, params: Params, z: Array, i: Array) -> Array:
        """Inverse of `warp`."""
        ...

    def log_slope(self, params: Params, x: Array, i: Array) -> Array:
        """log h' of variable `i`, value by value."""
        ...


@runtime_checkable
class DiscreteNodes(Protocol):
    """A mechanism some of whose variables are levels or counts: they follow from probabilities.

    Such a variable is the quantile at Φ(noise) of its distribution given the parents, with
    standard normal noise.
    """

    def is_continuous(self, i: Array) -> Array:
        """Whether variable `i` is its mean plus noise, as of any other mechanism."""
        ...

    def is_unordered(self, i: Array) -> Array:
        """Whether variable `i` has levels without an order."""
        ...

    def log_mass(self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        """Log probability of the value of variable `i` in every row."""
        ...

    def below(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> tuple[Array, Array]:
        """Probability of a smaller value than that of variable `i`, and of that value itself."""
        ...

    def quantile(
        self,
        params: Params,
        x: Rows,
        parents: Shaped[Array, " d"],
        i: Array,
        probability: Array,
    ) -> Array:
        """Value of variable `i` at this probability, in every row."""
        ...

    def level_probabilities(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Array:
        """Probability of every level of variable `i`, where it has levels."""
        ...


@runtime_checkable
class Noise(Protocol):
    """Density of the residuals, one independent component per variable."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters at the start of a chain."""
        ...

    def log_prob(self, params: Params, residual: Rows) -> Rows:
        """Log density of each residual."""
        ...

    def sample(self, params: Params, key: Key, shape: tuple[int, ...]) -> Rows:
        """Residuals of shape (n, d)."""
        ...


@runtime_checkable
class StructurePrior(Protocol):
    """A mixture of local in-degree penalties; a frozen dataclass of its settings."""

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """Log weights, less each component's log normaliser, and penalties by in-degree.

        So Σ_c exp(log_weights[c] + Σ_i penalty[c, in-degree of i]) sums to one, over all
        pairs of order and DAG or over all DAGs. Of the d nodes `num_contexts` have no parents
        and precede all others.
        """
        ...

    def describe(self) -> str:
        """The prior in words."""
        ...
