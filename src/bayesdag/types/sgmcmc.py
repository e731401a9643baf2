"""Protocols of the parts of the (W, p) engines: relaxations of an order, samplers, edges."""

from typing import Protocol, runtime_checkable

from bayesdag.types.arrays import Array, Graph, Key, Mask, Params, Potentials, Pytree


@runtime_checkable
class Relaxation(Protocol):
    """Supplies the gradient of an order: `order[i, j] ≈ step(p_i - p_j)`."""

    def init(self, d: int) -> Pytree:
        """Carry handed from one call to the next (Sinkhorn keeps its duals here)."""
        ...

    def __call__(self, key: Key, potentials: Potentials, carry: Pytree) -> tuple[Graph, Pytree]:
        """The hard order with the gradient of a soft one, and the new carry."""
        ...

    def relaxed(self, potentials: Potentials, carry: Pytree) -> tuple[Graph, Pytree]:
        """The soft order itself, and the new carry."""
        ...

    def permutation(self, potentials: Potentials, carry: Pytree) -> tuple[Graph, Pytree] | None:
        """The hard rank matrix with the gradient of a soft one; None where there is none."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """Moves a position along the gradient of the energy, with noise.

    Its state is a NamedTuple with a field `position`.
    """

    @property
    def noise_scale(self) -> float:
        """Square root of the temperature of the target."""
        ...

    def init(self, position: Params) -> Pytree:
        """State that starts at `position`."""
        ...

    def step(
        self, key: Key, state: Pytree, grad: Params, grad_variance: Params | None = None
    ) -> Pytree:
        """State after one update.

        Args:
            grad: gradient of the energy at `state.position`.
            grad_variance: variance of `grad` due to the choice of rows; None: no such noise.
        """
        ...

    def clipped_share(self, state: Pytree) -> Array:
        """Fraction of coordinates where mini-batches alone are noisier than the target."""
        ...


@runtime_checkable
class Edges(Protocol):
    """q(W|p): a distribution over edge masks given the potentials."""

    def init(self, key: Key, d: int) -> Params:
        """Parameters φ."""
        ...

    def sample(
        self, params: Params, key: Key, potentials: Potentials, permutation: Graph | None = None
    ) -> Mask:
        """A mask, hard forward and soft backward.

        `permutation` is the rank matrix, where its gradient is to be followed.
        """
        ...

    def log_prob(self, params: Params, potentials: Potentials, mask: Mask) -> Array:
        """log q(mask | potentials)."""
        ...

    def entropy(self, params: Params, potentials: Potentials) -> Array:
        """Entropy of q(W | potentials)."""
        ...
