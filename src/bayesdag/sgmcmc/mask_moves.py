"""Moves of the masks and their logits given an order: two kinds, both for one chain.

`AveragedMasks` is the paper's Algorithm 2: fresh masks at every step, SG-MCMC on the logits. Its
weakness is built in. A slope in W̃ is at most 1, a single edge is a single observation of its
logit, so W̃ needs hundreds of steps to follow a change of order, and when it has arrived it
says little. `Flips` keeps one mask per chain instead and moves it by Metropolis' rule with W̃
integrated out; W̃ given the mask is then drawn exactly. Both leave the same target.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.sgmcmc import mask_gradients
from bayesdag.sgmcmc.mask_gradients import MaskDraws, MaskGradient, SelfNormalised
from bayesdag.sgmcmc.node_energies import ChainContext, NodeEnergies
from bayesdag.types import Array, Key, Mask, Pytree, Sampler


@dataclass(frozen=True)
class AveragedMasks:
    """Algorithm 2: the likelihood averaged over several masks, SG-MCMC on the logits.

    Attributes:
        num_masks: masks per step.
        estimate: of the gradient in the logits.
        num_steps: of the logits per step of everything else.
    """

    num_masks: int = 4
    estimate: MaskGradient = SelfNormalised()
    num_steps: int = 1

    retains: ClassVar[bool] = False

    def __call__(
        self,
        key: Key,
        logits: Pytree,
        mask: Mask,
        chain: ChainContext,
        sampler: Sampler,
        scale: float,
    ) -> tuple[Pytree, Mask]:
        """The logits some steps further, and the columns that the data chose last."""
        for key_step in jax.random.split(key, self.num_steps):
            key_draw, key_move = jax.random.split(key_step)
            draws = self._draws(key_draw, logits.position, chain)
            grad = logits.position / scale**2 - self.estimate(logits.position, draws)
            logits = sampler.step(key_move, logits, grad)
            mask = mask_gradients.columns(draws.masks, draws.chosen)
        return logits, mask

    def _draws(self, key: Key, logits: Array, chain: ChainContext) -> MaskDraws:
        key_masks, key_choice = jax.random.split(key)
        noise, masks = mask_gradients.draw(key_masks, logits, self.num_masks)
        log_terms = chain.log_terms(masks)
        chosen = mask_gradients.choose(key_choice, log_terms)
        slope = jnp.zeros_like(logits)
        if self.estimate.needs_slope:
            graph = chain.graph(mask_gradients.columns(masks, chosen))
            slope = -chain.slope(graph) * chain.free()
        return MaskDraws(noise, masks, log_terms, chosen, slope)


@dataclass(frozen=True)
class Flips:
    """One mask per chain: entries flipped by Metropolis' rule, one proposal per column at a time.

    A proposal flips one entry that the order allows or, every other time, a second one with
    it, so that a parent can be exchanged for another. All columns move at once, since none
    knows of the others. Entries that the order silences follow their prior, a fair coin.

    Attributes:
        num_moves: proposals per column and step.
    """

    num_moves: int = 1

    retains: ClassVar[bool] = True

    def __call__(
        self,
        key: Key,
        logits: Pytree,
        mask: Mask,
        chain: ChainContext,
        sampler: Sampler,
        scale: float,
    ) -> tuple[Pytree, Mask]:
        """The logits as they were, because they are integrated out, and the new mask."""
        del sampler, scale
        free, energies = chain.free(), None
        # One draw for everything: each further one would take long to compile.
        uniform = jax.random.uniform(key, (self.num_moves, 3, *mask.shape), minval=1e-7)
        mask = jnp.where(free > 0, mask, (uniform[0, 0] < 0.5).astype(mask.dtype))
        for numbers in uniform:
            mask, energies = _flip(numbers, mask, free, chain, energies)
        return logits, mask


def _flip(
    uniform: Float[Array, "3 d d"],
    mask: Mask,
    free: Mask,
    chain: ChainContext,
    now: NodeEnergies | None,
) -> tuple[Mask, NodeEnergies]:
    """The mask after one proposal to each column, and its energies."""
    entries = _entries(uniform[1], uniform[2, 0] < 0.5, free)
    proposed = jnp.abs(mask - entries)
    if now is None:
        both = chain.evaluate(chain.graphs(jnp.stack([mask, proposed])))
    else:
        then = chain.evaluate(chain.graphs(proposed[None]))
        both = NodeEnergies(*map(lambda *pair: jnp.concatenate(pair), now, then))
    take = chain.accepted(uniform[2, 1], both)
    mask = jnp.where(take[None, :] > 0, proposed, mask)
    chosen = [jnp.where(take > 0, leaf[1:].T, leaf[:1].T).T for leaf in both]
    return mask, NodeEnergies(*chosen)


def draw_logits(key: Key, mask: Mask, scale: float) -> Float[Array, "d d"]:
    """W̃ given W, exactly: its density is 2 N(w; 0, s²) σ(±w), so only a sign has to be chosen."""
    key_size, key_sign = jax.random.split(key)
    drawn = scale * jax.random.normal(key_size, mask.shape, mask.dtype)
    keep = jax.random.logistic(key_sign, mask.shape, mask.dtype) < drawn
    up = jnp.where(keep, drawn, -drawn)
    return jnp.where(mask > 0, up, -up)


def _entries(uniform: Float[Array, "d d"], twice: Array, free: Mask) -> Mask:
    """One free entry of each column, chosen at random, or two, marked by 1."""
    scores = free * (1 + uniform)
    first = _highest(scores)
    # Where nothing else is free the second would be the first again.
    second = _highest(scores * (1 - first)) * (1 - first) * twice[None, :].astype(free.dtype)
    return (first + second) * free


def _highest(scores: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """1 at the highest entry of each column; a sort would take longer to compile."""
    index = jnp.arange(scores.shape[0])
    return (index[:, None] == jnp.argmax(scores, axis=0)[None, :]).astype(scores.dtype)
