"""SoftSort: a softmax over the distances to the sorted potentials."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bayesdag.graphs import rank_matrix
from bayesdag.sgmcmc.relaxations._order import order_of
from bayesdag.types import Graph, Key, Potentials


@dataclass(frozen=True)
class SoftSort:
    """Row-stochastic relaxation of the sort (Prillo & Eisenschlos, 2020).

    Attributes:
        temperature: in units of the potentials, whose prior deviation is 0.1.
    """

    temperature: float = 0.05

    def init(self, d: int) -> None:
        """Nothing is carried."""
        del d

    def __call__(self, key: Key, potentials: Potentials, carry: None) -> tuple[Graph, None]:
        """The hard order with a straight-through gradient.

        The cotangent is taken at the *hard* permutation, then pulled through the soft one.
        """
        del key  # deterministic
        permutation, carry = self.permutation(potentials, carry)
        return order_of(permutation), carry

    def permutation(self, potentials: Potentials, carry: None) -> tuple[Graph, None]:
        """The hard rank matrix, with the gradient of the soft one."""
        soft = self._soft(potentials)
        return rank_matrix(potentials) + (soft - jax.lax.stop_gradient(soft)), carry

    def relaxed(self, potentials: Potentials, carry: None) -> tuple[Graph, None]:
        """The soft order P L Pᵀ and its own gradient."""
        return order_of(self._soft(potentials)), carry

    def _soft(self, potentials: Potentials) -> Graph:
        distance = jnp.abs(potentials[:, None] - jnp.sort(potentials)[None, :])
        return jax.nn.softmax(-distance / self.temperature, axis=1)


build = SoftSort
