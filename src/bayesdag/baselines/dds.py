"""Differentiable DAG sampling: orders, edges and functions learned together (VI-DP-DAG).

Charpentier, Kibler & Günnemann (2022), Differentiable DAG sampling, ICLR. A graph is an order,
drawn by Gumbel noise, and edges that agree with it, drawn by Gumbel-softmax; the functions are
point estimates. Written from the paper; the authors' code carries no licence and was not read.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float, Int

from bayesdag.baselines.likelihood import GradientContext, confined
from bayesdag.baselines.optimisers import descend
from bayesdag.baselines.permutations import gumbel_sinkhorn, gumbel_top_k, order_of
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.types import Array, Graph, Key, Keys, Params, Rows


class DDSContext(NamedTuple):
    """Rows to learn from, and rows that say when to stop.

    Attributes:
        train: rows to learn from, and what is known.
        held_out: other rows.
        held_out_observed: 1 where nature chose the value.
    """

    train: GradientContext
    held_out: Float[Array, "v d"]
    held_out_observed: Float[Array, "v d"]


class LearningState(NamedTuple):
    """What is learned, its optimiser, and the best of it so far.

    Attributes:
        learned: `order` scores, `edges` logits and the functions.
        optimiser: state of Adam.
        best: what was learned when the loss on held-out rows was lowest.
        best_loss: that loss.
        num_worse: checks since then.
    """

    learned: Params
    optimiser: optax.OptState
    best: Params
    best_loss: Float[Array, ""]
    num_worse: Int[Array, ""]


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
        patience: checks without a lower loss on held-out rows until learning stops; None: it
            never does.
        check_every: steps between two checks.
        num_check_draws: graphs that a check averages over.
    """

    mechanism: MLP
    sinkhorn: Sinkhorn | None
    temperature: float
    edge_probability: float
    regularisation: float
    batch_size: int
    num_draws: int
    learning_rate: float
    patience: int | None
    check_every: int
    num_check_draws: int

    def start(self, key: Key, d: int) -> LearningState:
        """No order preferred, every edge as probable as not."""
        key_order, key_functions = jax.random.split(key)
        shape = (d,) if self.sinkhorn is None else (d, d)
        learned = {
            "order": 0.01 * jax.random.normal(key_order, shape),
            "edges": jnp.zeros((d, d)),
            "functions": self.mechanism.init(key_functions, d),
        }
        none = jnp.zeros((), jnp.int32)
        return LearningState(
            learned, self._optimiser.init(learned), learned, jnp.asarray(jnp.inf), none
        )

    def step(
        self, key: Key, step: Array, state: LearningState, context: DDSContext
    ) -> tuple[LearningState, dict[str, Array]]:
        """What is learned after one step; the energy is the loss."""
        if self.patience is None:
            state, energy = self._learn(key, state, context)
            return state, {"energy": energy[None]}
        # Once it has stopped, a step does nothing, so that the run may have any length.
        state, energy = jax.lax.cond(
            state.num_worse < self.patience,
            lambda state: self._learn_and_check(key, step, state, context),
            lambda state: (state, state.best_loss),
            state,
        )
        return state, {"energy": energy[None]}

    def _learn(
        self, key: Key, state: LearningState, context: DDSContext
    ) -> tuple[LearningState, Array]:
        """One step of Adam on a batch of rows."""
        key_rows, key_graphs = jax.random.split(key)
        x, observed = context.train.x, context.train.observed
        rows = jax.random.randint(key_rows, (self.batch_size,), 0, x.shape[0])
        keys = jax.random.split(key_graphs, self.num_draws)

        def loss(learned: Params) -> Array:
            error = self._error(keys, learned, x[rows], observed[rows], context.train)
            divergence = bernoulli_divergence(
                learned["edges"], self.edge_probability, context.train
            )
            return error + self.regularisation * divergence

        energy, grad = jax.value_and_grad(loss)(state.learned)
        learned, optimiser = descend(self._optimiser, grad, state.optimiser, state.learned)
        return state._replace(learned=learned, optimiser=optimiser), energy

    def _learn_and_check(
        self, key: Key, step: Array, state: LearningState, context: DDSContext
    ) -> tuple[LearningState, Array]:
        """One step and, at the end of a pass through the rows, a look at held-out ones."""
        state, energy = self._learn(key, state, context)
        state = jax.lax.cond(
            (step + 1) % self.check_every == 0,
            lambda state: self._checked(state, context),
            lambda state: state,
            state,
        )
        return state, energy

    def _checked(self, state: LearningState, context: DDSContext) -> LearningState:
        """The state that knows whether this is the best so far.

        All checks draw their graphs by the same keys: what differs is what was learned.
        """
        keys = jax.random.split(jax.random.key(0), self.num_check_draws)
        rows = (context.held_out, context.held_out_observed)
        error = self._error(keys, state.learned, *rows, context.train)
        divergence = bernoulli_divergence(
            state.learned["edges"], self.edge_probability, context.train
        )
        loss = error + self.regularisation * divergence
        better = loss < state.best_loss
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), state.learned, state.best)
        return state._replace(
            best=best,
            best_loss=jnp.minimum(loss, state.best_loss),
            num_worse=jnp.where(better, 0, state.num_worse + 1),
        )

    def _error(
        self, keys: Keys, learned: Params, x: Rows, observed: Rows, known: GradientContext
    ) -> Float[Array, ""]:
        """Squared error per row, averaged over drawn graphs."""

        def one(key: Key) -> Array:
            graph = self.graph(key, learned, known)
            residual = x - self.mechanism(learned["functions"], x, graph)
            return (observed * residual**2).sum() / len(x)

        return jax.vmap(one)(keys).mean()

    def keep(self, key: Key, state: LearningState, context: DDSContext) -> Params:
        """The best that was learned; before the first check, the last."""
        del key, context
        checked = jnp.isfinite(state.best_loss)
        return jax.tree.map(
            lambda best, last: jnp.where(checked, best, last), state.best, state.learned
        )

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
