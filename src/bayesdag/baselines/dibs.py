"""DiBS: particles of latent graph embeddings and functions, moved by Stein's gradient.

Lorch, Rothfuss, Schölkopf & Krause (2021), DiBS: differentiable Bayesian structure learning,
NeurIPS. A particle holds Z = (U, V); its edges have probabilities σ(α_t u_iᵀ v_j), and graphs
with cycles lose probability as β_t grows. Both rise linearly with the steps.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from bayesdag.baselines.likelihood import GradientContext, confined, log_likelihood
from bayesdag.baselines.optimisers import descend
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.parameter_priors import noise_energy, structure_energy
from bayesdag.types import Array, Graph, Key, Mechanism, Params, StructurePrior

_HALF_LOG_2PI = 0.5 * float(jnp.log(2 * jnp.pi))
_MAX_HIDDEN = 50_000_000  # hidden units at once: 200 MB, and a few times that for the gradient
NOISE_SHAPE, NOISE_RATE = 1.5, 1.0  # σ² ~ InverseGamma, in engine units


class ParticleState(NamedTuple):
    """All particles.

    Attributes:
        latent: Z, (particle, 2, d, k).
        params: functions and noise of each particle.
        optimiser: state of RMSprop.
    """

    latent: Float[Array, "m 2 d k"]
    params: Params
    optimiser: Any


@dataclass(frozen=True)
class SteinKernel:
    """One step of Stein variational gradient descent on the joint density of (Z, Θ, σ).

    Attributes:
        mechanism: of the functions.
        prior: over graphs.
        num_particles: M.
        latent_size: k; None: d.
        alpha: growth of α per step.
        beta: growth of β per step.
        temperature: of the Gumbel-softmax graphs.
        num_graphs: Monte-Carlo graphs for the likelihood.
        num_acyclicity_graphs: likewise, for the expected number of cycles.
        latent_bandwidth: of the kernel of Z.
        param_bandwidth: of the kernel of Θ.
        noise_bandwidth: of the kernel of log σ.
        learning_rate: of RMSprop.
    """

    mechanism: Mechanism
    prior: StructurePrior
    num_particles: int
    latent_size: int | None
    alpha: float
    beta: float
    temperature: float
    num_graphs: int
    num_acyclicity_graphs: int
    latent_bandwidth: float
    param_bandwidth: float
    noise_bandwidth: float
    learning_rate: float

    def start(self, key: Key, d: int) -> ParticleState:
        """Particles from their priors; functions as the mechanism starts them."""
        key_latent, key_params = jax.random.split(key)
        size = self.latent_size or d
        shape = (self.num_particles, 2, d, size)
        latent = jax.random.normal(key_latent, shape) / size**0.5
        keys = jax.random.split(key_params, self.num_particles)
        params = {
            "mechanism": jax.vmap(lambda k: self.mechanism.init(k, d))(keys),
            "noise": {"log_scale": jnp.zeros((self.num_particles, d))},
        }
        return ParticleState(latent, params, self._optimiser.init((latent, params)))

    def step(
        self, key: Key, step: Array, state: ParticleState, context: GradientContext
    ) -> tuple[ParticleState, dict[str, Array]]:
        """The particles after one step; the energy is that of each at a Monte-Carlo graph."""
        keys = jax.random.split(key, self.num_particles)
        time = (step + 1).astype(jnp.float32)
        value, *slopes = jax.lax.map(
            lambda given: self._gradients(given[0], time, given[1], given[2], context),
            (keys, state.latent, state.params),
            batch_size=self._particles_at_once(context),
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

    def _particles_at_once(self, context: GradientContext) -> int:
        """As many as memory allows: networks keep hidden units of every row and graph."""
        hidden = self.num_graphs * context.x.size * getattr(self.mechanism, "width", 1)
        return int(min(max(_MAX_HIDDEN // max(hidden, 1), 1), self.num_particles))

    def _gradients(
        self, key: Key, time: Array, latent: Array, params: Params, context: GradientContext
    ) -> tuple[Array, Array, Params]:
        """log p(Θ, D | Z), the gradient of log p(Z, Θ, D) in Z, and that in Θ.

        In Z it goes through Gumbel-softmax graphs, in Θ through graphs drawn from their
        edge probabilities, as published.
        """
        key_soft, key_hard, key_cycles = jax.random.split(key, 3)
        alpha, beta = self.alpha * time, self.beta * time

        def expected(latent: Array) -> Array:
            graphs = self._soft_graphs(key_soft, alpha * scores(latent), self.num_graphs)
            return self._log_mean(params, graphs, context)

        value, slope = jax.value_and_grad(expected)(latent)
        cycles = jax.grad(lambda z: self._log_prior(key_cycles, alpha, beta, z, context))(latent)
        logits = alpha * scores(latent)
        drawn = jax.random.uniform(key_hard, (self.num_graphs, *logits.shape))
        hard = (drawn < jax.nn.sigmoid(logits)[None]).astype(logits.dtype)
        slope_params = jax.grad(lambda p: self._log_mean(p, hard, context))(params)
        return value, slope + cycles, slope_params

    def _log_mean(
        self, params: Params, graphs: Float[Array, "g d d"], context: GradientContext
    ) -> Array:
        """log of the mean over graphs of p(Θ, D | G)."""

        def one(graph: Graph) -> Array:
            graph = confined(_without_loops(graph), context)
            likelihood = log_likelihood(self.mechanism, params, graph, context)
            return likelihood + log_param_prior(self.mechanism, params, graph)

        return jax.nn.logsumexp(jax.vmap(one)(graphs)) - jnp.log(1.0 * len(graphs))

    def _log_prior(
        self, key: Key, alpha: Array, beta: Array, latent: Array, context: GradientContext
    ) -> Array:
        """log p(Z): Gaussian, few cycles, and the prior at the edge probabilities."""
        logits = alpha * scores(latent)
        soft = self._soft_graphs(key, logits, self.num_acyclicity_graphs)
        graphs = jax.vmap(lambda g: confined(_without_loops(g), context))(soft)
        cycles = jax.vmap(cyclicity)(graphs).mean()
        probability = confined(_without_loops(jax.nn.sigmoid(logits)), context)
        beliefs = (context.log_odds * probability).sum()
        size = latent.shape[-1]
        gaussian = 0.5 * size * (latent**2).sum()
        return beliefs - gaussian - beta * cycles - structure_energy(probability, self.prior)

    def _soft_graphs(self, key: Key, logits: Array, num: int) -> Array:
        noise = jax.random.logistic(key, (num, *logits.shape), dtype=logits.dtype)
        return jax.nn.sigmoid((noise + logits[None]) / self.temperature)

    def _stein(
        self, latent: Array, params: Params, latent_slope: Array, param_slope: Params
    ) -> tuple[Array, Params]:
        """Slopes of all particles averaged by the kernel, and what drives them apart."""
        flat = jax.vmap(lambda tree: ravel_pytree(tree)[0])
        positions = (flat(latent), flat(params["mechanism"]), flat(params["noise"]))
        slopes = (flat(latent_slope), flat(param_slope["mechanism"]), flat(param_slope["noise"]))
        widths = (self.latent_bandwidth, self.param_bandwidth, self.noise_bandwidth)
        kernels = [_kernel(p, w) for p, w in zip(positions, widths, strict=True)]
        total = sum(kernels[1:], start=kernels[0])
        moved = []
        for position, slope, kernel, width in zip(positions, slopes, kernels, widths, strict=True):
            # Σ_k ∂k(x_k, x_m)/∂x_k = 2/h Σ_k k(x_k, x_m) (x_m - x_k)
            apart = kernel.sum(axis=0)[:, None] * position - kernel.T @ position
            moved.append((total.T @ slope + 2 / width * apart) / self.num_particles)
        shaped = (latent, params["mechanism"], params["noise"])
        latent, mechanism, noise = (
            jax.vmap(lambda row, s=shape: _like(s, row))(rows)
            for shape, rows in zip(
                (jax.tree.map(lambda leaf: leaf[0], tree) for tree in shaped), moved, strict=True
            )
        )
        return latent, {"mechanism": mechanism, "noise": noise}


def scores(latent: Float[Array, "2 d k"]) -> Float[Array, "d d"]:
    """u_iᵀ v_j."""
    return latent[0] @ latent[1].T


def cyclicity(graph: Graph) -> Float[Array, ""]:
    """tr (I + G/d)^d - d, which is zero for DAGs alone (Yu et al. 2019)."""
    d = graph.shape[0]
    matrix = jnp.eye(d, dtype=graph.dtype) + graph / d
    power, exponent = jnp.eye(d, dtype=graph.dtype), d
    while exponent:  # by squaring
        power = power @ matrix if exponent % 2 else power
        matrix, exponent = matrix @ matrix, exponent // 2
    return jnp.trace(power) - d


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


def _kernel(position: Float[Array, "m p"], bandwidth: float) -> Float[Array, "m m"]:
    """exp(-|x - y|² / h) of all pairs."""
    square = (position**2).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * position @ position.T
    return jnp.exp(-jnp.maximum(distance, 0) / bandwidth)


def _without_loops(graph: Graph) -> Graph:
    return graph * (1 - jnp.eye(graph.shape[0], dtype=graph.dtype))


def _like(tree: Params, row: Array) -> Params:
    return ravel_pytree(tree)[1](jnp.asarray(row))
