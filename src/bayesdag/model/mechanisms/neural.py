"""Neural mechanisms that share their weights through an embedding of each variable.

f_i(x) = ζ(u_i, Σ_j graph[j, i] ℓ(u_j, x_j)) with one hidden layer each (section 4.1 of the
paper). ℓ sees one number and one embedding, so its first layer is `x_j w_j + const_j`, and ζ
needs one output a node: the function of the published code at a third of its arithmetic.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from bayesdag.types import Array, Graph, Key, Params, Rows
from bayesdag.types.late_imports import jax, jnp

_SLOPE = 0.01  # of LeakyReLU below zero
_EPSILON = 1e-5  # in the variance of LayerNorm


@dataclass(frozen=True)
class NeuralMechanism:
    """Two networks for all variables, distinguished by trainable embeddings.

    Attributes:
        width: hidden units; None is the paper's max(4 d, 64).
        normalise: LayerNorm before each output layer.
        edge_weights: a trainable number on every edge besides the graph itself; not in the
            paper, but in its published code.
    """

    width: int | None = None
    normalise: bool = True
    edge_weights: bool = False

    def init(self, key: Key, d: int) -> Params:
        """The published start: uniform ± 1/√(fan in), embeddings N(0, 0.01²)."""
        width = self.width or max(4 * d, 64)
        key_normal, key_uniform = jax.random.split(key)
        embedding, edges = jax.random.normal(key_normal, (2, d, d))
        inner, outer = self._init_networks(key_uniform, d, width)
        params = {"embedding": 0.01 * embedding, "inner": inner, "outer": outer}
        return params | {"edges": 0.1 * edges} if self.edge_weights else params

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once.

        Variables come first and rows second inside, so that every product is one plain
        matrix multiplication without a transpose.
        """
        n, d = x.shape
        inner, outer = params["inner"], params["outer"]
        hidden = _hidden(x.T[:, :, None] * inner["input"][:, None, :], params, inner)
        message = self._messages(inner, hidden.reshape(d * n, -1))
        weights = self._edge_weights(params, graph)
        total = weights.T @ message.reshape(d, n * d)
        first = total.reshape(d * n, d) @ outer["input"]
        return self._means(outer, _hidden(first.reshape(d, n, -1), params, outer)).T

    def node(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Mean of variable `i`; only its parents are looked at, so the cost grows with them.

        Hidden units are summed before the layer that reads them.
        """
        inner, outer = params["inner"], params["outer"]
        graph = jnp.zeros((x.shape[1],) * 2, x.dtype).at[:, i].set(parents.astype(x.dtype))
        weights = self._edge_weights(params, graph)[:, i]
        constant = params["embedding"] @ inner["embedding"] + inner["bias"][None, :]
        parents_first = jnp.argsort(parents == 0)

        def add(k: Array, summed: Array) -> Array:
            j = parents_first[k]
            first = x[:, j][:, None] * inner["input"][j][None, :]
            hidden = _leaky(first + constant[j][None, :])
            return summed + weights[j] * self._normal(inner, hidden)

        nobody = jnp.zeros((x.shape[0], constant.shape[1]), x.dtype)
        summed = jax.lax.fori_loop(0, (parents != 0).sum(), add, nobody)
        total = summed @ inner["output"] + weights.sum() * inner["output_bias"][None, :]
        constant = params["embedding"][i] @ outer["embedding"] + outer["bias"]
        hidden = _leaky(total @ outer["input"] + constant[None, :])
        return self._normal(outer, hidden) @ outer["output"][i] + outer["output_bias"][i]

    def _init_networks(self, key: Key, d: int, width: int) -> list[Params]:
        """One hidden layer each: the value and the embedding in, d numbers out.

        Each network is one draw cut into pieces, in a loop that the compiler cannot copy
        into every piece: ten times faster to compile than ten draws.
        """
        sizes = {"input": d * width, "embedding": d * width, "bias": width}
        sizes |= {"output": d * width, "output_bias": d}
        drawn = jax.lax.map(
            lambda k: jax.random.uniform(k, (sum(sizes.values()),), minval=-1, maxval=1),
            jax.random.split(key),
        )
        networks = []
        for numbers, output in zip(drawn, [(width, d), (d, width)], strict=True):
            shapes = [(d, width), (d, width), (width,), output, (d,)]
            pieces = jnp.split(numbers, np.cumsum(list(sizes.values()))[:-1])
            network = {
                name: piece.reshape(shape) / (width if "output" in name else 2 * d) ** 0.5
                for name, piece, shape in zip(sizes, pieces, shapes, strict=True)
            }
            if self.normalise:
                network |= {"gain": jnp.ones(width), "offset": jnp.zeros(width)}
            networks.append(network)
        return networks

    def _edge_weights(self, params: Params, graph: Graph) -> Graph:
        graph = graph.astype(params["embedding"].dtype)
        return graph * params["edges"] if self.edge_weights else graph

    def _messages(self, network: Params, hidden: Float[Array, "r h"]) -> Float[Array, "r d"]:
        """Output layer of ℓ for every row, LayerNorm folded into it.

        The normalised units are never formed: σ⁻¹ (hidden W - μ 1ᵀW) touches memory once.
        """
        output, bias = network["output"], network["output_bias"]
        if not self.normalise:
            return hidden @ output + bias[None, :]
        mean, inverse = _moments(hidden)
        scaled = network["gain"][:, None] * output
        centred = hidden @ scaled - mean * scaled.sum(axis=0)[None, :]
        return inverse * centred + (network["offset"] @ output + bias)[None, :]

    def _means(self, network: Params, hidden: Float[Array, "d n h"]) -> Float[Array, "d n"]:
        """Output layer of ζ: every variable reads its own row of it."""
        output, bias = network["output"], network["output_bias"]
        if not self.normalise:
            return jnp.einsum("dnh,dh->dn", hidden, output) + bias[:, None]
        d, n, width = hidden.shape
        mean, inverse = _moments(hidden.reshape(d * n, width))
        scaled = network["gain"][None, :] * output
        read = jnp.einsum("dnh,dh->dn", hidden, scaled)
        centred = read - mean.reshape(d, n) * scaled.sum(axis=1)[:, None]
        return inverse.reshape(d, n) * centred + (output @ network["offset"] + bias)[:, None]

    def _normal(self, network: Params, hidden: Float[Array, "... h"]) -> Float[Array, "... h"]:
        if not self.normalise:
            return hidden
        mean, inverse = _moments(hidden.reshape(-1, hidden.shape[-1]))
        shape = (*hidden.shape[:-1], 1)
        normal = (hidden - mean.reshape(shape)) * inverse.reshape(shape)
        return jnp.einsum("...h,h->...h", normal, network["gain"]) + jnp.broadcast_to(
            network["offset"], hidden.shape
        )


def _hidden(first: Float[Array, "d n h"], params: Params, network: Params) -> Array:
    """Hidden units, given what the first layer made of the value."""
    constant = params["embedding"] @ network["embedding"] + network["bias"][None, :]
    return _leaky(first + constant[:, None, :])


def _leaky(x: Array) -> Array:
    return jnp.where(x > 0, x, _SLOPE * x)


def _moments(hidden: Float[Array, "r h"]) -> tuple[Float[Array, "r 1"], Float[Array, "r 1"]]:
    """Mean and inverse deviation of each row, by matrix products.

    A reduction along the fastest axis runs at a quarter of their speed on a CPU.
    """
    average = jnp.full((hidden.shape[1], 1), 1 / hidden.shape[1], hidden.dtype)
    # The difference of two averages needs all digits; a GPU keeps three unless asked.
    mean = jnp.matmul(hidden, average, precision="highest")
    variance = jnp.maximum(jnp.matmul(hidden * hidden, average, precision="highest") - mean**2, 0.0)
    return mean, jax.lax.rsqrt(variance + _EPSILON)


build = NeuralMechanism
