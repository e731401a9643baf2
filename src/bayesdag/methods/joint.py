"""Potentials, masks and functions all sampled: the paper's second engine (Algorithm 2).

Nothing is variational here. Masks have logits W̃ with a normal prior, p(W_ij=1|W̃) = σ(W̃_ij),
and SG-MCMC moves (p, W̃, Θ, σ). With W̃ summed out a mask is a fair coin in every entry, so
the posterior of graphs and functions is the one that `bayesdag` aims at.
As printed W̃ cannot follow when p reorders. `masks`, `num_swaps` and `start_heat` hold the
remedies; `bayesdag bench joint` measures what each is worth.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Batch, Gradient
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.neural import NeuralMechanism
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.density import DensityGrid
from bayesdag.posterior import Posterior
from bayesdag.runs import loop
from bayesdag.sgmcmc import (
    annealing,
    chains,
    dagspace,
    joint_draws,
    order_gradients,
    order_moves,
    reweighting,
)
from bayesdag.sgmcmc.chains import ChainContext
from bayesdag.sgmcmc.engine import Engine, started
from bayesdag.sgmcmc.mask_moves import AveragedMasks, Flips
from bayesdag.sgmcmc.node_energies import chain_context
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC
from bayesdag.types import (
    Array,
    Key,
    Keys,
    Mechanism,
    Monitor,
    Noise,
    Params,
    Relaxation,
    Sampler,
    StructurePrior,
)


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

    potentials: Any
    logits: Any
    params: Any
    masks: Float[Array, "chain d d"]
    carry: Any
    rows: Int[Array, " n"]


@dataclass(frozen=True)
class Joint(Engine):
    """SG-MCMC over potentials, mask logits and functions together, no variational part.

    Attributes:
        mechanism: linear or neural.
        noise: of the residuals.
        relaxation: supplies the gradient of the order.
        masks: how W and W̃ move given the order: `AveragedMasks` is Algorithm 2 as printed.
        num_swaps: proposals a step to exchange neighbours in the order.
        order_gradient: whether the data's straight-through gradient moves the potentials,
            as printed; False leaves the order to the swaps.
        logit_scale: prior deviation of W̃; the paper gives none.
        num_evaluated: masks drawn from p(W|W̃) for each draw that is kept, to weigh them.
        prior: of the graph given its order; by default the edge density is unknown.
        sparsity: λ_s, a cost of every edge *instead* of `prior`.
        sampler: of functions and noise scales; its gain never stops adapting, because an edge
            that appears later brings a steeper gradient than any before: under a frozen gain
            its weight leaves the numbers within a few steps.
        potential_sampler: of the potentials; None: the same.
        logit_sampler: of W̃; None: the same.
        temperature: the target is exp(-U / temperature).
        start_heat: how many times hotter graphs (not functions) move at the first step; during
            the first half of the warm-up this falls to 1. Functions learned under many graphs
            can tell them apart; those learned under one refuse every other.
        num_chains: independent chains that run side by side.
        num_warmup: steps before the first draw counts.
        num_samples: draws kept of each chain.
        thinning: steps between two draws.
        batch_size: rows a step; all of them where there are not more.
        correct_noise: whether mini-batch noise is taken out of the injected noise.
        potential_scale: prior deviation of the potentials.
        init_scale: their deviation at the start.
        tile_rows: rows handled at once; None chooses by device.
    """

    mechanism: Mechanism = NeuralMechanism()
    noise: Noise = Gaussian()
    relaxation: Relaxation = Sinkhorn()
    masks: AveragedMasks | Flips = Flips()
    num_swaps: int = 1
    order_gradient: bool = False
    logit_scale: float = 1.0
    num_evaluated: int = 8
    prior: StructurePrior = DensityGrid()
    sparsity: float | None = None
    sampler: Sampler = AdamSGHMC(num_adapt=None)
    potential_sampler: Sampler | None = None
    logit_sampler: Sampler | None = None
    temperature: float = 1.0
    start_heat: float = 3000.0
    num_chains: int = 10
    num_warmup: int = 5000
    num_samples: int = 50
    thinning: int = 40
    batch_size: int = 512
    correct_noise: bool = True
    potential_scale: float = 0.1
    init_scale: float = 0.01
    tile_rows: int | None = None

    share_edges: ClassVar[bool] = False
    PRESETS: ClassVar[dict[str, "Joint"]] = {}

    def fit_many(
        self,
        keys: Keys,
        datasets: Sequence[Dataset],
        knowledge: Constraints,
        monitor: Monitor | None = None,
    ) -> list[Posterior]:
        """One posterior a data set; all of equal shape, fitted in one compiled run."""
        context = chains.context(datasets, knowledge)
        _, n, d = context.x.shape
        schedule = loop.Schedule(self.num_warmup, self.num_samples, self.thinning)
        kernel = chains.StackedDatasets(self)
        done = loop.run(keys, kernel, started(self, keys, n, d), context, schedule, monitor)
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
        params = {
            "mechanism": chains.init_parts(self, self.mechanism, key_mechanism, d),
            "noise": chains.init_parts(self, self.noise, key_noise, d),
        }
        shape = (self.num_chains, d, d)
        logits = self.logit_scale * jax.random.normal(key_logits, shape)
        coin = jax.random.bernoulli(key_masks, 0.5, shape)
        return JointState(
            potentials=self._samplers["potentials"].init(potentials),
            logits=jax.vmap(self._samplers["logits"].init)(logits),
            params=self._samplers["params"].init(params),
            masks=coin.astype(logits.dtype),
            carry=chains.carries(self, d),
            rows=jnp.arange(num_rows, dtype=jnp.int32),
        )

    def step(
        self, key: Key, step: Array, state: JointState, context: ChainContext
    ) -> tuple[JointState, dict[str, Array]]:
        """One sweep: masks and logits, the order, then (p, Θ, σ) by SG-MCMC."""
        key_rows, key_graphs, key_p, key_params = jax.random.split(key, 4)
        batch, state = chains.next_batch(self, key_rows, step, state, context)
        state = self._move_graphs(key_graphs, step, state, context, batch)
        graphs = self._graphs(state, context)
        slope = self._slope(batch, ("mechanism", "noise"))(graphs, state.params.position)
        if self.order_gradient:
            state = self._move_potentials(key_p, state, graphs, slope, context, batch)
        state = self._move_params(key_params, state, slope)
        return state, self._stats(state, graphs, slope, context)

    def keep(self, key: Key, state: JointState, context: ChainContext) -> Params:
        """(p, W̃, W, Θ, σ) of every chain; graphs are chosen when all have been kept."""
        del key
        potentials = jax.vmap(lambda c: self.lift(c, context)[0])(state.potentials.position)
        binary = state.masks.astype(jnp.int8)
        kept = {"potentials": potentials, "logits": state.logits.position, "mask": binary}
        return kept | state.params.position

    @property
    def temperatures(self) -> tuple[float, float]:
        """What the chains target, for potentials and for functions."""
        return tuple(  # pyright: ignore
            self._samplers[name].noise_scale ** 2  # pyright: ignore
            for name in ("potentials", "params")
        )

    def clipped_share(self, state: JointState) -> Array:
        """Share of functions' coordinates where mini-batches alone are too noisy."""
        return self._samplers["params"].clipped_share(state.params)  # pyright: ignore

    def _noted(self, posterior: Posterior) -> Posterior:
        """The posterior with the effective number of masks among its notes."""
        effective = float(posterior.stats["effective_masks"].mean())
        num = self.num_evaluated + self.masks.retains
        note = f"of {num} masks weighed for each draw {effective:.1f} count, node by node"
        told = posterior.provenance
        changes = {"notes": [*told["notes"], note], "effective_masks": effective}
        return dataclasses.replace(posterior, provenance=told | changes)

    def _move_graphs(
        self, key: Key, step: Array, state: JointState, context: ChainContext, batch: Batch
    ) -> JointState:
        """W and W̃ given the order, then exchanges of neighbours in the order."""
        heat = self._heat(step)

        def one(key: Key, coordinates: Array, mask: Array, params: Params, logits: Any) -> tuple:
            key_place, key_masks, key_swaps = jax.random.split(key, 3)
            potentials = self.lift(coordinates, context)[0]
            place = chain_context(
                key_place, self.energy, potentials, mask, params, context.support, batch, heat
            )
            sampler = self._samplers["logits"]
            logits, mask = self.masks(key_masks, logits, mask, place, sampler, self.logit_scale)
            for key_swap in jax.random.split(key_swaps, self.num_swaps):
                potentials, mask, place = order_moves.swap(key_swap, potentials, mask, place)
            if self.num_swaps:
                coordinates = dagspace.lower(potentials, context.support, self.potential_scale)
            return coordinates, mask, place.params, logits

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
        share = annealing.share_of_data(self.start_heat, self.num_warmup, step)
        return self.temperature / share

    def _graphs(self, state: JointState, context: ChainContext) -> Array:
        def one(coordinates: Array, mask: Array) -> Array:
            order = dagspace.order(self.lift(coordinates, context)[0])
            return dagspace.confine(mask, context.support) * order

        return jax.vmap(one)(state.potentials.position, state.masks)

    def _slope(self, batch: Batch, wanted: tuple[str, ...]) -> Callable:
        return chains.over_chains(
            lambda graph, params: self.energy.data_gradient(graph, params, batch, wanted),
            one_by_one=chains.keeps_in_cache(self),
        )

    def _move_potentials(
        self,
        key: Key,
        state: JointState,
        graphs: Array,
        slope: Gradient,
        context: ChainContext,
        batch: Batch,
    ) -> JointState:
        """SG-MCMC on p."""
        grad, variance, carry = order_gradients.gradient(
            self, key, state, graphs, slope, context, batch
        )
        sampler: Any = self._samplers["potentials"]
        moved = sampler.step(key, state.potentials, grad, variance)
        return state._replace(potentials=moved, carry=carry)

    def _move_params(self, key: Key, state: JointState, slope: Gradient) -> JointState:
        """SG-MCMC on Θ and σ."""
        cost = jax.vmap(jax.grad(self.energy.params))(state.params.position)
        grad = jax.tree.map(jnp.add, slope.params, cost)
        sampler: Any = self._samplers["params"]
        return state._replace(params=sampler.step(key, state.params, grad, slope.variance))

    def _stats(
        self, state: JointState, graphs: Array, slope: Gradient, context: ChainContext
    ) -> dict[str, Array]:
        """Of every chain; the energy is an estimate from this batch."""
        energy = self.energy_now(graphs, state.params.position, slope, context)
        moved = state.potentials.position.sum(axis=1) + state.logits.position.sum(axis=(1, 2))
        return {"energy": energy + 0 * moved, "edges": graphs.sum(axis=(1, 2))}

    @cached_property
    def _samplers(self) -> dict[str, Sampler]:
        """Of each kind of unknown, at the temperature wanted."""
        own = {"potentials": self.potential_sampler, "logits": self.logit_sampler, "params": None}
        return {name: chains.tempered(self, found or self.sampler) for name, found in own.items()}


Joint.PRESETS["quick"] = Joint(
    mechanism=Linear(intercept=False, init_scale=0.1),
    num_chains=64,
    num_warmup=300,
    num_samples=10,
    thinning=10,
)
build = Joint
