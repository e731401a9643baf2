"""Mechanisms of columns of every kind: tables, regressions by level, and sums of curves.

A node reads features of its parents [1, lines, curves and indicators, products, hidden units], a
prefix of them, with weights that may be those of the parents' configuration of levels. What comes
out is, by the kind of the node, mean and log scale of a measurement, the log mean of a count,
logits of levels against level 0, or logits of P(code ≤ k) where levels are ordered.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag.model import count_quantiles, warps
from bayesdag.model.mechanisms._nodes import means_of_all
from bayesdag.types import Array, Graph, Key, Params, Rows
from bayesdag.types.late_imports import jax, jnp, late

special = late("jax.scipy.special")

MOST_LOG_MEAN = 15.0  # of a count: beyond it single precision has no whole numbers left
_LEAST = 1e-30  # of a probability
_WIDEST_BLOCK = 5  # features of a measurement where nothing else is said


@dataclass(frozen=True)
class MixedMechanism:
    """Distribution of every column given its parents, by its kind.

    Parameters of all nodes lie in one pool, `weights`. Node i reads `width[i]` features of the
    variables in `members[i]`; its weight of feature f and output h in configuration c is number
    `offset[i] + (c · width[i] + f) · outputs + h`, and c is the sum of the members' codes times
    `strides[i]`. `log_dispersion` is that of counts. Where `ordered` is not 0, outputs
    are logits of P(code ≤ k). `knots` (as they are, and by normal scores)
    are where curves bend. Codes are `centre + unit · x`; counts are read as
    (log(1 + x) - centre) / unit. Where `warped` is not 0, a measurement and those that it reads
    are seen through the tables `warp`, as in `mechanisms/networks`. Hidden units are tanh of the
    features before the products, with weights `hidden`; without networks there are none.

    Attributes:
        kinds: of every column; none: all are continuous.
        num_levels: of every column; 0 without levels.
    """

    kinds: tuple[str, ...] = ()
    num_levels: tuple[int, ...] = ()

    def init(self, key: Key, d: int) -> Params:
        """Random weights of all other variables, lines and curves."""
        members = np.array([[j for j in range(d) if j != i] for i in range(d)]).reshape(d, d - 1)
        m, block = d - 1, self._block(_WIDEST_BLOCK)
        width = 1 + m + m * block
        outputs = self._outputs(d)
        offset = np.concatenate([[0], np.cumsum(width * outputs)])
        return {
            "members": jnp.asarray(members, jnp.int32),
            "strides": jnp.zeros((d, m), jnp.int32),
            "offset": jnp.asarray(offset[:-1], jnp.int32),
            "width": jnp.full(d, width, jnp.int32),
            "weights": 0.3 * jax.random.normal(key, (int(offset[-1]),)),
            "log_dispersion": jnp.zeros(d),
            "ordered": jnp.zeros(d),
            "knots": jnp.tile(jnp.linspace(-1, 1, _WIDEST_BLOCK), (2, d, 1)),
            "centre": jnp.zeros(d),
            "unit": jnp.ones(d),
        }

    def __call__(self, params: Params, x: Rows, graph: Graph) -> Rows:
        """Means of all variables at once."""
        return means_of_all(self, params, x, graph)

    def node(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Mean of variable `i`; of a column of levels the mean of its codes."""
        out = self._read(params, x, parents, i)
        mean = out[:, 0]
        if "count" in self.kinds:
            count = jnp.exp(jnp.minimum(out[:, 0], MOST_LOG_MEAN))
            mean = jnp.where(self._is("count", i), count, mean)
        if self._has_levels:
            codes = jnp.arange(self._most_levels, dtype=x.dtype)
            of_levels = jnp.exp(self._log_probabilities(params, out, i)) @ codes
            mean = jnp.where(self._levels(i) > 0, of_levels, mean)
        return mean

    def node_scale(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Factor of the noise of a measurement; 1 for other kinds."""
        log_scale = self._read(params, x, parents, i)[:, 1]
        return jnp.where(self.is_continuous(i), jnp.exp(log_scale), 1.0)

    def is_continuous(self, i: Array) -> Array:
        """Whether variable `i` is its mean plus noise."""
        return jnp.asarray(True) if not self.kinds else self._is("continuous", i)

    def is_unordered(self, i: Array) -> Array:
        """Whether variable `i` has levels without an order."""
        return jnp.asarray(False) if not self.kinds else self._is("categorical", i)

    def level_probabilities(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, "n k"]:
        """Probability of every level of variable `i`; meaningless for other kinds."""
        return jnp.exp(self._log_probabilities(params, self._read(params, x, parents, i), i))

    def log_mass(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, " n"]:
        """Log probability of the value of variable `i` in each row, where it is discrete."""
        out = self._read(params, x, parents, i)
        mass = jnp.zeros_like(x[:, 0])
        if self._has_levels:
            code = self._codes(params, x[:, i], i)
            log_p = jnp.take_along_axis(
                self._log_probabilities(params, out, i), code[:, None], axis=1
            )
            mass = jnp.where(self._levels(i) > 0, log_p[:, 0], mass)
        if "count" in self.kinds:
            count, (r, mean) = jnp.maximum(x[:, i], 0.0), self._of_count(params, out, i)
            log_p = special.gammaln(count + r) - special.gammaln(r) - special.gammaln(count + 1)
            log_p += r * jnp.log(r / (r + mean)) + count * jnp.log(mean / (r + mean))
            mass = jnp.where(self._is("count", i), log_p, mass)
        return mass

    def below(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """Probability of a smaller value than that of variable `i`, and of that value itself."""
        out = self._read(params, x, parents, i)
        smaller, own = jnp.zeros_like(x[:, 0]), jnp.ones_like(x[:, 0])
        if self._has_levels:
            code = self._codes(params, x[:, i], i)[:, None]
            p = jnp.exp(self._log_probabilities(params, out, i))
            before = jnp.cumsum(p, axis=1) - p
            is_level = self._levels(i) > 0
            smaller = jnp.where(is_level, jnp.take_along_axis(before, code, 1)[:, 0], smaller)
            own = jnp.where(is_level, jnp.take_along_axis(p, code, 1)[:, 0], own)
        if "count" in self.kinds:
            count, is_count = jnp.maximum(x[:, i], 0.0), self._is("count", i)
            r, mean = self._of_count(params, out, i)
            mean = jnp.where(is_count, mean, 1.0)  # nothing to add up for other kinds
            less = count_quantiles.cumulative(r, mean, jnp.where(is_count, count - 1, -1.0))
            smaller = jnp.where(is_count, less, smaller)
            own = jnp.where(is_count, jnp.exp(self.log_mass(params, x, parents, i)), own)
        return smaller, own

    def quantile(
        self,
        params: Params,
        x: Rows,
        parents: Shaped[Array, " d"],
        i: Array,
        probability: Float[Array, " n"],
    ) -> Float[Array, " n"]:
        """The smallest value of variable `i` that is not exceeded with this probability."""
        out = self._read(params, x, parents, i)
        value = jnp.zeros_like(x[:, 0])
        if self._has_levels:
            up_to = jnp.cumsum(jnp.exp(self._log_probabilities(params, out, i)), axis=1)
            code = (probability[:, None] > up_to).sum(axis=1)
            value = jnp.minimum(code, jnp.maximum(self._levels(i) - 1, 0)).astype(x.dtype)
        if "count" in self.kinds:
            is_count, (r, mean) = self._is("count", i), self._of_count(params, out, i)
            mean = jnp.where(is_count, mean, 1.0)
            found = count_quantiles.quantile(r, mean, jnp.where(is_count, probability, 0.0))
            value = jnp.where(is_count, found, value)
        return value

    def warp(self, params: Params, x: Array, i: Array) -> Array:
        """h of variable `i`; the identity where the parameters say nothing of it."""
        if "warp" not in params:
            return x
        return jnp.where(
            params["warped"][i] != 0, warps.warped(params["warp"][i], _grid(params, i), x), x
        )

    def unwarp(self, params: Params, z: Array, i: Array) -> Array:
        """Inverse of `warp`."""
        if "warp" not in params:
            return z
        return jnp.where(
            params["warped"][i] != 0, warps.unwarped(params["warp"][i], _grid(params, i), z), z
        )

    def log_slope(self, params: Params, x: Array, i: Array) -> Array:
        """log h' of variable `i`."""
        if "warp" not in params:
            return jnp.zeros_like(x)
        slope = warps.log_slope(params["warp"][i], _grid(params, i), x)
        return jnp.where((params["warped"][i] != 0) & self.is_continuous(i), slope, 0.0)

    @property
    def _has_levels(self) -> bool:
        return any(self.num_levels)

    @property
    def _most_levels(self) -> int:
        return max(2, *self.num_levels) if self.num_levels else 2

    def _block(self, num_knots: int) -> int:
        """Features of a parent beside its line."""
        return max(num_knots, *self.num_levels) if self._has_levels else num_knots

    def _outputs(self, d: int) -> Int[np.ndarray, " d"]:
        """Numbers that come out for each node."""
        if not self.kinds:
            return np.full(d, 2)
        by_kind = {"continuous": 2, "count": 1}
        pairs = zip(self.kinds, self.num_levels, strict=True)
        return np.array([by_kind.get(kind, levels - 1) for kind, levels in pairs])

    def _is(self, kind: str, i: Array) -> Array:
        return jnp.asarray(np.array([own == kind for own in self.kinds]))[i]

    def _levels(self, i: Array) -> Array:
        return jnp.asarray(np.array(self.num_levels, dtype=np.int32))[i]

    def _codes(self, params: Params, x: Float[Array, " n"], i: Array) -> Int[Array, " n"]:
        code = jnp.round(x * params["unit"][i] + params["centre"][i]).astype(jnp.int32)
        return jnp.clip(code, 0, jnp.maximum(self._levels(i) - 1, 0))

    def _read(
        self, params: Params, x: Rows, parents: Shaped[Array, " d"], i: Array
    ) -> Float[Array, "n h"]:
        """What comes out of the features with the weights of each row's configuration."""
        d, members = x.shape[1], params["members"][i]
        present = (parents[members] != 0).astype(x.dtype)
        numbers, codes = self._inputs(params, x, members, i)
        knots = params["knots"]
        block = self._block(knots.shape[-1])
        own_knots = knots[self._by_scores(params, i), members]
        bent = jax.nn.relu(numbers[:, :, None] - own_knots[None])
        bent = jnp.pad(bent, ((0, 0), (0, 0), (0, block - bent.shape[2])))
        if self._has_levels:
            indicator = jax.nn.one_hot(codes, block, dtype=x.dtype)
            bent = jnp.where((self._levels(members) > 0)[None, :, None], indicator, bent)
        bent = (bent * present[None, :, None]).reshape(len(x), members.shape[0] * block)
        one, lines = jnp.ones_like(x[:, :1]), numbers * present[None, :]
        products = (lines[:, :, None] * lines[:, None, :]).reshape(len(x), -1)
        features = jnp.concatenate([one, lines, bent], axis=1)
        units = _hidden_units(params, features, i)
        features = jnp.concatenate([features, products, units], axis=1)
        cell = (codes * params["strides"][i][None, :]).sum(axis=1)
        outputs = jnp.asarray(self._outputs(d))[i]
        most = int(self._outputs(d).max(initial=2))
        f, h = jnp.arange(features.shape[1]), jnp.arange(max(most, 2))
        width = params["width"][i]
        place = (cell[:, None] * width + f[None, :])[:, :, None] * outputs + h[None, None, :]
        used = (f < width)[None, :, None] & (h < outputs)[None, None, :]
        pool = jnp.asarray(params["weights"])
        place = jnp.clip(params["offset"][i] + place, 0, pool.shape[0] - 1)
        weights = jnp.where(used, pool[place], 0.0)
        return jnp.einsum("nf,nfh->nh", features, weights, precision=jax.lax.Precision.HIGHEST)

    def _inputs(
        self, params: Params, x: Rows, members: Int[Array, " m"], i: Array
    ) -> tuple[Float[Array, "n m"], Int[Array, "n m"]]:
        """Numbers, and codes of levels, of the members of variable `i`; zero for the others."""
        numbers = x[:, members]
        codes = jnp.zeros(numbers.shape, jnp.int32)
        if "warp" in params:
            seen = jax.vmap(warps.warped, in_axes=(0, None, 1), out_axes=1)
            through = seen(params["warp"][members], _grid(params, i), numbers)
            numbers = jnp.where(self._by_scores(params, i) != 0, through, numbers)
        if not self.kinds:
            return numbers, codes
        centre, unit = params["centre"][members][None, :], params["unit"][members][None, :]
        if "count" in self.kinds:
            logs = (jnp.log1p(jnp.maximum(x[:, members], 0.0)) - centre) / unit
            numbers = jnp.where(self._is("count", members)[None, :], logs, numbers)
        if self._has_levels:
            levels = self._levels(members)[None, :]
            found = jnp.round(x[:, members] * unit + centre).astype(jnp.int32)
            codes = jnp.where(levels > 0, jnp.clip(found, 0, jnp.maximum(levels - 1, 0)), 0)
            numbers = jnp.where(levels > 0, 0.0, numbers)
        return numbers, codes

    def _by_scores(self, params: Params, i: Array) -> Int[Array, ""]:
        """1 where node `i` reads normal scores."""
        if "warped" not in params:
            return jnp.asarray(0)
        return (params["warped"][i] != 0).astype(jnp.int32)

    def _log_probabilities(
        self, params: Params, out: Float[Array, "n h"], i: Array
    ) -> Float[Array, "n k"]:
        """Of all levels of variable `i`; those it does not have are impossible."""
        k, n = self._most_levels, out.shape[0]
        logits = out[:, : k - 1]
        exists = jnp.arange(k) < jnp.maximum(self._levels(i), 1)
        against = jnp.concatenate([jnp.zeros((n, 1), out.dtype), logits], axis=1)
        plain = jax.nn.log_softmax(jnp.where(exists[None, :], against, -jnp.inf), axis=1)
        if "ordinal" not in self.kinds:
            return plain
        is_cut = jnp.arange(k - 1) < self._levels(i) - 1
        up_to = jnp.where(is_cut[None, :], jax.nn.sigmoid(logits), 1.0)
        above = jnp.where(is_cut[None, :], jax.nn.sigmoid(-logits), 0.0)
        ends = (jnp.zeros((n, 1), out.dtype), jnp.ones((n, 1), out.dtype))
        lower, upper = jnp.append(ends[0], up_to, axis=1), jnp.append(up_to, ends[1], axis=1)
        # The difference of the smaller tails keeps its digits.
        over, under = jnp.append(ends[1], above, axis=1), jnp.append(above, ends[0], axis=1)
        mass = jnp.where(lower > 0.5, over - under, upper - lower)
        ordered = jnp.where(exists[None, :], jnp.log(jnp.maximum(mass, _LEAST)), -jnp.inf)
        return jnp.where(params["ordered"][i] != 0, ordered, plain)

    def _of_count(
        self, params: Params, out: Float[Array, "n h"], i: Array
    ) -> tuple[Array, Float[Array, " n"]]:
        """Dispersion and mean."""
        mean = jnp.exp(jnp.clip(out[:, 0], -MOST_LOG_MEAN, MOST_LOG_MEAN))
        return jnp.exp(params["log_dispersion"][i]), mean


def _hidden_units(params: Params, features: Float[Array, "n f"], i: Array) -> Float[Array, "n u"]:
    """Of the network of node `i`; no columns where no node has one."""
    if "hidden" not in params:
        return features[:, :0]
    weights = jnp.asarray(params["hidden"])[i]
    return jnp.tanh(jnp.matmul(features, weights, precision=jax.lax.Precision.HIGHEST))


def _grid(params: Params, i: Array) -> Float[Array, " m"]:
    """Values of h at which the tables are given."""
    reach = params["reach"][i]
    return jnp.linspace(-reach, reach, params["warp"].shape[-1])


build = MixedMechanism
