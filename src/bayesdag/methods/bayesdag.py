"""The paper's engine: SG-MCMC for potentials and functions, a variational q for the edges.

Chains share one network q(W|p), as in Algorithm 1, unless told otherwise. The straight-through
gradient of the order is biased (at the best functions the energy does not change to first
order when an edge weakens, so nothing holds an order in place): temperature 1 is exact for the
functions given a graph, and an approximation for the graphs. What finds an order is the
warm-up, by annealing. `collapsed` is the exact engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import optax

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.model.energy import Batch, Gradient, spread
from bayesdag.model.mechanisms.neural import NeuralMechanism
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.priors.density import DensityGrid
from bayesdag.posterior import Posterior
from bayesdag.runs import loop
from bayesdag.sgmcmc import annealing, chains, graph_draws, joint_draws, presets
from bayesdag.sgmcmc.chains import ChainContext, ChainState
from bayesdag.sgmcmc.edges.bernoulli import Bernoulli
from bayesdag.sgmcmc.engine import Engine, started
from bayesdag.sgmcmc.graph_draws import GraphDraw
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC
from bayesdag.types import (
    Array,
    Edges,
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


@dataclass(frozen=True)
class BayesDAG(Engine):
    """SG-MCMC over node potentials and functions, with variational edges (BayesDAG).

    Attributes:
        mechanism: linear or neural.
        noise: of the residuals.
        relaxation: supplies the gradient of the order; o = 10·[1..d] as published, because
            orders found with the printed [1..d] explain the data less well.
        edges: q(W|p).
        prior: of the graph given its order; by default the edge density is unknown.
        sparsity: λ_s, a cost of every edge *instead* of `prior`.
        sampler: of functions and noise scales; its gain never stops adapting, because a chain
            whose gradients grow later would leave the numbers with a gain frozen before.
        potential_sampler: of the potentials; None: the same.
        temperature: the target is exp(-U / temperature), whatever the number of chains.
        start_heat: how many times less orders and edges (not functions) heed the data at the
            first step; during the first half of the warm-up this falls to 1, and chains that
            explain the data better replace others (population annealing).
        learning_rate: of Adam on φ.
        num_chains: chains that run side by side.
        num_warmup: steps before the first draw counts.
        num_samples: draws kept of each chain.
        thinning: steps between two draws.
        batch_size: rows a step; all of them where there are not more.
        passes: over a batch in each step: 2 is Algorithm 1; 1 uses one gradient for both of
            its halves, at almost half the cost; 3 moves p, φ and Θ in turn, as published.
        correct_noise: whether mini-batch noise is taken out of the injected noise.
        potential_scale: prior deviation of the potentials.
        init_scale: their deviation at the start.
        tile_rows: rows handled at once; None chooses by device.
        share_edges: one network q(W|p) for all chains, as in Algorithm 1: it learns faster, but
            ties the chains together; False: one each, and independent chains, none replaced.
        raw: work in the original units, whatever the scaling of the data.
        point_noise: learn σ by Adam without a prior, as published, instead of sampling it.
        follow_mask: let the gradient in p run through q(W|p) too, as published.
        average_chains: divide every gradient by the number of chains, as published.
        free_absence: leave λ_s out of the gradient where an edge is absent, as published.
    """

    mechanism: Mechanism = NeuralMechanism()
    noise: Noise = Gaussian()
    relaxation: Relaxation = Sinkhorn(spacing=10.0)
    edges: Edges = Bernoulli()
    prior: StructurePrior = DensityGrid()
    sparsity: float | None = None
    sampler: Sampler = AdamSGHMC(num_adapt=None)
    potential_sampler: Sampler | None = None
    temperature: float = 1.0
    start_heat: float = 3000.0
    learning_rate: float = 5e-3
    num_chains: int = 10
    num_warmup: int = 5000
    num_samples: int = 50
    thinning: int = 40
    batch_size: int = 512
    passes: int = 1
    correct_noise: bool = True
    potential_scale: float = 0.1
    init_scale: float = 0.01
    tile_rows: int | None = None
    share_edges: bool = True
    raw: bool = False
    point_noise: bool = False
    follow_mask: bool = False
    average_chains: bool = False
    free_absence: bool = False

    PRESETS: ClassVar[dict[str, "BayesDAG"]] = {}

    def fit_many(
        self,
        keys: Keys,
        datasets: Sequence[Dataset],
        knowledge: Constraints,
        monitor: Monitor | None = None,
    ) -> list[Posterior]:
        """One posterior a data set; all of equal shape, fitted in one compiled run."""
        datasets = [chains.in_original_units(data) for data in datasets] if self.raw else datasets
        context = chains.context(datasets, knowledge)
        _, n, d = context.x.shape
        state = started(self, keys, n, d)
        schedule = loop.Schedule(self.num_warmup, self.num_samples, self.thinning)
        done = loop.run(keys, chains.StackedDatasets(self), state, context, schedule, monitor)
        return joint_draws.posteriors(self, done, datasets, context)

    def start(self, key: Key, num_rows: int, d: int) -> ChainState:
        """All chains of one data set before the first step."""
        key_potentials, key_mechanism, key_noise, key_edges = jax.random.split(key, 4)
        potentials = self.init_scale * jax.random.normal(key_potentials, (self.num_chains, d))
        params = {
            "mechanism": chains.init_parts(self, self.mechanism, key_mechanism, d),
            "noise": chains.init_parts(self, self.noise, key_noise, d),
        }
        learned = {name: params.pop(name) for name in self._learned}
        learned["edges"] = (
            self.edges.init(key_edges, d)
            if self.share_edges
            else chains.init_parts(self, self.edges, key_edges, d)
        )
        return ChainState(
            potentials=self._samplers[0].init(potentials),
            params=self._samplers[1].init(params),
            learned=learned,
            optimiser=self._optimiser.init(learned),
            carry=chains.carries(self, d),
            rows=jnp.arange(num_rows, dtype=jnp.int32),
            energy=jnp.zeros(self.num_chains),
        )

    def step(
        self, key: Key, step: Array, state: ChainState, context: ChainContext
    ) -> tuple[ChainState, dict[str, Array]]:
        """One sweep: W ~ q(W|p); move (p, Θ, σ) by SG-MCMC; improve q by its ELBO."""
        key_rows, key_p, key_params, key_chains, *keys = jax.random.split(key, 7)
        batch, state = chains.next_batch(self, key_rows, step, state, context)
        share = annealing.share_of_data(self.start_heat, self.num_warmup, step)
        gradient = partial(self._gradient, context=context, batch=batch, share=share)
        if self.passes == 3:
            draw, slope = gradient(keys[0], state, soft=True)
            state = self._move_potentials(key_p, state, draw, slope, context, batch)
            draw, slope = gradient(keys[1], state, wanted=self._learned)
            state = self._improve_edges(state, draw, slope, context)
            draw, slope = gradient(keys[2], state, wanted=self._sampled)
            state = self._move_params(key_params, state, slope)
        else:
            draw, slope = gradient(keys[0], state, wanted=self._all, soft=True)
            state = self._move_potentials(key_p, state, draw, slope, context, batch)
            state = self._move_params(key_params, state, slope)
            if self.passes == 2:
                draw, slope = gradient(keys[1], state, wanted=self._learned)
            state = self._improve_edges(state, draw, slope, context)
        stats = self._stats(state, draw, slope, context)
        return self._resample(key_chains, step, state, slope), stats

    def keep(self, key: Key, state: ChainState, context: ChainContext) -> Params:
        """The joint draw (p, W, Θ, σ) of every chain, with its graph."""
        potentials, mask, graph = graph_draws.sample(self, key, state, context)
        binary = {"mask": mask.astype(jnp.int8), "graph": graph.astype(jnp.int8)}
        return {"potentials": potentials, **binary, **self._params(state)}

    def clipped_share(self, state: ChainState) -> Array:
        """Share of functions' coordinates where mini-batches alone are too noisy."""
        return self._samplers[1].clipped_share(state.params)  # pyright: ignore

    @property
    def resamples(self) -> bool:
        """Whether chains replace each other during the warm-up; independent ones never do."""
        return self.start_heat != 1 and self.share_edges and not self.point_noise

    @property
    def temperatures(self) -> tuple[float, float]:
        """What the chains target, for potentials and for functions."""
        shared = self.num_chains if self.average_chains else 1
        return tuple(shared * s.noise_scale**2 for s in self._samplers)  # pyright: ignore

    def _gradient(
        self,
        key: Key,
        state: ChainState,
        *,
        context: ChainContext,
        batch: Batch,
        share: Array | float,
        wanted: tuple[str, ...] = (),
        soft: bool = False,
    ) -> tuple[GraphDraw, Gradient]:
        """W ~ q(W|p), then the data's gradient in the graph and in what is wanted."""
        draw = graph_draws.differentiable(self, key, state, context, soft)
        at = chains.over_chains(
            lambda g, p: self.energy.data_gradient(g, p, batch, wanted),
            one_by_one=chains.keeps_in_cache(self),
        )
        slope = at(draw.graphs, self._params(state))
        return draw, slope._replace(graph=slope.graph * share)

    def _resample(self, key: Key, step: Array, state: ChainState, slope: Gradient) -> ChainState:
        """During the first half of the warm-up, chains that explain the data better multiply."""
        if not self.resamples:
            return state
        energy = annealing.average(self.num_warmup, step, state.energy, slope.energy)
        chosen = annealing.survivors(key, self.start_heat, self.num_warmup, step, energy)
        return state._replace(
            potentials=annealing.follow(chosen, state.potentials),
            params=annealing.follow(chosen, state.params),
            carry=jax.tree.map(lambda leaf: leaf[chosen], state.carry),
            energy=energy[chosen],
        )

    def _move_potentials(
        self,
        key: Key,
        state: ChainState,
        draw: GraphDraw,
        slope: Gradient,
        context: ChainContext,
        batch: Batch,
    ) -> ChainState:
        """SG-MCMC on p: the data's gradient pulled back through the order, and the prior's."""
        cost = jax.vmap(jax.grad(lambda c: self.energy.potentials(*self.lift(c, context))))
        at_graph = slope.graph.sum(axis=1) + self._structure_slope(draw, context)

        def pull(at_graph: Array) -> Array:
            return draw.pull((at_graph, jnp.zeros_like(draw.entropy)))[0]

        grad = pull(at_graph) + cost(state.potentials.position)
        variance = None
        if batch.is_noisy:
            each = jax.vmap(pull, in_axes=1)(slope.graph)
            num = each.shape[0]
            variance = spread(each.sum(axis=0), (each**2).sum(axis=0), num) * batch.sampling
        moved = self._sample(0, key, state.potentials, grad, variance)
        return state._replace(potentials=moved, carry=draw.carry)

    def _move_params(self, key: Key, state: ChainState, slope: Gradient) -> ChainState:
        """SG-MCMC on Θ and σ."""
        cost = jax.vmap(jax.grad(self.energy.params))(self._params(state))
        grad = {name: _add(slope.params[name], cost[name]) for name in self._sampled}
        variance = slope.variance and {name: slope.variance[name] for name in self._sampled}
        return state._replace(params=self._sample(1, key, state.params, grad, variance))

    def _improve_edges(
        self, state: ChainState, draw: GraphDraw, slope: Gradient, context: ChainContext
    ) -> ChainState:
        """One Adam step on -ELBO: E_q[U] less temperature times the entropy of q."""
        at_graph = slope.graph.sum(axis=1) + self._structure_slope(draw, context)
        grad = {name: slope.params[name] for name in self._learned}
        grad["edges"] = draw.pull((at_graph, jnp.full_like(draw.entropy, -self.temperature)))[1]
        # Per row and chain: Adam's own constant is meant for gradients of this size.
        size = 1 / (context.x.shape[0] * self.num_chains)
        grad = jax.tree.map(lambda g: size * g, grad)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to an integer power
            update, optimiser = self._optimiser.update(grad, state.optimiser)
        return state._replace(
            learned=optax.apply_updates(state.learned, update), optimiser=optimiser
        )

    def _sample(self, which: int, key: Key, sampler_state, grad: Params, variance: Params):
        """One step of a sampler, with the gradient scaled as the settings say."""
        if self.average_chains:
            grad = jax.tree.map(lambda g: g / self.num_chains, grad)
        return self._samplers[which].step(key, sampler_state, grad, variance)  # pyright: ignore

    def _structure_slope(self, draw: GraphDraw, context: ChainContext) -> Array:
        slope = jax.vmap(jax.grad(self.energy.structure), in_axes=(0, None))
        return slope(draw.graphs, context.support.log_odds)

    def _stats(
        self, state: ChainState, draw: GraphDraw, slope: Gradient, context: ChainContext
    ) -> dict[str, Array]:
        """Of every chain; the energy is an estimate from this batch."""
        energy = self.energy_now(draw.graphs, self._params(state), slope, context)
        moved = state.potentials.position.sum(axis=1)  # a NaN here must show as well
        stats = {"energy": energy + 0 * moved, "expected_edges": draw.graphs.sum(axis=(1, 2))}
        if hasattr(draw.carry, "num_iterations"):
            stats["iterations"] = draw.carry.num_iterations.astype(jnp.float32)
        return stats

    def _params(self, state: ChainState) -> Params:
        return {**state.params.position, **{name: state.learned[name] for name in self._learned}}

    @cached_property
    def _samplers(self) -> tuple[Sampler, Sampler]:
        """Of the potentials and of the functions, at the temperature wanted."""
        return (
            chains.tempered(self, self.potential_sampler or self.sampler),
            chains.tempered(self, self.sampler),
        )

    @cached_property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.flatten(optax.adam(self.learning_rate))  # one vector compiles faster

    @property
    def _learned(self) -> tuple[str, ...]:
        return ("noise",) if self.point_noise else ()

    @property
    def _sampled(self) -> tuple[str, ...]:
        return ("mechanism",) if self.point_noise else ("mechanism", "noise")

    @property
    def _all(self) -> tuple[str, ...]:
        return ("mechanism", "noise")


def _add(first: Params, second: Params) -> Params:
    return jax.tree.map(jnp.add, first, second)


BayesDAG.PRESETS.update(presets.table(BayesDAG))
build = BayesDAG
