"""Prior densities of the unknowns that are not graphs: potentials, functions, noise scales.

All are given as energies (-log density, constants dropped) of one chain.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesdag.types import Array, Graph, Params, Potentials, StructurePrior


def potential_energy(potentials: Potentials, scale: float) -> Float[Array, ""]:
    """Of p ~ N(0, scale²); only the order matters, so the scale sets no more than a unit."""
    return 0.5 * (potentials**2).sum() / scale**2


def param_energy(params: Params) -> Float[Array, ""]:
    """Of Θ ~ N(0, 1), every entry."""
    return sum((0.5 * (leaf**2).sum() for leaf in jax.tree.leaves(params)), start=jnp.zeros(()))


def noise_energy(params: Params, shape: float, rate: float) -> Float[Array, ""]:
    """Of σ² ~ InverseGamma(shape, rate), as a density of log σ, in engine units."""
    log_scale = params["log_scale"]
    return (2 * shape * log_scale + rate * jnp.exp(-2 * log_scale)).sum()


def structure_energy(graph: Graph, prior: StructurePrior) -> Float[Array, ""]:
    """Of a graph, given an order that allows it.

    Between whole in-degrees the penalty is interpolated: values are those of the prior, and
    a straight-through gradient sees its slope.
    """
    d = graph.shape[0]
    log_weights, penalty = prior.components(d)
    indegree = graph.sum(axis=0)
    steps = np.diff(penalty, axis=1, append=penalty[:, -1:])
    start = jnp.asarray(penalty - steps * np.arange(d), graph.dtype)
    lower = jax.lax.stop_gradient(jnp.clip(jnp.floor(indegree).astype(jnp.int32), 0, d - 1))
    lower = jnp.where(lower == d - 1, max(d - 2, 0), lower)
    slope = jnp.asarray(steps, graph.dtype)[:, lower]
    total = (start[:, lower] + slope * indegree[None, :]).sum(axis=1)
    return -jax.nn.logsumexp(jnp.asarray(log_weights, graph.dtype) + total)
