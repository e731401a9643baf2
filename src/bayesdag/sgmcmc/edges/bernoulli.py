"""q(W|p) by a network of the potentials themselves: the one of the paper's text."""

from dataclasses import dataclass

from jaxtyping import Float

from bayesdag.sgmcmc.edges import _network
from bayesdag.sgmcmc.edges._independent import Independent
from bayesdag.types import Array, Graph, Potentials


@dataclass(frozen=True)
class Bernoulli(Independent):
    """Independent edges; logits from LayerNorm(p) by two hidden layers."""

    def num_inputs(self, d: int) -> int:
        """The potentials."""
        return d

    def inputs(self, potentials: Potentials, permutation: Graph | None) -> Float[Array, " d"]:
        """Standardised potentials: the gradient runs through them, not through the ranks."""
        del permutation
        return _network.standardise(potentials)


build = Bernoulli
