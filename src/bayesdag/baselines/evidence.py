"""BGe on the device: the evidence of many graphs at once, cycles allowed.

A graph with a cycle is no model, but the product of its families' evidences is a number, and
that is what methods need whose draws become acyclic only at the end.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from bayesdag.scores.bge import BGe, BGeStats
from bayesdag.types import Array, Graph


class EvidenceTables(NamedTuple):
    """Everything about the data that BGe needs, per node, with the node itself last.

    Attributes:
        others: all variables but the node.
        scale: posterior scale matrix R of the others and the node, with unit diagonal.
        log_size: logarithm of the square root of R's diagonal, of the others.
        constant: by the number of parents, less that of none.
        exponent: likewise, of what the parents leave of the node.
    """

    others: Int[Array, "d e"]
    scale: Float[Array, "d d d"]
    log_size: Float[Array, "d e"]
    constant: Float[Array, "d d"]
    exponent: Float[Array, "d d"]


def evidence_tables(score: BGe, stats: BGeStats) -> EvidenceTables:
    """Of these data, in float32; what is large cancels before."""
    d = stats.mean.shape[1]
    nodes = np.arange(d)
    others = np.stack([np.delete(nodes, node) for node in nodes])
    last = np.concatenate([others, nodes[:, None]], axis=1)
    scale = stats.scale[stats.group[:, None, None], last[:, :, None], last[:, None, :]]
    size = np.sqrt(np.diagonal(scale, axis1=1, axis2=2))
    log_constant, exponent = (part[stats.group] for part in score.by_family_size(stats))
    constant = log_constant - exponent * np.log(size[:, -1:])
    return EvidenceTables(
        jnp.asarray(others, jnp.int32),
        jnp.asarray(scale / size[:, :, None] / size[:, None, :], jnp.float32),
        jnp.asarray(np.log(size[:, :-1]), jnp.float32),
        jnp.asarray(constant - constant[:, :1], jnp.float32),
        jnp.asarray(exponent, jnp.float32),
    )


def log_evidence(tables: EvidenceTables, graph: Graph) -> Float[Array, ""]:
    """Log evidence of a graph of zeros and ones, less that of the empty one."""

    def family(
        others: Array, scale: Array, size: Array, constant: Array, exponent: Array, j: Array
    ):
        parents = graph[others, j]
        inside = jnp.append(parents, jnp.ones((), graph.dtype))
        # Variables that are no parents stand alone, with variance one: they change no pivot.
        apart = jnp.diag(1 - inside)
        root = jnp.linalg.cholesky(scale * inside[:, None] * inside[None, :] + apart)
        pivots = jnp.log(jnp.diagonal(root))
        number = parents.sum().astype(jnp.int32)
        explained = (parents * size).sum() + pivots[:-1].sum()
        return constant[number] - explained - exponent[number] * pivots[-1]

    return jax.vmap(family)(*tables, jnp.arange(graph.shape[0])).sum()
