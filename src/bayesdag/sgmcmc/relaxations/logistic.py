"""Logistic: each pair of potentials compared on its own, without a permutation."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bayesdag.types import Graph, Key, Potentials


@dataclass(frozen=True)
class Logistic:
    """σ((p_i - p_j) / t) in place of the step: the cheapest gradient of an order.

    Attributes:
        temperature: `t`, in units of the potentials, whose prior deviation is 0.1.
    """

    temperature: float = 0.05

    def init(self, d: int) -> None:
        """Nothing is carried."""
        del d

    def __call__(self, key: Key, potentials: Potentials, carry: None) -> tuple[Graph, None]:
        """The hard order with a straight-through gradient."""
        del key  # deterministic
        hard = (potentials[:, None] > potentials[None, :]).astype(potentials.dtype)
        soft, carry = self.relaxed(potentials, carry)
        return hard + (soft - jax.lax.stop_gradient(soft)), carry

    def permutation(self, potentials: Potentials, carry: None) -> None:
        """None: pairs are compared, nothing is sorted."""
        del potentials, carry

    def relaxed(self, potentials: Potentials, carry: None) -> tuple[Graph, None]:
        """The soft order, zero on the diagonal, and its own gradient."""
        difference = (potentials[:, None] - potentials[None, :]) / self.temperature
        distinct = 1 - jnp.eye(potentials.shape[0], dtype=potentials.dtype)
        return jax.nn.sigmoid(difference) * distinct, carry


build = Logistic
