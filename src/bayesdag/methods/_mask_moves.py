"""How do the masks and their logits move, given an order? Two answers, both for one chain.

`Averaged` is the paper's Algorithm 2: fresh masks at every step, SG-MCMC on the logits. Its
weakness is built in. A slope in W̃ is at most 1, a single edge is a single observation of its
logit, so W̃ needs hundreds of steps to follow a change of order, and when it has arrived it
says little. `Flips` keeps one mask a chain instead and moves it by Metropolis' rule with W̃
integrated out; then W̃ is drawn given the mask, exactly. Both leave the same target.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.dagspace import Support, confine
from bayesdag.energy import Batch
from bayesdag.methods import _mask_gradients
from bayesdag.methods._mask_gradients import MaskDraws, MaskGradient, SelfNormalised
from bayesdag.methods._node_energies import NodeEnergies, accepted
from bayesdag.types import Array, Graph, Key, Mask, Sampler

Evaluate = Callable[..., NodeEnergies]
Slope = Callable[[Graph], Graph]


class Place(NamedTuple):
    """Where one chain stands while its masks move.

    Attributes:
        order: 1 where the potentials allow an edge.
        support: what is known.
        evaluate: node energies of graphs, with the functions as they are.
        slope: gradient of the data's energy in a graph.
        batch: the rows behind both.
        temperature: of the target.
        logit_scale: prior deviation of the logits.
    """

    order: Graph
    support: Support
    evaluate: Evaluate
    slope: Slope
    batch: Batch
    temperature: float
    logit_scale: float

    def graph(self, mask: Mask) -> Graph:
        """τ(W, p) with what is known."""
        return confine(mask, self.support) * self.order

    def graphs(self, masks: Float[Array, "s d d"]) -> Float[Array, "s d d"]:
        """τ(W, p) of several masks."""
        return jax.vmap(self.graph)(masks)

    def free(self) -> Mask:
        """1 where an entry of the mask decides about an edge."""
        return self.order * self.support.allowed * (1 - self.support.required)


@dataclass(frozen=True)
class Averaged:
    """Algorithm 2: the likelihood averaged over several masks, SG-MCMC on the logits.

    Attributes:
        num_masks: masks a step.
        estimate: of the gradient in the logits.
        num_steps: of the logits for each step of everything else.
    """

    num_masks: int = 4
    estimate: MaskGradient = SelfNormalised()
    num_steps: int = 1

    def __call__(
        self, key: Key, logits: Any, mask: Mask, place: Place, sampler: Sampler
    ) -> tuple[Any, Mask]:
        """The logits some steps further, and the columns that the data chose last."""
        for key_step in jax.random.split(key, self.num_steps):
            key_draw, key_move = jax.random.split(key_step)
            draws = self._draws(key_draw, logits.position, place)
            grad = logits.position / place.logit_scale**2
            grad = grad - self.estimate(logits.position, draws)
            logits = sampler.step(key_move, logits, grad)
            mask = _mask_gradients.columns(draws.masks, draws.chosen)
        return logits, mask

    def _draws(self, key: Key, logits: Array, place: Place) -> MaskDraws:
        key_masks, key_choice = jax.random.split(key)
        noise, masks = _mask_gradients.draw(key_masks, logits, self.num_masks)
        log_terms = -place.evaluate(place.graphs(masks)).total
        chosen = _mask_gradients.choose(key_choice, log_terms)
        slope = jnp.zeros_like(logits)
        if self.estimate.needs_slope:
            graph = place.graph(_mask_gradients.columns(masks, chosen))
            slope = -place.slope(graph) * place.free()
        return MaskDraws(noise, masks, log_terms, chosen, slope)


@dataclass(frozen=True)
class Flips:
    """One mask a chain: entries flipped by Metropolis' rule, one proposal a column at a time.

    A proposal flips one entry that the order allows or, every other time, a second one with
    it, so that a parent can be exchanged for another. All columns move at once, since none
    knows of the others. Entries that the order silences follow their prior, a fair coin.

    Attributes:
        num_moves: proposals to each column a step.
    """

    num_moves: int = 1

    def __call__(
        self, key: Key, logits: Any, mask: Mask, place: Place, sampler: Sampler
    ) -> tuple[Any, Mask]:
        """Logits drawn given the new mask, and that mask."""
        del sampler  # the logits are drawn exactly
        key_silent, key_logits, *keys = jax.random.split(key, 2 + self.num_moves)
        free = place.free()
        coin = jax.random.bernoulli(key_silent, 0.5, mask.shape).astype(mask.dtype)
        mask = jnp.where(free > 0, mask, coin)
        for count, key_move in enumerate(keys):
            mask, energies = self._move(key_move, mask, free, place, energies if count else None)
        fresh = draw_logits(key_logits, mask, place.logit_scale)
        return logits._replace(position=fresh), mask

    def _move(
        self, key: Key, mask: Mask, free: Mask, place: Place, now: NodeEnergies | None
    ) -> tuple[Mask, NodeEnergies]:
        key_entries, key_accept = jax.random.split(key)
        proposed = jnp.abs(mask - _entries(key_entries, free))
        if now is None:
            now, then = place.evaluate(place.graphs(jnp.stack([mask, proposed]))).split()
        else:
            then = place.evaluate(place.graphs(proposed[None]))
        alone = jnp.eye(mask.shape[0], dtype=mask.dtype)
        take = accepted(key_accept, then.change(now), alone, place.batch, place.temperature)
        mask = jnp.where(take[None, :] > 0, proposed, mask)
        return mask, now.where(take, then)


def draw_logits(key: Key, mask: Mask, scale: float) -> Float[Array, "d d"]:
    """W̃ given W, exactly: its density is 2 N(w; 0, s²) σ(±w), so only a sign has to be chosen."""
    key_size, key_sign = jax.random.split(key)
    drawn = scale * jax.random.normal(key_size, mask.shape, mask.dtype)
    keep = jax.random.logistic(key_sign, mask.shape, mask.dtype) < drawn
    up = jnp.where(keep, drawn, -drawn)
    return jnp.where(mask > 0, up, -up)


def _entries(key: Key, free: Mask) -> Mask:
    """One or two free entries of each column, chosen at random, marked by 1."""
    key_scores, key_second = jax.random.split(key)
    scores = jnp.where(free > 0, jax.random.uniform(key_scores, free.shape), -1.0)
    ranks = jnp.argsort(jnp.argsort(-scores, axis=0), axis=0)
    second = jax.random.bernoulli(key_second, 0.5, free.shape[:1]).astype(jnp.int32)
    return ((ranks <= second[None, :]) & (free > 0)).astype(free.dtype)
