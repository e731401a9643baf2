"""Linear mechanisms: each variable is a weighted sum of its parents."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from bayesdag.types import Array, Graph, Key, Params, Rows


@dataclass(frozen=True)
class Linear:
    """Mean of x_j = Σ_i graph[i, j] · weights[i, j] · x_i + bias_j."""

    def init(self, key: Key, d: int) -> Params:
        """Weights from their prior N(0, 1), no bias: the data are centred."""
        return {"weights": jax.random.normal(key, (d, d)), "bias": jnp.zeros(d)}

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once."""
        weights = params["weights"]
        return x @ (weights * graph.astype(weights.dtype)) + params["bias"][None, :]

    def node(self, params: Params, x: Rows, parents: Array, i: Array) -> Array:
        """Mean of variable `i`; costs n·d."""
        weights = params["weights"][:, i]
        return x @ (weights * parents.astype(weights.dtype)) + params["bias"][i]


build = Linear
