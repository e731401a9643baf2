"""A structure prior for code that counts nodes and does not know which of them are contexts."""

from dataclasses import dataclass

from bayesdag.types import Components, StructurePrior


@dataclass(frozen=True)
class GivenContexts:
    """Another prior, over graphs in which so many nodes are contexts.

    Attributes:
        prior: of the graph.
        num_contexts: nodes without parents that precede all others.
    """

    prior: StructurePrior
    num_contexts: int

    def components(self, d: int, order_modular: bool = True, num_contexts: int = 0) -> Components:
        """Those of the other prior."""
        del num_contexts
        return self.prior.components(d, order_modular, self.num_contexts)

    def describe(self) -> str:
        """The other prior in words."""
        return self.prior.describe()
