"""The paper's engine: SG-MCMC for potentials and functions, a variational q for the edges.

Chains share one network q(W|p), as in Algorithm 1, unless `share_edges` is False. The
straight-through gradient of the order is biased (at the best functions the energy does not
change to first order when an edge weakens, so nothing holds an order in place): temperature 1
is exact for the functions given a graph, and an approximation for the graphs. What finds an
order is the warm-up, by annealing. `collapsed` is the exact engine.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import optax

from bayesdag.data import Dataset
from bayesdag.model.energy import Batch, Energy, Gradient, variance_of_sum
from bayesdag.posterior import Posterior
from bayesdag.runs.loop import RunState
from bayesdag.sgmcmc import annealing, chains, graph_draws, joint_draws, presets
from bayesdag.sgmcmc.chains import ChainState, DataContext
from bayesdag.sgmcmc.edges.bernoulli import Bernoulli
from bayesdag.sgmcmc.engine import Engine, Temperatures, all_rows
from bayesdag.sgmcmc.graph_draws import GraphDraw
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.types import Array, Edges, Key, Keys, Params, Pytree, Relaxation, Sampler


@dataclass(frozen=True)
class BayesDAG(Engine):
    """SG-MCMC over node potentials and functions, with variational edges (BayesDAG).

    Attributes:
        relaxation: supplies the gradient of the order; o = 10·[1..d] as published, because
            orders found with the printed [1..d] explain the data less well.
        edges: q(W|p).
        learning_rate: of Adam on φ.
        passes: over a batch in each step: 2 is Algorithm 1; 1 uses one gradient for both of
            its halves, at almost half the cost; 3 moves p, φ and Θ in turn, as published.
        share_edges: one network q(W|p) for all chains, as in Algorithm 1: it learns faster, but
            ties the chains together, and during the warm-up chains that explain the data
            better replace others (population annealing); False: one network per chain, and
            independent chains, none replaced.
        raw: work in the original units, whatever the scaling of the data.
        point_noise: learn σ by Adam without a prior, as published, instead of sampling it.
        follow_mask: let the gradient in p run through q(W|p) too, as published.
        average_chains: divide every gradient by the number of chains, as published.
        free_absence: leave λ_s out of the gradient where an edge is absent, as published.

    The other settings are those of `EngineSettings`.
    """

    relaxation: Relaxation = Sinkhorn(spacing=10.0)
    _: KW_ONLY
    edges: Edges = Bernoulli()
    learning_rate: float = 5e-3
    passes: int = 1
    share_edges: bool = True
    raw: bool = False
    point_noise: bool = False
    follow_mask: bool = False
    average_chains: bool = False
    free_absence: bool = False

    PRESETS: ClassVar[dict[str, "BayesDAG"]] = {}

    def in_engine_units(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        """The data sets, in original units if `raw`."""
        return [chains.in_original_units(data) for data in datasets] if self.raw else datasets

    def posteriors(
        self, keys: Keys, done: RunState, datasets: Sequence[Dataset], context: DataContext
    ) -> list[Posterior]:
        """The draws as they are, per data set."""
        del keys
        return joint_draws.posteriors(self, done, datasets, context)

    def start(self, key: Key, num_rows: int, d: int) -> ChainState:
        """All chains of one data set before the first step."""
        key_potentials, key_mechanism, key_noise, key_edges = jax.random.split(key, 4)
        potentials = self.init_scale * jax.random.normal(key_potentials, (self.num_chains, d))
        params = self.init_params(key_mechanism, key_noise, d)
        learned = {name: params.pop(name) for name in self._learned}
        learned["edges"] = (
            self.edges.init(key_edges, d)
            if self.share_edges
            else chains.init_parts(self, self.edges, key_edges, d)
        )
        return ChainState(
            potentials=self._potential_sampler.init(potentials),
            params=self._param_sampler.init(params),
            learned=learned,
            optimiser=self._optimiser.init(learned),
            carry=chains.carries(self, d),
            rows=all_rows(num_rows),
            energy=jnp.zeros(self.num_chains),
        )

    def step(
        self, key: Key, step: Array, state: ChainState, context: DataContext
    ) -> tuple[ChainState, dict[str, Array]]:
        """One sweep: W ~ q(W|p); move (p, Θ, σ) by SG-MCMC; improve q by its ELBO."""
        key_rows, key_p, key_params, key_chains, *keys = jax.random.split(key, 7)
        batch, rows = chains.next_batch(self, key_rows, step, state.rows, context)
        state = state._replace(rows=rows)
        power = annealing.likelihood_power(self.start_heat, self.num_warmup, step)
        gradient = partial(self._gradient, context=context, batch=batch, power=power)
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

    def keep(self, key: Key, state: ChainState, context: DataContext) -> Params:
        """The joint draw (p, W, Θ, σ) of every chain, with its graph."""
        potentials, mask, graph = graph_draws.sample(self, key, state, context)
        binary = {"mask": mask.astype(jnp.int8), "graph": graph.astype(jnp.int8)}
        return {"potentials": potentials, **binary, **self._params(state)}

    def clipped_share(self, state: ChainState) -> Array:
        """Fraction of functions' coordinates where mini-batches alone are too noisy."""
        return self._param_sampler.clipped_share(state.params)

    def notes(self) -> list[str]:
        """Notes for readers of the posterior about these settings."""
        notes = [graph_draws.STRAIGHT_THROUGH]
        if self.share_edges:
            notes.append("the chains share one network q(W|p), so they are not fully independent")
        if self.resamples:
            notes.append(
                "during the warm-up chains that explained the data badly were replaced by copies "
                "of better ones, so that their agreement later says little"
            )
        return notes

    @cached_property
    def energy(self) -> Energy:
        """U, with these settings."""
        return dataclasses.replace(super().energy, free_absence=self.free_absence)

    @property
    def resamples(self) -> bool:
        """Whether chains replace each other during the warm-up; independent ones never do."""
        return self.start_heat != 1 and self.share_edges and not self.point_noise

    @property
    def temperatures(self) -> Temperatures:
        """Temperatures of the chains' targets."""
        shared = self.num_chains if self.average_chains else 1
        return Temperatures(
            shared * self._potential_sampler.noise_scale**2,
            shared * self._param_sampler.noise_scale**2,
        )

    def _gradient(
        self,
        key: Key,
        state: ChainState,
        *,
        context: DataContext,
        batch: Batch,
        power: Array | float,
        wanted: tuple[str, ...] = (),
        soft: bool = False,
    ) -> tuple[GraphDraw, Gradient]:
        """W ~ q(W|p), then the data's gradient in the graph and in what is wanted."""
        draw = graph_draws.differentiable(self, key, state, context, soft)
        slope = self.data_gradients(draw.graphs, self._params(state), batch, wanted)
        return draw, slope._replace(graph=slope.graph * power)

    def _resample(self, key: Key, step: Array, state: ChainState, slope: Gradient) -> ChainState:
        """During the first half of the warm-up, chains that explain the data better multiply."""
        if not self.resamples:
            return state
        energy = annealing.smoothed_energy(self.num_warmup, step, state.energy, slope.energy)
        chosen = annealing.survivors(key, self.start_heat, self.num_warmup, step, energy)
        return state._replace(
            potentials=annealing.take_chains(chosen, state.potentials),
            params=annealing.take_chains(chosen, state.params),
            carry=jax.tree.map(lambda leaf: leaf[chosen], state.carry),
            energy=energy[chosen],
        )

    def _move_potentials(
        self,
        key: Key,
        state: ChainState,
        draw: GraphDraw,
        slope: Gradient,
        context: DataContext,
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
            variance = (
                variance_of_sum(each.sum(axis=0), (each**2).sum(axis=0), num) * batch.sampling
            )
        moved = self._sample(self._potential_sampler, key, state.potentials, grad, variance)
        return state._replace(potentials=moved, carry=draw.carry)

    def _move_params(self, key: Key, state: ChainState, slope: Gradient) -> ChainState:
        """SG-MCMC on Θ and σ."""
        cost = jax.vmap(jax.grad(self.energy.params))(self._params(state))
        grad = {name: _add(slope.params[name], cost[name]) for name in self._sampled}
        variance = slope.variance and {name: slope.variance[name] for name in self._sampled}
        return state._replace(
            params=self._sample(self._param_sampler, key, state.params, grad, variance)
        )

    def _improve_edges(
        self, state: ChainState, draw: GraphDraw, slope: Gradient, context: DataContext
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

    def _sample(
        self, sampler: Sampler, key: Key, state: Pytree, grad: Params, variance: Params | None
    ) -> Pytree:
        """One step of a sampler, with the gradient scaled as the settings say."""
        if self.average_chains:
            grad = jax.tree.map(lambda g: g / self.num_chains, grad)
        return sampler.step(key, state, grad, variance)

    def _structure_slope(self, draw: GraphDraw, context: DataContext) -> Array:
        slope = jax.vmap(jax.grad(self.energy.structure), in_axes=(0, None))
        return slope(draw.graphs, context.support.log_odds)

    def _stats(
        self, state: ChainState, draw: GraphDraw, slope: Gradient, context: DataContext
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
