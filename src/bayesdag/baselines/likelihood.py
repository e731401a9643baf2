"""Log likelihoods of relaxed graphs, differentiable in every entry: what gradient methods need.

Linear functions are judged from sums of squares and products, so that the cost does not grow
with the rows; other functions see the rows themselves.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.scores._sufficient_statistics import rows_of
from bayesdag.types import Array, Graph, Mechanism, Params

_HIDDEN_IN_CACHE = 1_300_000  # hidden units of a tile of rows: 5 MB


class GradientContext(NamedTuple):
    """Data and knowledge as arrays that a compiled step reads.

    Attributes:
        x: rows in engine units; none where functions are linear.
        observed: 1 where nature chose the value.
        scatter: sums of squares and products about the means, of the rows that count for each
            node; none where functions are not linear.
        num_rows: rows that count for each node.
        allowed: 0 where an edge is forbidden.
        required: 1 where an edge is required.
        log_odds: of beliefs.
    """

    x: Float[Array, "n d"]
    observed: Float[Array, "n d"]
    scatter: Float[Array, "k d d"]
    num_rows: Float[Array, " d"]
    allowed: Float[Array, "d d"]
    required: Float[Array, "d d"]
    log_odds: Float[Array, "d d"]


def gradient_context(
    data: Dataset, knowledge: Constraints, mechanism: Mechanism
) -> GradientContext:
    """What is needed for this mechanism, in float32."""
    d = data.num_variables
    rows = rows_of(data.scaled, data.observed)
    linear = isinstance(mechanism, Linear)
    scatter = rows.scatter[rows.group] if linear else np.zeros((0, d, d))
    x, observed = (data.scaled, data.observed) if not linear else np.zeros((2, 0, d))
    parts = (
        *(x, observed, scatter, rows.num_rows[rows.group]),
        *(~knowledge.forbidden, knowledge.required, knowledge.log_odds),
    )
    return GradientContext(*(jnp.asarray(part, jnp.float32) for part in parts))


def confined(graph: Graph, context: GradientContext) -> Graph:
    """The graph without forbidden edges and with required ones; differentiable."""
    return context.required + (1 - context.required) * context.allowed * graph


def log_likelihood(
    mechanism: Mechanism, params: Params, graph: Graph, context: GradientContext
) -> Float[Array, ""]:
    """Of all rows, Gaussian noise; an intercept of linear functions is fitted exactly."""
    if not isinstance(mechanism, Linear):
        residual = context.x - mechanism(params["mechanism"], context.x, graph)
        terms = Gaussian().log_prob(params["noise"], residual)
        return (terms * context.observed).sum()
    weights = params["mechanism"]["weights"] * graph
    eye = jnp.eye(weights.shape[0], dtype=weights.dtype)
    # Column j of I - W holds the residual of j as a combination of the variables.
    residual = jnp.swapaxes(eye - weights, 0, 1)
    # What is left is a small difference of large sums: an accelerator's three digits will not do.
    left = jnp.einsum("ja,jab,jb->j", residual, context.scatter, residual, precision="highest")
    log_scale = params["noise"]["log_scale"]
    constant = context.num_rows * (log_scale + 0.5 * jnp.log(2 * jnp.pi))
    return (-0.5 * left * jnp.exp(-2 * log_scale) - constant).sum()


def log_likelihoods(
    mechanism: Mechanism,
    params: Params,
    graphs: Float[Array, "g d d"],
    context: GradientContext,
) -> Float[Array, " g"]:
    """Of all rows under many graphs, functions being the same.

    Networks see a tile of the rows at a time and forget their hidden units: on a CPU what the
    gradient needs is computed again faster than it is read back from memory.
    """
    if not isinstance(mechanism, MLP):
        return jax.vmap(lambda graph: log_likelihood(mechanism, params, graph, context))(graphs)

    @jax.checkpoint
    def tile(x: Array, observed: Array) -> Array:
        residual = x[None] - mechanism.under_graphs(params["mechanism"], x, graphs)
        terms = jax.vmap(lambda rows: Gaussian().log_prob(params["noise"], rows))(residual)
        return (terms * observed[None]).sum(axis=(1, 2))

    num_rows, d = context.x.shape
    hidden = len(graphs) * d * mechanism.width
    size = max(_HIDDEN_IN_CACHE // hidden, 1) if jax.default_backend() == "cpu" else num_rows
    if size >= num_rows:
        return tile(context.x, context.observed)
    missing = -num_rows % size  # filled up with rows that do not count
    tiled = (
        jnp.pad(rows, ((0, missing), (0, 0))).reshape(-1, size, d)
        for rows in (context.x, context.observed)
    )
    start = jnp.zeros(len(graphs), graphs.dtype)
    return jax.lax.scan(lambda total, rows: (total + tile(*rows), None), start, tuple(tiled))[0]


def with_intercept(
    weights: Float[np.ndarray, "s d d"], graphs: np.ndarray, data: Dataset
) -> Params:
    """Parameters of linear functions, with the intercepts that `log_likelihood` fitted."""
    rows = rows_of(data.scaled, data.observed)
    mean = rows.mean[rows.group]  # of all variables, over the rows that count for node j
    effective = weights * graphs
    bias = np.diagonal(mean)[None, :] - np.einsum("sij,ji->sj", effective, mean)
    return {"weights": effective, "bias": bias}
