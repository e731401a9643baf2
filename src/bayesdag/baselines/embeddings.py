"""Graphs from latent embeddings: their probabilities, their prior, and gradients through draws.

Lorch, Rothfuss, Schölkopf & Krause (2021). A latent Z = (U, V) gives every edge the probability
σ(α_t u_iᵀ v_j), and graphs with cycles lose probability as β_t grows; both rise linearly with the
steps t.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float

from bayesdag.baselines.likelihood import GradientContext, confined
from bayesdag.model.parameter_priors import structure_energy
from bayesdag.types import Array, Graph, Key, StructurePrior


@dataclass(frozen=True)
class GraphEmbedding:
    """The distribution of graphs given latent embeddings, and the prior of these.

    Attributes:
        prior: over graphs.
        size: k, length of an embedding; None: d.
        alpha: growth of α per step.
        beta: growth of β per step.
        temperature: of the Gumbel-softmax graphs.
        num_acyclicity_graphs: Monte-Carlo graphs for the expected number of cycles.
    """

    prior: StructurePrior
    size: int | None
    alpha: float
    beta: float
    temperature: float
    num_acyclicity_graphs: int

    def start(self, key: Key, num_particles: int, d: int) -> Float[Array, "m 2 d k"]:
        """Embeddings from their Gaussian prior."""
        size = self.size or d
        return jax.random.normal(key, (num_particles, 2, d, size)) / size**0.5

    def logits(self, latent: Float[Array, "2 d k"], time: Array) -> Graph:
        """Log odds of every edge at this time."""
        return self.alpha * time * scores(latent)

    def soft_graphs(self, key: Key, logits: Graph, num: int) -> Float[Array, "g d d"]:
        """Gumbel-softmax graphs: differentiable in the log odds."""
        noise = jax.random.logistic(key, (num, *logits.shape), dtype=logits.dtype)
        return jax.nn.sigmoid((noise + logits[None]) / self.temperature)

    def log_prior(
        self, key: Key, time: Array, latent: Float[Array, "2 d k"], context: GradientContext
    ) -> Float[Array, ""]:
        """log p(Z): Gaussian, few cycles, and the prior at the edge probabilities."""
        logits = self.logits(latent, time)
        soft = self.soft_graphs(key, logits, self.num_acyclicity_graphs)
        graphs = jax.vmap(lambda g: confined(without_loops(g), context))(soft)
        cycles = jax.vmap(cyclicity)(graphs).mean()
        probability = confined(without_loops(jax.nn.sigmoid(logits)), context)
        beliefs = (context.log_odds * probability).sum()
        gaussian = 0.5 * latent.shape[-1] * (latent**2).sum()
        energy = structure_energy(probability, self.prior)
        return beliefs - gaussian - self.beta * time * cycles - energy

    def score_function(
        self,
        latent: Float[Array, "2 d k"],
        time: Array,
        graphs: Float[Array, "g d d"],
        log_values: Float[Array, " g"],
        context: GradientContext,
    ) -> Float[Array, "2 d k"]:
        """Gradient of log E[exp(value)] in Z by the score-function estimator.

        Σ_g w_g ∇ log p(G_g | Z) with w the softmax of the values of graphs drawn from p(G | Z):
        nothing has to be differentiable in the graphs.
        """
        weights = jax.nn.softmax(log_values)
        mean = jnp.einsum("g,gij->ij", weights, graphs)
        free = without_loops(context.allowed * (1 - context.required))

        def log_density(latent: Array) -> Array:
            logits = self.logits(latent, time)
            yes, no = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
            return (free * (mean * yes + (1 - mean) * no)).sum()

        return jax.grad(log_density)(latent)


def hard_graphs(key: Key, logits: Graph, num: int) -> Float[Array, "g d d"]:
    """Graphs drawn from their edge probabilities, cycles included."""
    drawn = jax.random.uniform(key, (num, *logits.shape))
    return (drawn < jax.nn.sigmoid(logits)[None]).astype(logits.dtype)


def limit_graphs(
    latent: Float[Array, "m 2 d k"], context: GradientContext
) -> Float[Array, "m d d"]:
    """Edges more probable than not, in the limit of large α."""

    def one(latent: Array) -> Array:
        return confined(without_loops((scores(latent) > 0).astype(jnp.float32)), context)

    return jax.vmap(one)(latent)


def scores(latent: Float[Array, "2 d k"]) -> Float[Array, "d d"]:
    """u_iᵀ v_j."""
    return latent[0] @ latent[1].T


def cyclicity(graph: Graph) -> Float[Array, ""]:
    """tr (I + G/d)^d - d, which is zero for DAGs alone (Yu et al. 2019)."""
    d, exact = graph.shape[0], "highest"  # each squaring doubles the error of a product
    matrix = jnp.eye(d, dtype=graph.dtype) + graph / d
    power, exponent = jnp.eye(d, dtype=graph.dtype), d
    while exponent:  # by squaring
        power = jnp.matmul(power, matrix, precision=exact) if exponent % 2 else power
        matrix, exponent = jnp.matmul(matrix, matrix, precision=exact), exponent // 2
    return jnp.trace(power) - d


def without_loops(graph: Graph) -> Graph:
    """The graph without edges from a variable to itself."""
    return graph * (1 - jnp.eye(graph.shape[0], dtype=graph.dtype))
