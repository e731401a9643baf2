"""One small network a variable: rectifiers beside a linear part, on few listed parents."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float, Shaped

from bayesdag.types import Array, Graph, Key, Params, Rows

# Log factor by which the noise may reach further, or less far, than usual.
MOST_SPREAD = 3.0


@dataclass(frozen=True)
class Networks:
    """Mean of x_i = second_i · relu(first_iᵀ z + bias_i) + slopes_i · z + intercept_i.

    z are the variables in `members[i]`, those that are parents of i in the graph; the others
    count as zero. Parameters grow with the number of members, not with that of variables.
    Where they are given, `spread_units`, `spread_slopes` and `spread_intercept` make of the
    same units the logarithm of a factor of the noise.

    Attributes:
        width: hidden units of every variable.
        num_members: variables listed for each; None: all of them.
    """

    width: int = 8
    num_members: int | None = None

    def init(self, key: Key, d: int) -> Params:
        """Random units, and a second layer that starts small."""
        k = self.num_members or d
        key_first, key_second = jax.random.split(key)
        return {
            "members": jnp.tile(jnp.arange(k, dtype=jnp.int32)[None, :], (d, 1)),
            "first": jax.random.normal(key_first, (d, k, self.width)),
            "bias": jnp.zeros((d, self.width)),
            "second": 0.1 * jax.random.normal(key_second, (d, self.width)),
            "slopes": jnp.zeros((d, k)),
            "intercept": jnp.zeros(d),
        }

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once."""
        params, x, graph = jax.tree.map(jnp.asarray, (params, x, graph))
        nodes = jnp.arange(graph.shape[0])
        means = jax.lax.map(lambda i: self.node(params, x, graph[:, i], i), nodes)
        return means.T

    def node(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Mean of variable `i`; only its members are looked at."""
        units, z = self._seen(params, x, parents, i)
        return units @ params["second"][i] + z @ params["slopes"][i] + params["intercept"][i]

    def node_scale(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Factor of the noise of variable `i`; 1 where the parameters say nothing of it."""
        if "spread_units" not in params:
            return jnp.ones_like(x[:, 0])
        units, z = self._seen(params, x, parents, i)
        weighed = units @ params["spread_units"][i] + z @ params["spread_slopes"][i]
        weighed += params["spread_intercept"][i]
        return jnp.exp(jnp.clip(weighed, -MOST_SPREAD, MOST_SPREAD))

    @staticmethod
    def _seen(params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array):
        """Hidden units, and the parents themselves."""
        members = params["members"][i]
        z = x[:, members] * (parents[members] != 0).astype(x.dtype)[None, :]
        return jax.nn.relu(z @ params["first"][i] + params["bias"][i][None, :]), z


build = Networks
