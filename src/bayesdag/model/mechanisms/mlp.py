"""One multilayer perceptron per variable, which reads its parents: the usual neural SCM.

The graph multiplies the inputs, so that a gradient in its entries exists between 0 and 1, too.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float, Shaped

from bayesdag.errors import InputError
from bayesdag.types import Array, Graph, Key, Params, Rows

_SLOPE = 0.01  # of LeakyReLU below zero


@dataclass(frozen=True)
class MLP:
    """Mean of x_i = network_i(graph[:, i] ⊙ x), one network per variable.

    Attributes:
        width: hidden units of each layer.
        depth: hidden layers.
    """

    width: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise InputError(
                f"mlp has width {self.width} and depth {self.depth}; both must be 1 or more"
            )

    def init(self, key: Key, d: int) -> Params:
        """Weights N(0, 1 / fan in), and no biases."""
        key_first, key_inner, key_output = jax.random.split(key, 3)
        width, inner = self.width, self.depth - 1
        params = {
            "first": jax.random.normal(key_first, (d, d, width)) / d**0.5,
            "biases": jnp.zeros((d, self.depth, width)),
            "output": jax.random.normal(key_output, (d, width)) / width**0.5,
            "bias": jnp.zeros(d),
        }
        if not inner:  # an empty array has no place in a file
            return params
        between = jax.random.normal(key_inner, (d, inner, width, width)) / width**0.5
        return params | {"inner": between}

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once."""
        params, x, graph = jax.tree.map(jnp.asarray, (params, x, graph))
        masked = params["first"] * graph.T.astype(x.dtype)[:, :, None]
        d, _, width = masked.shape
        # One plain product for all networks' first layers.
        first = x @ jnp.swapaxes(masked, 0, 1).reshape(d, d * width)
        hidden = jnp.swapaxes(first.reshape(-1, d, width), 0, 1)
        return jax.vmap(self._rest)(params, hidden).T

    def under_graphs(
        self, params: Params, x: Rows, graphs: Float[Array, "g d d"]
    ) -> Float[Array, "g n d"]:
        """Means of all variables under many graphs, functions being the same.

        What an input contributes to a hidden unit does not depend on the graph: with these
        products formed once, first layers of all graphs are one matrix product per variable.
        That pays if there are more graphs than inputs.
        """
        num, d, width = graphs.shape[0], x.shape[1], self.width
        if num <= d:
            return jax.vmap(lambda graph: self(params, x, graph))(graphs)
        inputs = jnp.einsum("ni,jih->jinh", x, params["first"]).reshape(d, d, -1)
        first = jnp.einsum("gij,jik->jgk", graphs, inputs).reshape(d, -1, width)
        means = jax.vmap(self._rest)(params, first)
        return jnp.moveaxis(means.reshape(d, num, -1), 0, -1)

    def node(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Mean of variable `i`."""
        params, x, parents = jax.tree.map(jnp.asarray, (params, x, parents))
        own = jax.tree.map(lambda leaf: leaf[i], params)
        return self._rest(own, x @ (own["first"] * parents.astype(x.dtype)[:, None]))

    def _rest(self, own: Params, hidden: Float[Array, "n h"]) -> Float[Array, " n"]:
        """Everything after the first product, of one network."""
        hidden = _leaky(hidden + own["biases"][0][None, :])
        for layer in range(self.depth - 1):
            hidden = _leaky(hidden @ own["inner"][layer] + own["biases"][layer + 1][None, :])
        return hidden @ own["output"] + own["bias"]


def _leaky(x: Array) -> Array:
    return jnp.where(x > 0, x, _SLOPE * x)


build = MLP
