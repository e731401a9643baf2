"""Whether the model fits the rows it was fitted to, or its answers should not be trusted.

What draws of the posterior leave unexplained of the data must look like the stated noise and
must not depend on any variable that is not a descendant. The misfit of each variable is measured
in nats per row and averaged over draws (see `misfit`). Where it is large, the functions or the
noise are of the wrong kind, an edge is missing or reversed, or a cause is hidden.

The rule: a misfit counts when it exceeds 0.01 nats per row by more than its standard error, and
when over all rows it adds up to more than log(k / 0.05) nats, the evidence that chance alone
would reach in at most about one of twenty tables, with k things checked in each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from bayesdag import graphs as graph_facts
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.scm import SCM
from bayesdag.posterior import misfit
from bayesdag.posterior import simulation as many
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import generator
from bayesdag.types import Array, Heteroscedastic, Key, Params

if TYPE_CHECKING:
    import pandas

NUM_DRAWS = 100
MOST_ROWS = 1000
FEWEST_ROWS = 20
MOST_PRODUCTS = 4_000_000_000  # rows times draws times pairs of variables: about a second
MATTERS = 0.01  # nats per row
FALSE_ALARMS = 0.05  # tables with a warning although the model is right
SAFE = 1e-6  # probabilities are kept so far from 0 and 1

NEURAL = "method 'collapsed' with preset 'neural'"


@dataclass(frozen=True)
class VariableCheck:
    """How the residuals of one variable differ from what the model says of them.

    Attributes:
        variable: its name.
        num_rows: rows that were looked at; cells set by an experimenter have no residual.
        shape: nats per row that another noise distribution would gain.
        shape_error: its standard error.
        dependence: nats per row that the suspect would gain, if residuals might depend on it.
        dependence_error: its standard error.
        suspect: the non-descendant that says most about the residuals.
        is_parent: probability that the suspect is a direct cause.
        of_spread: whether it says something of their size, rather than of their mean.
        moments: mean, standard deviation, skewness and excess kurtosis of the residuals' normal
            scores; 0, 1, 0 and 0 when the noise is the stated one.
    """

    variable: str
    num_rows: int
    shape: float = 0.0
    shape_error: float = 0.0
    dependence: float = 0.0
    dependence_error: float = 0.0
    suspect: str | None = None
    is_parent: float = 0.0
    of_spread: bool = False
    moments: tuple[float, ...] = (0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, repr=False)
class Check:
    """How well the model fits, variable by variable.

    Attributes:
        variables: what was found of each.
        linear: whether the functions of the model are linear.
        fixed_spread: whether the size of the noise is the same for all rows.
        gaussian: whether the noise is Gaussian.
    """

    variables: tuple[VariableCheck, ...]
    linear: bool
    fixed_spread: bool
    gaussian: bool

    def __repr__(self) -> str:
        return f"<Check of {len(self.variables)} variables: {self.headline}>"

    @property
    def warnings(self) -> list[str]:
        """What should not be trusted, in words; empty when the model fits."""
        return [
            f"{one.variable}: {words}." for one in self.variables for words in self._misfits(one)
        ]

    @property
    def passed(self) -> bool:
        """Whether no misfit was found."""
        return not self.warnings

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        wrong = [one.variable for one in self.variables if self._misfits(one)]
        if wrong:
            return (
                f"the model does not fit {', '.join(wrong)}: do not trust edges, directions and "
                "effects that involve them"
            )
        few = [one.variable for one in self.variables if one.num_rows < FEWEST_ROWS]
        if len(few) == len(self.variables):
            return f"not checked: fewer than {FEWEST_ROWS} rows"
        unchecked = f" ({', '.join(few)}: too few rows to check)" if few else ""
        return f"nothing contradicts the model{unchecked}"

    def lines(self) -> list[str]:
        """The verdict, and each misfit with its likely reason."""
        return [f"fit: {self.headline}", *(f"  {words}" for words in self.warnings)]

    def verdict(self, variable: str) -> str:
        """A few words about one variable."""
        one = next(v for v in self.variables if v.variable == variable)
        if one.num_rows < FEWEST_ROWS:
            return f"not checked: {one.num_rows} rows"
        kinds = {
            "noise of another shape": self._counts(one, one.shape, one.shape_error),
            f"residuals depend on {one.suspect}": self._counts(
                one, one.dependence, one.dependence_error
            ),
        }
        return "; ".join(words for words, found in kinds.items() if found) or "no misfit found"

    def table(self) -> "pandas.DataFrame":
        """Misfit of every variable in nats per row, with standard errors, and the verdict."""
        import pandas

        columns = ("variable", "shape", "shape_error", "dependence", "dependence_error")
        found = {name: [getattr(one, name) for one in self.variables] for name in columns}
        return pandas.DataFrame(
            {**found, "verdict": [self.verdict(one.variable) for one in self.variables]}
        )

    def summary(self) -> dict[str, Any]:
        """The whole as plain data, from which `from_summary` makes it again."""
        return {
            "passed": self.passed,
            "verdict": self.headline,
            "warnings": self.warnings,
            "linear": self.linear,
            "fixed_spread": self.fixed_spread,
            "gaussian": self.gaussian,
            "variables": [
                asdict(one) | {"moments": list(one.moments), "verdict": self.verdict(one.variable)}
                for one in self.variables
            ],
        }

    def _counts(self, one: VariableCheck, gain: float, error: float) -> bool:
        evidence = np.log(2 * len(self.variables) / FALSE_ALARMS)
        return bool(gain - error > MATTERS and gain * one.num_rows > evidence)

    def _misfits(self, one: VariableCheck) -> list[str]:
        found = []
        if self._counts(one, one.dependence, one.dependence_error):
            found.append(self._dependence_in_words(one))
        if self._counts(one, one.shape, one.shape_error):
            found.append(
                f"residuals {_shape_in_words(one)} (another noise would gain {one.shape:.2f} ± "
                f"{one.shape_error:.2f} nats per row); {self._remedy_of_shape()}"
            )
        return found

    def _dependence_in_words(self, one: VariableCheck) -> str:
        what = "the size of residuals depends" if one.of_spread else "residuals depend"
        size = f"{one.dependence:.2f} ± {one.dependence_error:.2f} nats per row"
        return f"{what} on {one.suspect} ({size}); {self._remedy_of_dependence(one)}"

    def _remedy_of_dependence(self, one: VariableCheck) -> str:
        if one.is_parent <= 0.5:
            return "an edge is missing or reversed, or a common cause is hidden"
        if one.of_spread and self.fixed_spread:
            return f"the noise is heteroscedastic: {NEURAL} allows for it"
        if self.linear:
            return f"the function is not linear, or the edge is reversed: try {NEURAL}"
        return "the learned function misses it: the edge may be reversed, or a cause hidden"

    def _remedy_of_shape(self) -> str:
        if self.gaussian:
            return (
                f"transform the column, look for outliers and for mixed groups, or try {NEURAL}, "
                "whose noise may be skewed and heavy-tailed"
            )
        return "transform the column, or look for outliers and for mixed groups of rows"


def from_summary(told: Mapping[str, Any]) -> Check:
    """The check that a result keeps in its provenance."""
    kept = {name: told[name] for name in ("linear", "fixed_spread", "gaussian")}
    variables = [{k: v for k, v in one.items() if k != "verdict"} for one in told["variables"]]
    return Check(
        tuple(VariableCheck(**one | {"moments": tuple(one["moments"])}) for one in variables),
        **kept,
    )


def averaged(checks: Sequence[Check], weights: Sequence[float]) -> Check:
    """The check of runs with the same model and data, put together.

    Misfits are averages over draws, so those of all draws are weighted averages; errors stem
    from the rows, which are the same in all runs, and are averaged too.
    """
    share = np.array(weights) / np.sum(weights)
    variables = []
    for runs in zip(*(check.variables for check in checks), strict=True):
        worst = max(runs, key=lambda one: one.dependence)
        numbers = ("shape", "shape_error", "dependence", "dependence_error")
        mean = {name: float(share @ [getattr(one, name) for one in runs]) for name in numbers}
        moments = tuple((share @ np.array([one.moments for one in runs])).tolist())
        variables.append(VariableCheck(**asdict(worst) | mean | {"moments": moments}))
    first = checks[0]
    return Check(tuple(variables), first.linear, first.fixed_spread, first.gaussian)


def check(key: Key, ensemble: Ensemble, data: Dataset) -> Check:
    """Compares residuals of `data` with the stated noise, in up to 100 draws.

    Cells set by an experimenter have no residual and are left out.
    """
    if data.names != ensemble.names:
        raise InputError(
            f"the data have the columns {', '.join(data.names)} and the posterior has "
            f"{', '.join(ensemble.names)}; pass the data that were fitted"
        )
    rng = generator(key)
    num_draws, rows = _size(rng, data)
    mass = ensemble.weights.reshape(-1)
    params, graphs = ensemble.take(rng.choice(mass.size, size=num_draws, p=mass / mass.sum()))
    x = ensemble.model.scaling.apply(data.values)[rows]
    u = _uniforms(ensemble.engine, params, graphs, x)
    # Entry [s, k, j]: k does not follow from j in draw s, so the noise of j must not show in it.
    allowed = ~graph_facts.ancestors(graphs).swapaxes(1, 2) & ~np.eye(x.shape[1], dtype=bool)
    groups = np.stack([misfit.similar_rows(column) for column in x.T])
    folds, observed = misfit.random_folds(rng, len(rows)), data.observed[rows]
    variables = []
    for j, name in enumerate(data.names):
        seen = np.flatnonzero(observed[:, j])
        one = partial(_check_variable, name, u[:, seen, j], groups[:, seen], allowed[:, :, j])
        variables.append(one(graphs[:, :, j].mean(axis=0), data.names, folds[seen]))
    model = ensemble.model
    return Check(
        tuple(variables),
        linear=ensemble.is_linear,
        fixed_spread=not isinstance(model.mechanism, Heteroscedastic),
        gaussian=type(model.noise).__name__ == "Gaussian",
    )


def _check_variable(
    name: str,
    u: Float[np.ndarray, "s n"],
    groups: np.ndarray,
    allowed: np.ndarray,
    parents: Float[np.ndarray, " d"],
    names: tuple[str, ...],
    folds: np.ndarray,
) -> VariableCheck:
    num_rows = u.shape[1]
    if num_rows < FEWEST_ROWS:
        return VariableCheck(name, num_rows)
    shape = misfit.shape_gain(u, folds)
    found = misfit.dependence(u, groups, allowed, folds)
    told = VariableCheck(name, num_rows, shape.value, shape.error, moments=_normal_moments(u))
    if found is None:
        return told
    return VariableCheck(
        **asdict(told)
        | {
            "dependence": found.gain.value,
            "dependence_error": found.gain.error,
            "suspect": names[found.suspect],
            "is_parent": float(parents[found.suspect]),
            "of_spread": found.spread,
        }
    )


def _shape_in_words(one: VariableCheck) -> str:
    """Names the moment that is furthest off by its sampling error under the model."""
    mean, spread, skewness, kurtosis = one.moments
    off = {
        f"have mean {mean:.2f} instead of 0": abs(mean),
        f"have {spread:.2f} times the stated standard deviation": abs(np.log(spread)) * 2**0.5,
        f"are skewed ({skewness:+.1f}) beyond the stated noise": abs(skewness) / 6**0.5,
        (
            f"have heavier tails than the stated noise (excess kurtosis {kurtosis:+.1f})"
            if kurtosis > 0
            else f"are flatter than the stated noise or have two peaks (excess kurtosis "
            f"{kurtosis:+.1f})"
        ): abs(kurtosis) / 24**0.5,
    }
    return max(off, key=lambda words: off[words])


def _normal_moments(u: Float[np.ndarray, "s n"]) -> tuple[float, ...]:
    """Moments of normal scores, averaged over draws."""
    z = ndtri(u)
    centred = z - z.mean(axis=1, keepdims=True)
    spread = np.maximum(centred.std(axis=1), SAFE)
    standard = centred / spread[:, None]
    by_draw = (z.mean(axis=1), spread, (standard**3).mean(axis=1), (standard**4).mean(axis=1) - 3)
    return tuple(float(values.mean()) for values in by_draw)


def _size(rng: np.random.Generator, data: Dataset) -> tuple[int, np.ndarray]:
    """How many draws and which rows: all the work takes about a second."""
    n, d = data.num_rows, data.num_variables
    num_rows = min(n, MOST_ROWS)
    num_draws = int(np.clip(MOST_PRODUCTS // (num_rows * d**2 * 6), 10, NUM_DRAWS))
    if num_rows == n:
        return num_draws, np.arange(n)
    return num_draws, np.sort(rng.choice(n, size=num_rows, replace=False))


def _uniforms(
    model: SCM, params: Params, graphs: np.ndarray, x: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "s n d"]:
    """Probability of a smaller residual, per draw, row and variable."""
    # Copies fill the rows up to a power of two, so that few shapes are ever compiled.
    padded = 1 << max(6, (len(x) - 1).bit_length())
    filled = np.float32(x[np.minimum(np.arange(padded), len(x) - 1)])
    run = partial(_probability_transform, model=model, x=filled)
    u = many.map_chunks(run, (params, graphs), padded)[:, : len(x)]
    return np.clip(np.nan_to_num(u.astype(float), nan=0.0), SAFE, 1 - SAFE)


@partial(jax.jit, static_argnames=("model",))
def _probability_transform(
    params: Params, graphs: Array, *, model: SCM, x: Array
) -> Float[Array, "k n d"]:
    # Dense around zero and 100 deviations wide: from the narrowest noise to the heaviest tail.
    steps = jnp.sinh(jnp.linspace(-9.9, 9.9, 513))[:, None] / 100

    def one(draw: tuple[Params, Array]) -> Array:
        residual = model.abduct(*draw, x)
        size = jnp.maximum(jnp.sqrt((residual**2).mean(axis=0)), 1e-6)
        grid = steps * size[None, :]
        density = jnp.exp(model.noise.log_prob(draw[0]["noise"], grid))
        mass = (density[1:] + density[:-1]) / 2 * jnp.diff(grid, axis=0)
        below = jnp.concatenate([jnp.zeros_like(mass[:1]), jnp.cumsum(mass, axis=0)])
        place = jax.vmap(jnp.interp, in_axes=1, out_axes=1)
        return place(residual, grid, below / below[-1:])

    return jax.lax.map(one, (params, graphs))
