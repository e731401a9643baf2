"""Posterior predictive checks of the model against the rows it was fitted to.

What draws of the posterior leave unexplained of the data must look like the stated noise and
must not depend on any variable that is not a descendant. The misfit of each variable is measured
in nats per row and averaged over draws (see `misfit`). Where it is large, the functions or the
noise are of the wrong kind, an edge is missing or reversed, or a cause is hidden.
"""

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from bayesdag import graphs as graph_facts
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import linear_gaussian, misfit, serial_dependence
from bayesdag.posterior import simulation as many
from bayesdag.posterior.check_result import FEWEST_ROWS, Check, VariableCheck
from bayesdag.posterior.libraries import jnp, lax, special
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import generator, words_of
from bayesdag.runs.trees import leaves, map_leaves
from bayesdag.types import Array, Facts, Heteroscedastic, Key, Params
from bayesdag.types.late_imports import compiled, jax

NUM_DRAWS = (10, 50)  # fewest and most
LEAST_ROWS, MOST_ROWS = 300, 1000
MOST_CELLS = 400_000  # draws times rows times variables: half a second
COMMON = 0.1  # of the draws must share an assumption for it to be judged
SAFE = np.float32(1e-6)  # probabilities are kept so far from 0 and 1


def refuse_other_data(provenance: Facts, summary: Facts, data: Dataset) -> None:
    """Raises InputError unless these are the data that were fitted, interventions included."""
    if provenance.get("data_hash", data.hash) == data.hash:
        return
    were_set = summary.get("num_rows_with_interventions", 0)
    hint = " with the same interventions" if were_set and not data.has_interventions else ""
    if summary.get("environments") and not data.environment:
        columns = ", ".join(str(one["column"]) for one in summary["environments"])
        hint = f" with its environments ({columns})"
    raise InputError(
        f"these are not the data of this posterior; pass the table it was fitted to{hint}"
    )


def check(key: Key, ensemble: Ensemble, data: Dataset) -> Check:
    """Compares residuals of `data` with the stated noise, in up to 50 draws.

    Cells set by an experimenter have no residual and are left out. A method that looks at the
    check of its draws and leaves them as they are spares the next one who asks the work.
    """
    asked, drawn = (*words_of(key), data.hash), [ensemble.graphs, *leaves(ensemble.params)]
    for last in _last:
        if last.asked == asked and last.is_of(drawn):
            return last.found
    found = _checked(key, ensemble, data)
    with suppress(TypeError):  # not every array can be referred to weakly
        _last.append(_Last(asked, [weakref.ref(leaf) for leaf in drawn], found))
    return found


class _Last(NamedTuple):
    """A check of draws whose arrays are the same objects; the draws themselves are not kept."""

    asked: tuple[object, ...]
    drawn: list[Callable[[], object]]
    found: Check

    def is_of(self, drawn: Sequence[object]) -> bool:
        """Whether these are the arrays that were checked."""
        same = (known() is leaf for known, leaf in zip(self.drawn, drawn, strict=False))
        return len(drawn) == len(self.drawn) and all(same)


# Of draws that somebody may still ask about.
_last: deque[_Last] = deque(maxlen=8)


def _checked(key: Key, ensemble: Ensemble, data: Dataset) -> Check:
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
    u[:, :, data.contexts] = 0.5  # environments have no noise that others could depend on
    repetition = _repetition(ensemble.engine, params, graphs, u, data, rows)
    model, observed = ensemble.model, data.observed[rows]
    checks = [
        Check(
            _check_variables(data.names, x, u[which], graphs[which], observed, data.contexts),
            linear=ensemble.is_linear,
            fixed_spread=not isinstance(model.mechanism, Heteroscedastic),
            gaussian=isinstance(model.noise, Gaussian),
            repetition=repetition,
        )
        for which in _noise_hypotheses(params)
    ]
    return min(checks, key=lambda found: found.total)


def _repetition(
    model: SCM,
    params: Params,
    graphs: Int8[np.ndarray, "s d d"],
    u: Float[np.ndarray, "s n d"],
    data: Dataset,
    rows: Int[np.ndarray, " n"],
) -> float:
    """Rows per independent row, in the order of the table; `u` are those of shuffled rows."""
    in_time = serial_dependence.is_in_time(data.values, data.names)
    if serial_dependence.is_sorted(data.values) and not in_time:
        return 1.0
    blocks = serial_dependence.blocks_of(data.values, data.names)
    if len(rows) == data.num_rows:
        in_order = np.argsort(rows)
        return serial_dependence.rows_per_independent_row(
            u[:, in_order], data.observed, data.scaled, blocks
        )
    few = slice(0, NUM_DRAWS[0])
    block = data.scaled[: len(rows)]
    own = _uniforms(model, map_leaves(lambda leaf: leaf[few], params), graphs[few], block)
    own[:, :, data.contexts] = 0.5
    num = len(rows)
    return serial_dependence.rows_per_independent_row(own, data.observed[:num], block, blocks[:num])


