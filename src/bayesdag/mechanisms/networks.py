"""One small network a variable: rectifiers beside a linear part, on few listed parents."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float, Shaped

from bayesdag.types import Array, Graph, Key, Params, Rows


@dataclass(frozen=True)
class Networks:
    """Mean of x_i = second_i · relu(first_iᵀ z + bias_i) + slopes_i · z + intercept_i.

    z are the variables in `members[i]`, those that are parents of i in the graph; the others
    count as zero. Parameters grow with the number of members, not with that of variables.

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
        members = params["members"][i]
        z = x[:, members] * (parents[members] != 0).astype(x.dtype)[None, :]
        units = jax.nn.relu(z @ params["first"][i] + params["bias"][i][None, :])
        return units @ params["second"][i] + z @ params["slopes"][i] + params["intercept"][i]


build = Networks
