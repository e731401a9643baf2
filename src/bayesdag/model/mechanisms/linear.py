"""Linear mechanisms: each variable is a weighted sum of its parents."""

from dataclasses import dataclass

from bayesdag.types import Array, Graph, Key, Params, Rows
from bayesdag.types.late_imports import jax, jnp


@dataclass(frozen=True)
class Linear:
    """Mean of x_j = Σ_i graph[i, j] · weights[i, j] · x_i + bias_j.

    Attributes:
        intercept: whether there is a bias; the paper's linear model has none.
        init_scale: deviation of the weights at the start of a chain.
    """

    intercept: bool = True
    init_scale: float = 1.0

    def init(self, key: Key, d: int) -> Params:
        """Weights around zero, and no bias: the data are centred."""
        params = {"weights": self.init_scale * jax.random.normal(key, (d, d))}
        return params | {"bias": jnp.zeros(d)} if self.intercept else params

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once."""
        weights = params["weights"]
        means = x @ (weights * graph.astype(weights.dtype))
        return means + params["bias"][None, :] if self.intercept else means

    def node(self, params: Params, x: Rows, parents: Array, i: Array) -> Array:
        """Mean of variable `i`; costs n·d."""
        weights = params["weights"][:, i]
        mean = x @ (weights * parents.astype(weights.dtype))
        return mean + params["bias"][i] if self.intercept else mean


build = Linear
