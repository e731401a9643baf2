"""Differentiable DAG sampling: orders, edges and functions learned together (VI-DP-DAG).

Charpentier, Kibler & Günnemann (2022), Differentiable DAG sampling, ICLR. A graph is an order,
drawn by Gumbel noise, and edges that agree with it, drawn by Gumbel-softmax; the functions are
point estimates. Written from the paper; the authors' code carries no licence and was not read.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from bayesdag.baselines.likelihood import GradientContext, confined
from bayesdag.baselines.optimisers import descend
from bayesdag.baselines.permutations import gumbel_sinkhorn, gumbel_top_k, order_of
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.types import Array, Graph, Key, Params


class LearningState(NamedTuple):
    """What is learned, and its optimiser.

    Attributes:
        learned: `order` scores, `edges` logits and the functions.
        optimiser: state of Adam.
    """

    learned: Params
    optimiser: Any


@dataclass(frozen=True)
class DDSKernel:
    """One step of stochastic gradient descent on the variational objective.

    Attributes:
        mechanism: masked networks.
        sinkhorn: relaxation of a full matrix of scores; None: Gumbel-Top-k on d scores.
        temperature: of the Gumbel-softmax edges, and of Gumbel-Top-k.
        edge_probability: prior of each edge.
        regularisation: λ, weight of the divergence from the prior.
        batch_size: rows per step.
        num_draws: Monte-Carlo graphs per step.
        learning_rate: of Adam.
    """

    mechanism: MLP
    sinkhorn: Sinkhorn | None
    temperature: float
    edge_probability: float
    regularisation: float
    batch_size: int
    num_draws: int
    learning_rate: float

    def start(self, key: Key, d: int) -> LearningState:
        """No order preferred, every edge as probable as not."""
        key_order, key_functions = jax.random.split(key)
        shape = (d,) if self.sinkhorn is None else (d, d)
        learned = {
            "order": 0.01 * jax.random.normal(key_order, shape),
            "edges": jnp.zeros((d, d)),
            "functions": self.mechanism.init(key_functions, d),
        }
        return LearningState(learned, self._optimiser.init(learned))

    def step(
        self, key: Key, step: Array, state: LearningState, context: GradientContext
    ) -> tuple[LearningState, dict[str, Array]]:
        """What is learned after one step; the energy is the loss."""
        del step
        key_rows, key_graphs = jax.random.split(key)
        rows = jax.random.randint(key_rows, (self.batch_size,), 0, context.x.shape[0])
        x, observed = context.x[rows], context.observed[rows]
        keys = jax.random.split(key_graphs, self.num_draws)

        def loss(learned: Params) -> Array:
            def error(key: Key) -> Array:
                graph = self.graph(key, learned, context)
                residual = x - self.mechanism(learned["functions"], x, graph)
                return (observed * residual**2).sum() / self.batch_size

            divergence = bernoulli_divergence(learned["edges"], self.edge_probability, context)
            return jax.vmap(error)(keys).mean() + self.regularisation * divergence

        energy, grad = jax.value_and_grad(loss)(state.learned)
        learned, optimiser = descend(self._optimiser, grad, state.optimiser, state.learned)
        return LearningState(learned, optimiser), {"energy": energy[None]}

    def keep(self, key: Key, state: LearningState, context: GradientContext) -> Params:
        """What is learned."""
        del key, context
        return state.learned

    def graph(self, key: Key, learned: Params, context: GradientContext) -> Graph:
        """A DAG: hard in value, soft in its gradient in orders and edges."""
        key_order, key_edges = jax.random.split(key)
        if self.sinkhorn is None:
            permutation = gumbel_top_k(key_order, learned["order"], self.temperature)
        else:
            permutation, _ = gumbel_sinkhorn(key_order, learned["order"], self.sinkhorn)
        logits = learned["edges"]
        noise = jax.random.logistic(key_edges, logits.shape, dtype=logits.dtype)
        soft = jax.nn.sigmoid((logits + noise) / self.temperature)
        hard = (logits + noise > 0).astype(logits.dtype)
        edges = hard + soft - jax.lax.stop_gradient(soft)
        return confined(edges, context) * order_of(permutation)

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.learning_rate)


def bernoulli_divergence(logits: Graph, prior: float, context: GradientContext) -> Float[Array, ""]:
    """KL of independent edges from edges of one probability, over all that are allowed."""
    probability = jax.nn.sigmoid(logits)
    yes = probability * (jax.nn.log_sigmoid(logits) - jnp.log(prior))
    no = (1 - probability) * (jax.nn.log_sigmoid(-logits) - jnp.log1p(-prior))
    return (context.allowed * (yes + no)).sum()


def residual_scales(
    mechanism: MLP, functions: Params, graph: Graph, context: GradientContext
) -> Float[Array, " d"]:
    """Log deviation of what the functions leave, from all rows that nobody set."""
    residual = context.x - mechanism(functions, context.x, graph)
    square = (context.observed * residual**2).sum(axis=0)
    return 0.5 * jnp.log(jnp.maximum(square / jnp.maximum(context.num_rows, 1.0), 1e-10))
