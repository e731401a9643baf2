"""Estimates of the gradient of the mask logits, ∇ log E[p(D|W)].

The expectation is over W ~ p(W|W̃) and factors over the nodes, because given an order and the
functions a node's likelihood depends on its own column of W alone. So every estimate is made
node by node, from the same few masks: d problems of size d instead of one of size d².
No estimate of the gradient of a logarithm is unbiased at a finite number of masks; how much
each of these is off, and how noisy it is, is measured by `bayesdag bench joint`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.posterior.estimates import kish_ess
from bayesdag.types import Array, Key, Mask

Logits = Float[Array, "d d"]
LogTerms = Float[Array, "s d"]


class MaskDraws(NamedTuple):
    """Masks drawn from p(W|W̃), and what the data say of each of their columns.

    Attributes:
        noise: logistic; a mask is 1 where logit + noise is positive.
        masks: the draws.
        log_terms: log p(x_j | column j of mask s), with what its edges cost.
        chosen: for each node the mask that the data have chosen.
        slope: gradient of the log terms in the entries of the chosen columns.
    """

    noise: Float[Array, "s d d"]
    masks: Float[Array, "s d d"]
    log_terms: LogTerms
    chosen: Int[Array, " d"]
    slope: Float[Array, "d d"]


@runtime_checkable
class MaskGradient(Protocol):
    """An estimate of the gradient of Σ_j log E[exp(log term_j)]; needs_slope: of what."""

    needs_slope: ClassVar[bool]

    def __call__(self, logits: Logits, draws: MaskDraws) -> Logits:
        """The estimate."""
        ...


@dataclass(frozen=True)
class StraightThrough:
    """The gradient of a mask's entries, passed on by the slope of a Gumbel-sigmoid.

    The paper's choice. It takes the likelihood for linear in every entry, which no likelihood
    is: its bias does not vanish with the number of masks.

    Attributes:
        temperature: of the Gumbel-sigmoid.
    """

    temperature: float = 0.2
    needs_slope: ClassVar[bool] = True

    def __call__(self, logits: Logits, draws: MaskDraws) -> Logits:
        """The estimate, at the column that each node has chosen."""
        soft = jax.nn.sigmoid((logits + columns(draws.noise, draws.chosen)) / self.temperature)
        return draws.slope * soft * (1 - soft) / self.temperature


@dataclass(frozen=True)
class LeaveOneOut:
    """Score function, each mask judged against the average of the others.

    Unbiased for the gradient of E[log mean exp], a lower bound of log E; where single masks
    differ by hundreds of nats, so does the estimate, although no true slope exceeds 1.
    """

    needs_slope: ClassVar[bool] = False

    def __call__(self, logits: Logits, draws: MaskDraws) -> Logits:
        """The estimate."""
        num = draws.log_terms.shape[0]
        others = jnp.where(jnp.eye(num, dtype=bool)[:, :, None], -jnp.inf, draws.log_terms[None])
        without = jax.nn.logsumexp(others, axis=1) - jnp.log(num - 1.0)
        signal = log_mean_exp(draws.log_terms)[None, :] - without
        return jnp.einsum("sj,sij->ij", signal, _scores(logits, draws.masks))


@dataclass(frozen=True)
class SelfNormalised:
    """Score function weighted by the likelihood's fraction, less its mean without the data.

    The plain form of ∇ log E = E[W - σ(W̃) | W̃, D]. Its bias is that of a ratio, and
    vanishes with the number of masks; no entry exceeds 1.
    """

    needs_slope: ClassVar[bool] = False

    def __call__(self, logits: Logits, draws: MaskDraws) -> Logits:
        """The estimate."""
        fraction = node_weights(draws.log_terms) - 1 / draws.log_terms.shape[0]
        return jnp.einsum("sj,sij->ij", fraction, _scores(logits, draws.masks))


def draw(key: Key, logits: Logits, num_masks: int) -> tuple[Array, Array]:
    """Masks W ~ p(W|W̃) and the noise that made them."""
    noise = jax.random.logistic(key, (num_masks, *logits.shape), logits.dtype)
    return noise, (logits[None] + noise > 0).astype(logits.dtype)


def log_mean_exp(log_terms: LogTerms) -> Float[Array, " d"]:
    """log of the mean likelihood of each node; stable however large the terms are."""
    return jax.nn.logsumexp(log_terms, axis=0) - jnp.log(float(log_terms.shape[0]))


def node_weights(log_terms: LogTerms) -> LogTerms:
    """Fraction of each mask in the likelihood of each node."""
    return jax.nn.softmax(log_terms, axis=0)


def columns(masks: Float[Array, "s d d"], chosen: Int[Array, " d"]) -> Mask:
    """Column j of mask `chosen[j]`, for every j."""
    return jnp.take_along_axis(masks, chosen[None, None, :], axis=0)[0]


def effective_number(log_terms: LogTerms) -> Float[Array, " d"]:
    """Masks that count for each node (Kish)."""
    return jnp.asarray(kish_ess(node_weights(log_terms), axis=0))


def choose(key: Key, log_terms: LogTerms) -> Int[Array, " d"]:
    """For each node a mask with probability equal to its weight.

    A function of the graph averaged over such choices is its expectation re-weighted as in
    the proposition "equivalence of posterior expectation".
    """
    return jax.random.categorical(key, log_terms, axis=0)


def _scores(logits: Logits, masks: Float[Array, "s d d"]) -> Float[Array, "s d d"]:
    """∇ log p(W|W̃) of each mask."""
    return masks - jax.nn.sigmoid(logits)[None]
