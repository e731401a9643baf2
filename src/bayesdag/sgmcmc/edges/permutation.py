"""q(W|p) by a network of the order alone: what the published nonlinear runs used."""

from dataclasses import dataclass

from jaxtyping import Float

from bayesdag.graphs import rank_matrix
from bayesdag.sgmcmc.edges._independent import Independent
from bayesdag.types import Array, Graph, Potentials


@dataclass(frozen=True)
class Permutation(Independent):
    """Independent edges; logits from the flattened rank matrix by two hidden layers."""

    width: int = 128

    def num_inputs(self, d: int) -> int:
        """The entries of the rank matrix."""
        return d * d

    def inputs(self, potentials: Potentials, permutation: Graph | None) -> Float[Array, " k"]:
        """The rank matrix; without one given it is found from the potentials, no gradient."""
        ranks = rank_matrix(potentials) if permutation is None else permutation
        return ranks.reshape(-1)


build = Permutation
