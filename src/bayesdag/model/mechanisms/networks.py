"""One small network per variable: rectifiers beside a linear part, on few listed parents.

A network reads the features [rectified units, inputs, 1]; its mean is linear in them, and so is
the logarithm of the factor by which the scale of heteroscedastic noise depends on the inputs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float, Shaped

from bayesdag.model import warps
from bayesdag.model.array_namespace import Array, matmul, namespace
from bayesdag.model.mechanisms._nodes import means_of_all
from bayesdag.model.random_units import random_units
from bayesdag.types import Graph, Key, Params, Rows
from bayesdag.types.late_imports import jax, jnp

# Bound of the log factor of a heteroscedastic scale: rows far out are not taken for impossible.
MAX_LOG_SCALE_FACTOR = 3.0


def pre_activations(
    first: Float[Array, "k h"], bias: Float[Array, " h"], inputs: Float[Array, "n k"]
) -> Float[Array, "n h"]:
    """What the hidden units see before they are rectified, in full precision."""
    return (matmul(first.T, inputs.T) + bias[:, None]).T


def units(
    first: Float[Array, "k h"], bias: Float[Array, " h"], inputs: Float[Array, "n k"]
) -> Float[Array, "n h"]:
    """Rectified hidden units."""
    return namespace(inputs).maximum(pre_activations(first, bias, inputs), 0)


def features(
    first: Float[Array, "k h"], bias: Float[Array, " h"], inputs: Float[Array, "n k"]
) -> Float[Array, "n q"]:
    """Rectified units, the inputs themselves, and 1."""
    xp = namespace(inputs)
    return xp.concatenate([units(first, bias, inputs), inputs, xp.ones_like(inputs[:, :1])], axis=1)


def kinks(inputs: Float[Array, "n k"], knots: Float[Array, "k m"]) -> Float[Array, "n km"]:
    """Rectified distances of every input from its knots, input by input."""
    above = namespace(inputs).maximum(inputs.T[:, None, :] - knots[:, :, None], 0)
    return above.reshape(-1, inputs.shape[0]).T


def log_scale_factor(
    features: Float[Array, "n q"], weights: Float[Array, "q *forms"]
) -> Float[Array, "n *forms"]:
    """Bounded log factor of a scale that depends on the features."""
    linear = matmul(weights.T, features.T).T  # rows last: NumPy is quick in long loops
    return namespace(linear).clip(linear, -MAX_LOG_SCALE_FACTOR, MAX_LOG_SCALE_FACTOR)


@dataclass(frozen=True)
class Networks:
    """Mean of x_i = second_i · relu(first_iᵀ z + bias_i) + slopes_i · z + intercept_i.

    z are the variables in `members[i]`, those that are parents of i in the graph; the others
    count as zero. Parameters grow with the number of members, not with that of variables.
    Where they are given, `kinks_i` are weights of rectified distances of each z from its `knots_i`,
    which makes sums of curves.
    Where they are given, `process_i` are weights of random units of the whitened z, which makes
    Gaussian processes (`model.random_units`); `process_mean` and `process_root` whiten.
    Where `warped_i` is not 0, x_i and z are seen through tables of monotone functions h (`warp`
    for every variable, on an even grid as wide as `reach` on either side): the mean is that
    of h(x_i), given h of its parents.
    Where they are given, `scale_units`, `scale_slopes` and `scale_intercept` are the weights of
    the same features in the log factor of the noise scale.

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
        return means_of_all(self, params, x, graph)

    def node(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Mean of variable `i`; only its members are looked at."""
        weights = _weights(params, ("second", "kinks", "slopes", "intercept"), i)
        mean = matmul(self._features(params, x, parents, i), weights)
        if "process" not in params:
            return mean
        return mean + matmul(self._random_units(params, x, parents, i), params["process"][i])

    def node_scale(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Factor of the noise of variable `i`; 1 where the parameters say nothing of it."""
        if "scale_units" not in params:
            return jnp.ones_like(x[:, 0])
        names = ("scale_units", "scale_kinks", "scale_slopes", "scale_intercept")
        weights = _weights(params, names, i)
        return jnp.exp(log_scale_factor(self._features(params, x, parents, i), weights))

    def warp(self, params: Params, x: Array, i: Array) -> Array:
        """h of variable `i`; the identity where the parameters say nothing of it."""
        return self._through(warps.warped, params, x, i)

    def unwarp(self, params: Params, z: Array, i: Array) -> Array:
        """Inverse of `warp`."""
        return self._through(warps.unwarped, params, z, i)

    def log_slope(self, params: Params, x: Array, i: Array) -> Array:
        """log h' of variable `i`."""
        if "warp" not in params:
            return jnp.zeros_like(x)
        slope = warps.log_slope(params["warp"][i], _grid(params, i), x)
        return jnp.where(params["warped"][i] != 0, slope, 0.0)

    @staticmethod
    def _through(
        function: Callable[[Array, Array, Array], Array], params: Params, x: Array, i: Array
    ) -> Array:
        if "warp" not in params:
            return x
        return jnp.where(
            params["warped"][i] != 0, function(params["warp"][i], _grid(params, i), x), x
        )

    @staticmethod
    def _inputs(params: Params, x: Rows, members: Array, i: Array) -> Float[Array, "n k"]:
        """The members of variable `i`, through h where it is."""
        inputs = x[:, members]
        if "warp" not in params:
            return inputs
        seen = jax.vmap(warps.warped, in_axes=(0, None, 1), out_axes=1)
        through = seen(params["warp"][members], _grid(params, i), inputs)
        return jnp.where(params["warped"][i] != 0, through, inputs)

    @classmethod
    def _random_units(
        cls, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, "n u"]:
        """Units of a Gaussian process; there are none of members that it was not fitted to."""
        members, root = params["members"][i], params["process_root"][i]
        present = (parents[members] != 0).astype(x.dtype)
        inputs = cls._inputs(params, x, members, i) * present[None, :]
        whitened = matmul(inputs - params["process_mean"][i][None, :], root)
        used = (jnp.diagonal(root) != 0).astype(x.dtype)
        return random_units(whitened, used, params["process"].shape[-1])

    @classmethod
    def _features(cls, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array) -> Array:
        members = params["members"][i]
        present = (parents[members] != 0).astype(x.dtype)
        inputs = cls._inputs(params, x, members, i) * present[None, :]
        read = features(params["first"][i], params["bias"][i], inputs)
        if "kinks" not in params:
            return read
        bent = kinks(inputs, params["knots"][i])
        bent = bent * jnp.repeat(present, params["knots"].shape[-1])[None, :]
        num_units = params["bias"].shape[-1]
        return jnp.concatenate([read[:, :num_units], bent, read[:, num_units:]], axis=1)


def _grid(params: Params, i: Array) -> Float[Array, " m"]:
    """Values of h at which the tables are given."""
    reach = params["reach"][i]
    return jnp.linspace(-reach, reach, params["warp"].shape[-1])


def _weights(params: Params, names: tuple[str, ...], i: Array) -> Float[Array, " q"]:
    """Weights of the features of variable `i`: of units, kinks, inputs and the constant."""
    given = (jnp.asarray(params[name])[i] for name in names if name in params)
    return jnp.concatenate([weights.reshape(-1) for weights in given])


build = Networks