def _noise_hypotheses(params: Params) -> list[Int[np.ndarray, " k"]]:
    """Draws that assume the same of the noise; assumptions of few draws are left out.

    A posterior averaged over noise models holds draws under wrong ones on purpose: the model
    fits when one of them does. In a draw that leaves a part of the noise model out, its
    parameters are zero.
    """
    parts = [*params["noise"].values()]
    parts += [leaf for name, leaf in params["mechanism"].items() if name.startswith("scale_")]
    used = np.stack([np.asarray(leaf).reshape(len(leaf), -1).any(axis=1) for leaf in parts])
    _, label, size = np.unique(used, axis=1, return_inverse=True, return_counts=True)
    common = np.flatnonzero(size >= COMMON * used.shape[1])
    return [np.flatnonzero(label.reshape(-1) == number) for number in common]


def _check_variables(
    names: tuple[str, ...],
    x: Float[np.ndarray, "n d"],
    u: Float[np.ndarray, "s n d"],
    graphs: Int8[np.ndarray, "s d d"],
    observed: Bool[np.ndarray, "n d"],
    contexts: Bool[np.ndarray, " d"],
) -> tuple[VariableCheck, ...]:
    reasons = misfit.reasons_of(x, u)
    # What does not follow from a variable must not show its noise: entry [s, j, k].
    allowed = ~graph_facts.ancestors(graphs) & ~np.eye(len(names), dtype=bool)
    parents = graphs.mean(axis=0)
    return tuple(
        _check_variable(
            name, names, parents[:, j], u[:, :, j], reasons, allowed[:, j], observed[:, j], contexts
        )
        for j, name in enumerate(names)
        if not contexts[j]
    )


def _check_variable(
    name: str,
    names: tuple[str, ...],
    parents: Float[np.ndarray, " d"],
    u: Float[np.ndarray, "s n"],
    reasons: misfit.Reasons,
    allowed: Bool[np.ndarray, "s d"],
    observed: Bool[np.ndarray, " n"],
    contexts: Bool[np.ndarray, " d"],
) -> VariableCheck:
    seen, folds = np.flatnonzero(observed), misfit.folds_of(len(observed))
    if len(seen) < FEWEST_ROWS:
        return VariableCheck(name, len(seen))
    shape = misfit.shape_gain(u[:, seen], folds[seen])
    moments = _normal_moments(u[:, seen])
    checked = VariableCheck(name, len(seen), shape.value, shape.error, moments=moments)
    found = misfit.dependence(u, reasons, allowed, folds, seen)
    if found is None:
        return checked
    return replace(
        checked,
        dependence=found.gain.value,
        dependence_error=found.gain.error,
        suspect=names[found.suspect],
        is_parent=float(parents[found.suspect]),
        on_residual=found.on_residual,
        of_spread=found.spread,
        is_context=bool(contexts[found.suspect]),
    )


def _normal_moments(u: Float[np.ndarray, "s n"]) -> tuple[float, ...]:
    """Moments of normal scores, averaged over a few draws."""
    z = special.ndtri(u[: NUM_DRAWS[0]].astype(float))
    centred = z - z.mean(axis=1, keepdims=True)
    spread = np.maximum(centred.std(axis=1), SAFE)
    standard = centred / spread[:, None]
    by_draw = (z.mean(axis=1), spread, (standard**3).mean(axis=1), (standard**4).mean(axis=1) - 3)
    return tuple(float(values.mean()) for values in by_draw)


def _size(rng: np.random.Generator, data: Dataset) -> tuple[int, np.ndarray]:
    """Number of draws, and shuffled rows: the work is bounded, draws are spared first."""
    n, d = data.num_rows, data.num_variables
    num_draws = int(np.clip(MOST_CELLS // (min(n, MOST_ROWS) * d), *NUM_DRAWS))
    num_rows = int(np.clip(MOST_CELLS // (num_draws * d), LEAST_ROWS, MOST_ROWS))
    return num_draws, rng.permutation(n)[:num_rows]


def _uniforms(
    model: SCM, params: Params, graphs: np.ndarray, x: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "s n d"]:
    """Probability of a smaller residual, per draw, row and variable."""
    if linear_gaussian.applies(model):
        u = linear_gaussian.probability_transform(params, graphs, x).astype(np.float32)
    else:
        # Copies fill the rows up to a power of two, so that few shapes are ever compiled.
        padded = 1 << max(6, (len(x) - 1).bit_length())
        filled = x[np.minimum(np.arange(padded), len(x) - 1)].astype(np.float32)
        run = partial(_probability_transform, model=model, x=filled)
        u = many.map_chunks(run, (params, graphs), padded)[:, : len(x)]
    return np.clip(np.nan_to_num(u, nan=0.0), SAFE, np.float32(1 - SAFE))


@compiled("model")
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

    return lax.map(one, (params, graphs))
