"""q(W|p) with independent edges whose logits come from a network: what is common to them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Float

from bayesdag.sgmcmc.edges import _bernoulli, _network
from bayesdag.types import Array, Graph, Key, Mask, Params, Potentials


@dataclass(frozen=True)
class Independent(ABC):
    """Independent edges; logits by two hidden layers from whatever `inputs` gives.

    Attributes:
        width: units of both hidden layers.
        temperature: of the Gumbel-sigmoid that supplies the gradient of a draw.
        logit_shift: added to every logit; the published "sparse init" is -1.
        entropy_of_shifted: False leaves the shift out of the entropy, a slip of the
            published code that its presets need.
    """

    width: int = 48
    temperature: float = 0.2
    logit_shift: float = 0.0
    entropy_of_shifted: bool = True

    @abstractmethod
    def num_inputs(self, d: int) -> int:
        """Numbers that the network reads."""

    @abstractmethod
    def inputs(self, potentials: Potentials, permutation: Graph | None) -> Float[Array, " k"]:
        """Inputs of the network."""

    def init(self, key: Key, d: int) -> Params:
        """Weights of the network."""
        return _network.init(key, (self.num_inputs(d), self.width, d * d))

    def sample(
        self,
        params: Params,
        key: Key,
        potentials: Potentials,
        permutation: Graph | None = None,
    ) -> Mask:
        """A mask, hard forward and soft backward.

        Args:
            params: of the network.
            key: consumed.
            potentials: that the mask is to suit.
            permutation: the rank matrix, when its gradient is to be followed.
        """
        logits = self.logits(params, potentials, permutation)
        return _bernoulli.sample(key, logits, self.temperature)

    def log_prob(self, params: Params, potentials: Potentials, mask: Mask) -> Float[Array, ""]:
        """log q(mask | potentials)."""
        return _bernoulli.log_prob(self.logits(params, potentials), mask)

    def entropy(self, params: Params, potentials: Potentials) -> Float[Array, ""]:
        """Entropy of q(W | potentials)."""
        shift = 0.0 if self.entropy_of_shifted else self.logit_shift
        return _bernoulli.entropy(self.logits(params, potentials) - shift)

    def logits(
        self, params: Params, potentials: Potentials, permutation: Graph | None = None
    ) -> Float[Array, "d d"]:
        """Log odds of every entry of the mask."""
        d = potentials.shape[0]
        logits = _network.apply(params, self.inputs(potentials, permutation))
        return logits.reshape(d, d) + self.logit_shift
