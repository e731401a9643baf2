"""DiBS: particles of latent graph embeddings and functions, moved by Stein's gradient.

Lorch, Rothfuss, Schölkopf & Krause (2021), DiBS: differentiable Bayesian structure learning,
NeurIPS. Joint DiBS moves an embedding Z of a graph together with functions Θ and noise; marginal
DiBS moves Z alone, under the evidence of graphs.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from bayesdag.baselines.embeddings import GraphEmbedding, hard_graphs, without_loops
from bayesdag.baselines.evidence import EvidenceTables, log_evidence
from bayesdag.baselines.likelihood import GradientContext, confined, log_likelihoods
from bayesdag.baselines.optimisers import descend
from bayesdag.baselines.stein import stein_directions
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.parameter_priors import noise_energy
from bayesdag.types import Array, Graph, Key, Mechanism, Params

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
# Hidden units at once on an accelerator: 2 GB, and a few times that for the gradient.
_MAX_HIDDEN = 500_000_000
NOISE_SHAPE, NOISE_RATE = 1.5, 1.0  # σ² ~ InverseGamma, in engine units


class ParticleState(NamedTuple):
    """All particles.

    Attributes:
        latent: Z, (particle, 2, d, k).
        params: functions and noise of each particle; none where they are integrated out.
        optimiser: state of RMSprop.
    """

    latent: Float[Array, "m 2 d k"]
    params: Params
    optimiser: optax.OptState


@dataclass(frozen=True)
class SteinKernel:
    """One step of Stein variational gradient descent on the joint density of (Z, Θ, σ).

    Attributes:
        mechanism: of the functions.
        embedding: of the graphs.
        num_particles: M.
        num_graphs: Monte-Carlo graphs for the likelihood.
        batch_size: rows that networks see in a step; None: all.
        score_function: estimate the gradient in Z by score functions of drawn graphs, and not
            through Gumbel-softmax graphs.
        latent_bandwidth: of the kernel of Z.
        param_bandwidth: of the kernel of Θ.
        noise_bandwidth: of the kernel of log σ.
        learning_rate: of RMSprop.
        noise_variance: σ² of every variable where it is known; None: moved with the rest.
    """

    mechanism: Mechanism
    embedding: GraphEmbedding
    num_particles: int
    num_graphs: int
    batch_size: int | None
    score_function: bool
    latent_bandwidth: float
    param_bandwidth: float
    noise_bandwidth: float
    learning_rate: float
    noise_variance: float | None

    def start(self, key: Key, d: int) -> ParticleState:
        """Particles from their priors; functions as the mechanism starts them."""
        key_latent, key_params = jax.random.split(key)
        latent = self.embedding.start(key_latent, self.num_particles, d)
        keys = jax.random.split(key_params, self.num_particles)
        log_scale = 0.5 * math.log(1.0 if self.noise_variance is None else self.noise_variance)
        params = {
            "mechanism": jax.vmap(lambda k: self.mechanism.init(k, d))(keys),
            "noise": {"log_scale": jnp.full((self.num_particles, d), log_scale, latent.dtype)},
        }
        return ParticleState(latent, params, self._optimiser.init((latent, params)))

    def step(
        self, key: Key, step: Array, state: ParticleState, context: GradientContext
    ) -> tuple[ParticleState, dict[str, Array]]:
        """The particles after one step; the energy is that of each at a Monte-Carlo graph."""
        keys = jax.random.split(key, self.num_particles)
        time = (step + 1).astype(jnp.float32)
        seen, rows_per_row = self._batch(jax.random.fold_in(key, 1), context)
        value, *slopes = jax.lax.map(
            lambda given: self._gradients(given[0], time, given[1], given[2], seen, rows_per_row),
            (keys, state.latent, state.params),
            batch_size=self._particles_at_once(seen),
        )
        direction = self._stein(state.latent, state.params, *slopes)
        downhill = jax.tree.map(jnp.negative, direction)
        position = (state.latent, state.params)
        moved, optimiser = descend(self._optimiser, downhill, state.optimiser, position)
        latent, params = moved
        return ParticleState(latent, params, optimiser), {"energy": -value}

    def keep(self, key: Key, state: ParticleState, context: GradientContext) -> Params:
        """The particles themselves."""
        del key, context
        return {"latent": state.latent, "params": state.params}

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.rmsprop(self.learning_rate)

    def _batch(self, key: Key, context: GradientContext) -> tuple[GradientContext, float]:
        """Rows of this step, the same for all particles, and how many each stands for."""
        num_rows = context.x.shape[0]
        if self.batch_size is None or self.batch_size >= num_rows:
            return context, 1.0
        rows = jax.random.choice(key, num_rows, (self.batch_size,), replace=False)
        seen = context._replace(x=context.x[rows], observed=context.observed[rows])
        return seen, num_rows / self.batch_size

    def _particles_at_once(self, context: GradientContext) -> int:
        """As many as memory allows: networks keep hidden units of every row and graph.

        On a CPU networks take turns: those of one particle fill its cache.
        """
        if isinstance(self.mechanism, MLP) and jax.default_backend() == "cpu":
            return 1
        hidden = self.num_graphs * context.x.size * getattr(self.mechanism, "width", 1)
        return int(min(max(_MAX_HIDDEN // max(hidden, 1), 1), self.num_particles))

    def _gradients(
        self,
        key: Key,
        time: Array,
        latent: Array,
        params: Params,
        context: GradientContext,
        rows_per_row: float,
    ) -> tuple[Array, Array, Params]:
        """log p(Θ, D | Z), the gradient of log p(Z, Θ, D) in Z, and that in Θ.

        In Z it goes through Gumbel-softmax graphs or score functions, in Θ through graphs
        drawn from their edge probabilities, as published.
        """
        key_soft, key_hard, key_cycles = jax.random.split(key, 3)
        logits = self.embedding.logits(latent, time)
        hard = hard_graphs(key_hard, logits, self.num_graphs)
        prior = jax.grad(lambda z: self.embedding.log_prior(key_cycles, time, z, context))(latent)
        # The mean over graphs is a softmax of their values: one pass has slope and values.
        by_graph, slope_params = jax.value_and_grad(self._log_mean, has_aux=True)(
            params, hard, context, rows_per_row
        )
        value, log_values = by_graph
        if self.score_function:
            slope = self.embedding.score_function(latent, time, hard, log_values, context)
            return value, slope + prior, slope_params

        def expected(latent: Array) -> Array:
            soft = self.embedding.soft_graphs(
                key_soft, self.embedding.logits(latent, time), self.num_graphs
            )
            return self._log_mean(params, soft, context, rows_per_row)[0]

        value, slope = jax.value_and_grad(expected)(latent)
        return value, slope + prior, slope_params

    def _log_mean(
        self,
        params: Params,
        graphs: Float[Array, "g d d"],
        context: GradientContext,
        rows_per_row: float,
    ) -> tuple[Array, Float[Array, " g"]]:
        """log of the mean over graphs of p(Θ, D | G), and log p(Θ, D | G) of each."""
        graphs = jax.vmap(lambda graph: confined(without_loops(graph), context))(graphs)
        likelihood = log_likelihoods(self.mechanism, params, graphs, context)
        prior = jax.vmap(lambda graph: log_param_prior(self.mechanism, params, graph))(graphs)
        values = rows_per_row * likelihood + prior
        return jax.nn.logsumexp(values) - jnp.log(1.0 * len(graphs)), values

    def _stein(
        self, latent: Array, params: Params, latent_slope: Array, param_slope: Params
    ) -> tuple[Array, Params]:
        """Directions of the particles, in the shape of what moves; known noise stays.

        Known noise has no kernel either: a constant would tie all particles to one another.
        """
        flat = jax.vmap(lambda tree: ravel_pytree(tree)[0])
        positions = (flat(latent), flat(params["mechanism"]), flat(params["noise"]))
        slopes = (flat(latent_slope), flat(param_slope["mechanism"]), flat(param_slope["noise"]))
        widths = (self.latent_bandwidth, self.param_bandwidth, self.noise_bandwidth)
        num = 3 if self.noise_variance is None else 2
        moved = stein_directions(positions[:num], slopes[:num], widths[:num])
        shaped = (latent, params["mechanism"], params["noise"])
        latent, mechanism, noise = (
            jax.vmap(lambda row, s=shape: _like(s, row))(rows)
            for shape, rows in zip(
                (jax.tree.map(lambda leaf: leaf[0], tree) for tree in shaped),
                (*moved, jnp.zeros_like(positions[2]))[:3],
                strict=True,
            )
        )
        return latent, {"mechanism": mechanism, "noise": noise}


class MarginalContext(NamedTuple):
    """Data and knowledge that a step of marginal DiBS reads.

    Attributes:
        known: what is known of the edges.
        tables: of the evidence.
    """

    known: GradientContext
    tables: EvidenceTables


@dataclass(frozen=True)
class MarginalSteinKernel:
    """One step of Stein variational gradient descent on p(Z | D), functions integrated out.

    Attributes:
        embedding: of the graphs.
        num_particles: M.
        num_graphs: Monte-Carlo graphs for the evidence.
        latent_bandwidth: of the kernel of Z.
        learning_rate: of RMSprop.
    """

    embedding: GraphEmbedding
    num_particles: int
    num_graphs: int
    latent_bandwidth: float
    learning_rate: float

    def start(self, key: Key, d: int) -> ParticleState:
        """Embeddings from their prior."""
        latent = self.embedding.start(key, self.num_particles, d)
        return ParticleState(latent, {}, self._optimiser.init(latent))

    def step(
        self, key: Key, step: Array, state: ParticleState, context: MarginalContext
    ) -> tuple[ParticleState, dict[str, Array]]:
        """The particles after one step; the energy is that of each, averaged over its graphs."""
        keys = jax.random.split(key, self.num_particles)
        time = (step + 1).astype(jnp.float32)
        value, slope = jax.lax.map(
            lambda given: self._gradient(given[0], time, given[1], context), (keys, state.latent)
        )
        flat = (self.num_particles, -1)
        (direction,) = stein_directions(
            (state.latent.reshape(flat),), (slope.reshape(flat),), (self.latent_bandwidth,)
        )
        downhill: Any = -direction.reshape(state.latent.shape)
        moved: Any = descend(self._optimiser, downhill, state.optimiser, state.latent)
        return ParticleState(moved[0], {}, moved[1]), {"energy": -value}

    def keep(self, key: Key, state: ParticleState, context: MarginalContext) -> Params:
        """The embeddings."""
        del key, context
        return {"latent": state.latent}

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.rmsprop(self.learning_rate)

    def _gradient(
        self, key: Key, time: Array, latent: Array, context: MarginalContext
    ) -> tuple[Array, Array]:
        """log p(D | Z) and the gradient of log p(Z, D) in Z, by score functions."""
        key_graphs, key_cycles = jax.random.split(key)
        known, embedding = context.known, self.embedding
        hard = hard_graphs(key_graphs, embedding.logits(latent, time), self.num_graphs)
        graphs = jax.vmap(lambda graph: confined(without_loops(graph), known))(hard)
        values = jax.vmap(lambda graph: log_evidence(context.tables, graph))(graphs)
        slope = embedding.score_function(latent, time, graphs, values, known)
        prior = jax.grad(lambda z: embedding.log_prior(key_cycles, time, z, known))(latent)
        return jax.nn.logsumexp(values) - jnp.log(1.0 * self.num_graphs), slope + prior


def log_param_prior(mechanism: Mechanism, params: Params, graph: Graph) -> Float[Array, ""]:
    """Standard normal weights, those on edges only where the graph has them; σ² inverse gamma."""
    own = dict(params["mechanism"])
    name = "weights" if isinstance(mechanism, Linear) else "first"
    edges = own.pop(name)
    mask = graph if isinstance(mechanism, Linear) else graph.T[:, :, None]
    on_edges = (jnp.broadcast_to(mask, edges.shape) * _log_normal(edges)).sum()
    rest = sum((_log_normal(leaf).sum() for leaf in own.values()), start=jnp.zeros(()))
    return on_edges + rest - noise_energy(params["noise"], NOISE_SHAPE, NOISE_RATE)


def _log_normal(x: Array) -> Array:
    return -0.5 * x**2 - _HALF_LOG_2PI


def _like(tree: Params, row: Array) -> Params:
    return ravel_pytree(tree)[1](jnp.asarray(row))
