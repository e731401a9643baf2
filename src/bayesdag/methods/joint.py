"""Potentials, masks and functions all sampled: the paper's second engine (Algorithm 2).

Nothing is variational here. Masks have logits W̃ with a normal prior, p(W_ij=1|W̃) = σ(W̃_ij),
and SG-MCMC moves (p, W̃, Θ, σ). With W̃ summed out a mask is a fair coin in every entry, so
the posterior of graphs and functions is the one that `bayesdag` aims at.
As printed W̃ cannot follow when p reorders. `masks`, `num_swaps` and `start_heat` hold the
remedies; `bayesdag bench joint` measures what each is worth.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.data import Dataset
from bayesdag.model.energy import Batch, Gradient
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.posterior import Posterior
from bayesdag.runs.loop import RunState
from bayesdag.sgmcmc import (
    annealing,
    chains,
    dagspace,
    graph_draws,
    joint_draws,
    order_gradients,
    order_moves,
    reweighting,
)
from bayesdag.sgmcmc.chains import DataContext
from bayesdag.sgmcmc.engine import Engine, Temperatures, all_rows
from bayesdag.sgmcmc.mask_moves import AveragedMasks, Flips
from bayesdag.sgmcmc.node_energies import chain_context
from bayesdag.sgmcmc.order_gradients import OrderPoint
from bayesdag.types import Array, Key, Keys, Params, Pytree, Sampler


class JointState(NamedTuple):
    """All chains of one data set.

    Attributes:
        potentials: sampler state; its position has shape (chain, d).
        logits: sampler state of W̃, (chain, d, d).
        params: sampler state of Θ and σ.
        masks: W of each chain.
        carry: of the relaxation, for each chain.
        rows: the order in which this epoch visits the rows.
    """

    potentials: Pytree
    logits: Pytree
    params: Params
    masks: Float[Array, "chain d d"]
    carry: Pytree
    rows: Int[Array, " n"]


@dataclass(frozen=True)
class Joint(Engine):
    """SG-MCMC over potentials, mask logits and functions together, no variational part.

    Attributes:
        masks: how W and W̃ move given the order: `AveragedMasks` is Algorithm 2 as printed.
        num_swaps: proposals per step to exchange neighbours in the order.
        order_gradient: whether the data's straight-through gradient moves the potentials,
            as printed; False leaves the order to the swaps.
        logit_scale: prior deviation of W̃; the paper gives none.
        num_evaluated: masks drawn from p(W|W̃) for each draw that is kept, to weigh them.
        logit_sampler: of W̃; None: the same as `sampler`.

    The other settings are those of `EngineSettings`; the chains are independent.
    """

    _: KW_ONLY
    masks: AveragedMasks | Flips = Flips()
    num_swaps: int = 1
    order_gradient: bool = False
    logit_scale: float = 1.0
    num_evaluated: int = 8
    logit_sampler: Sampler | None = None

    PRESETS: ClassVar[dict[str, "Joint"]] = {}

    def posteriors(
        self, keys: Keys, done: RunState, datasets: Sequence[Dataset], context: DataContext
    ) -> list[Posterior]:
        """Draws whose graphs are drawn anew, by weight, from the masks that the logits allow."""
        scale = self.logit_scale if self.masks.retains else None
        draws = reweighting.graphs(
            keys, self.energy, done.draws, context, self.num_evaluated, scale
        )
        found = joint_draws.posteriors(self, done._replace(draws=draws), datasets, context)
        return [self._noted(posterior) for posterior in found]

    def start(self, key: Key, num_rows: int, d: int) -> JointState:
        """All chains of one data set before the first step."""
        key_potentials, key_mechanism, key_noise, key_logits, key_masks = jax.random.split(key, 5)
        potentials = self.init_scale * jax.random.normal(key_potentials, (self.num_chains, d))
        params = self.init_params(key_mechanism, key_noise, d)
        shape = (self.num_chains, d, d)
        logits = self.logit_scale * jax.random.normal(key_logits, shape)
        coin = jax.random.bernoulli(key_masks, 0.5, shape)
        return JointState(
            potentials=self._potential_sampler.init(potentials),
            logits=jax.vmap(self._logit_sampler.init)(logits),
            params=self._param_sampler.init(params),
            masks=coin.astype(logits.dtype),
            carry=chains.carries(self, d),
            rows=all_rows(num_rows),
        )

    def step(
        self, key: Key, step: Array, state: JointState, context: DataContext
    ) -> tuple[JointState, dict[str, Array]]:
        """One sweep: masks and logits, the order, then (p, Θ, σ) by SG-MCMC."""
        key_rows, key_graphs, key_p, key_params = jax.random.split(key, 4)
        batch, rows = chains.next_batch(self, key_rows, step, state.rows, context)
        state = state._replace(rows=rows)
        state = self._move_graphs(key_graphs, step, state, context, batch)
        graphs = self._graphs(state, context)
        slope = self.data_gradients(graphs, state.params.position, batch, ("mechanism", "noise"))
        if self.order_gradient:
            state = self._move_potentials(key_p, state, graphs, slope, context, batch)
        state = self._move_params(key_params, state, slope)
        return state, self._stats(state, graphs, slope, context)

    def keep(self, key: Key, state: JointState, context: DataContext) -> Params:
        """(p, W̃, W, Θ, σ) of every chain; graphs are chosen when all have been kept."""
        del key
        potentials = jax.vmap(lambda c: self.lift(c, context)[0])(state.potentials.position)
        binary = state.masks.astype(jnp.int8)
        kept = {"potentials": potentials, "logits": state.logits.position, "mask": binary}
        return kept | state.params.position

    @property
    def temperatures(self) -> Temperatures:
        """Temperatures of the chains' targets."""
        samplers = (self._potential_sampler, self._param_sampler)
        return Temperatures(*(sampler.noise_scale**2 for sampler in samplers))

    def clipped_share(self, state: JointState) -> Array:
        """Fraction of functions' coordinates where mini-batches alone are too noisy."""
        return self._param_sampler.clipped_share(state.params)

    def notes(self) -> list[str]:
        """Notes for readers of the posterior about these settings."""
        return [graph_draws.STRAIGHT_THROUGH] if self.order_gradient else []

    def _noted(self, posterior: Posterior) -> Posterior:
        """The posterior with the effective number of masks among its notes."""
        effective = float(posterior.stats["effective_masks"].mean())
        num = self.num_evaluated + self.masks.retains
        note = f"of {num} masks weighed for each draw {effective:.1f} count, node by node"
        stated = posterior.provenance
        changes = {"notes": [*stated["notes"], note], "effective_masks": effective}
        return dataclasses.replace(posterior, provenance=stated | changes)

    def _move_graphs(
        self, key: Key, step: Array, state: JointState, context: DataContext, batch: Batch
    ) -> JointState:
        """W and W̃ given the order, then exchanges of neighbours in the order."""
        heat = self._heat(step)

        def one(key: Key, coordinates: Array, mask: Array, params: Params, logits: Pytree) -> tuple:
            key_component, key_masks, key_swaps = jax.random.split(key, 3)
            potentials = self.lift(coordinates, context)[0]
            chain = chain_context(
                key_component, self.energy, potentials, mask, params, context.support, batch, heat
            )
            sampler, scale = self._logit_sampler, self.logit_scale
            logits, mask = self.masks(key_masks, logits, mask, chain, sampler, scale)
            for key_swap in jax.random.split(key_swaps, self.num_swaps):
                potentials, mask, chain = order_moves.swap(key_swap, potentials, mask, chain)
            if self.num_swaps:
                coordinates = dagspace.lower(potentials, context.support, self.potential_scale)
            return coordinates, mask, chain.params, logits

        mapped = chains.over_chains(one, one_by_one=chains.keeps_in_cache(self))
        coordinates, masks, params, logits = mapped(
            jax.random.split(key, self.num_chains),
            state.potentials.position,
            state.masks,
            state.params.position,
            state.logits,
        )
        return state._replace(
            potentials=state.potentials._replace(position=coordinates),
            masks=masks,
            params=state.params._replace(position=params),
            logits=logits,
        )

    def _heat(self, step: Array) -> Array | float:
        """Temperature at which graphs move now."""
        power = annealing.likelihood_power(self.start_heat, self.num_warmup, step)
        return self.temperature / power

    def _graphs(self, state: JointState, context: DataContext) -> Array:
        def one(coordinates: Array, mask: Array) -> Array:
            order = dagspace.order(self.lift(coordinates, context)[0])
            return dagspace.confine(mask, context.support) * order

        return jax.vmap(one)(state.potentials.position, state.masks)

    def _move_potentials(
        self,
        key: Key,
        state: JointState,
        graphs: Array,
        slope: Gradient,
        context: DataContext,
        batch: Batch,
    ) -> JointState:
        """SG-MCMC on p."""
        at = OrderPoint(state.potentials.position, state.masks, graphs, state.carry)
        grad = order_gradients.gradient(self, key, at, slope, context, batch)
        sampler = self._potential_sampler
        moved = sampler.step(key, state.potentials, grad.value, grad.variance)
        return state._replace(potentials=moved, carry=grad.carry)

    def _move_params(self, key: Key, state: JointState, slope: Gradient) -> JointState:
        """SG-MCMC on Θ and σ."""
        cost = jax.vmap(jax.grad(self.energy.params))(state.params.position)
        grad = jax.tree.map(jnp.add, slope.params, cost)
        moved = self._param_sampler.step(key, state.params, grad, slope.variance)
        return state._replace(params=moved)

    def _stats(
        self, state: JointState, graphs: Array, slope: Gradient, context: DataContext
    ) -> dict[str, Array]:
        """Of every chain; the energy is an estimate from this batch."""
        energy = self.energy_now(graphs, state.params.position, slope, context)
        moved = state.potentials.position.sum(axis=1) + state.logits.position.sum(axis=(1, 2))
        return {"energy": energy + 0 * moved, "edges": graphs.sum(axis=(1, 2))}

    @cached_property
    def _logit_sampler(self) -> Sampler:
        return chains.tempered(self, self.logit_sampler or self.sampler)


Joint.PRESETS["quick"] = Joint(
    mechanism=Linear(intercept=False, init_scale=0.1),
    num_chains=64,
    num_warmup=300,
    num_samples=10,
    thinning=10,
)
build = Joint
