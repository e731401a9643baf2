"""Independent Bernoulli edges: draws with a soft gradient, density and entropy."""

import jax
from jaxtyping import Float

from bayesdag.types import Array, Key, Mask


def sample(key: Key, logits: Float[Array, "d d"], temperature: float) -> Mask:
    """A binary mask whose gradient is that of the Gumbel-sigmoid at `temperature`.

    Forward it is an exact draw: the soft value exceeds one half with probability σ(logit).
    """
    soft = jax.nn.sigmoid((logits + jax.random.logistic(key, logits.shape)) / temperature)
    hard = (soft > 0.5).astype(logits.dtype)
    return hard + (soft - jax.lax.stop_gradient(soft))


def log_prob(logits: Float[Array, "d d"], mask: Mask) -> Float[Array, ""]:
    """log Π_ij Ber(mask_ij; σ(logits_ij))."""
    return (mask * jax.nn.log_sigmoid(logits) + (1 - mask) * jax.nn.log_sigmoid(-logits)).sum()


def entropy(logits: Float[Array, "d d"]) -> Float[Array, ""]:
    """Entropy of all entries together."""
    probability = jax.nn.sigmoid(logits)
    terms = probability * jax.nn.log_sigmoid(logits)
    return -(terms + (1 - probability) * jax.nn.log_sigmoid(-logits)).sum()
