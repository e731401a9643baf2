"""Additive mechanisms: each variable is a sum of smooth functions of single parents.

The functions are natural cubic splines, kept as their values and second derivatives at knots.
In that form nothing cancels in float32, as it would in sums of powers.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from bayesdag.model.mechanisms._nodes import means_of_all
from bayesdag.types import Array, Graph, Key, Params, Rows
from bayesdag.types.late_imports import jax, jnp


def curvature_matrix(knots: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k k"]:
    """Second derivatives at the knots of a natural cubic spline, from its values there.

    They are continuous in the slope and zero at both ends: a tridiagonal system.
    """
    size, gap = len(knots), np.diff(knots)
    system, values = np.eye(size), np.zeros((size, size))
    for k in range(1, size - 1):
        before, after = gap[k - 1], gap[k]
        system[k, k - 1 : k + 2] = before / 6, (before + after) / 3, after / 6
        values[k, k - 1 : k + 2] = 1 / before, -1 / before - 1 / after, 1 / after
    return np.linalg.solve(system, values)


@dataclass(frozen=True)
class AdditiveSplines:
    """Mean of x_i = Σ_j graph[j, i] · s_ij(x_j) + bias_i, s_ij natural cubic splines.

    Beyond the outermost knots a natural spline is a straight line. `members[i]` lists the
    variables for which i has a function: parameters grow with their number, not with d.

    Attributes:
        num_knots: of every variable, the same for all that depend on it.
        num_members: functions of each variable; None: one for every variable.
    """

    num_knots: int = 5
    num_members: int | None = None

    def init(self, key: Key, d: int) -> Params:
        """Random values at knots from -2 to 2."""
        size, num = self.num_knots, self.num_members or d
        knots = np.linspace(-2, 2, size)
        values = jax.random.normal(key, (d, num, size))
        curvatures = values @ jnp.asarray(curvature_matrix(knots), values.dtype).T
        return {
            "knots": jnp.tile(jnp.asarray(knots, values.dtype)[None, :], (d, 1)),
            "members": jnp.tile(jnp.arange(num, dtype=jnp.int32)[None, :], (d, 1)),
            "values": values,
            "curvatures": curvatures,
            "bias": jnp.zeros(d),
        }

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once."""
        return means_of_all(self, params, x, graph)

    def node(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Mean of variable `i`; only its members are looked at."""
        params, x, parents = jax.tree.map(jnp.asarray, (params, x, parents))
        members = params["members"][i]
        is_parent = (parents[members] != 0).astype(x.dtype)
        each = jax.vmap(_spline, in_axes=(0, 0, 0, 1))(
            params["knots"][members], params["values"][i], params["curvatures"][i], x[:, members]
        )
        return is_parent @ each + params["bias"][i]


def _spline(
    knots: Float[Array, " k"],
    values: Float[Array, " k"],
    curvatures: Float[Array, " k"],
    x: Float[Array, " n"],
) -> Float[Array, " n"]:
    """A natural cubic spline at x; a straight line beyond its knots.

    There the cubic terms a³ and b³ of the usual formula are left out: what remains is linear.
    """
    size = knots.shape[0]
    left = jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, size - 2)
    gap = knots[left + 1] - knots[left]
    a, b = (knots[left + 1] - x) / gap, (x - knots[left]) / gap
    bend = (jnp.maximum(a, 0) ** 3 - a) * curvatures[left]
    bend = bend + (jnp.maximum(b, 0) ** 3 - b) * curvatures[left + 1]
    return a * values[left] + b * values[left + 1] + bend * gap**2 / 6


build = AdditiveSplines
