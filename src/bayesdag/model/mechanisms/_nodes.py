"""Means of all variables, from a mechanism that is written for one at a time."""

from bayesdag.types import Graph, Mechanism, Params, Rows
from bayesdag.types.late_imports import jax, jnp


def means_of_all(mechanism: Mechanism, params: Params, x: Rows, graph: Graph) -> Rows:
    """One variable after the other, so that only the members of one are in memory."""
    params, x, graph = jax.tree.map(jnp.asarray, (params, x, graph))
    nodes = jnp.arange(graph.shape[0])
    means = jax.lax.map(lambda i: mechanism.node(params, x, graph[:, i], i), nodes)
    return means.T
