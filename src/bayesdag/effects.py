"""What happens to one variable when another is set: effects, samples, counterfactuals.

Everything is computed draw by draw, so that the spread of an answer holds both kinds of
doubt: which graph is true, and which functions are. Numbers go in and come out in the
original units. Inside, rows are in engine units and float32: shifting them back only at the
end, in float64, keeps an effect on a column of years from being lost in rounding.
"""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag import graphs as graph_facts
from bayesdag import labels, tables
from bayesdag.answers import Counterfactual, Effect
from bayesdag.data import Dataset, Scaling
from bayesdag.keys import generator
from bayesdag.mechanisms.linear import Linear
from bayesdag.scm import SCM
from bayesdag.types import Array, BayesdagWarning, Draws, InputError, Key, Params, Weights

if TYPE_CHECKING:
    import pandas

ROWS_AT_ONCE = 4096  # rows times draws that are in memory together
FEW_ROWS = 50
LARGEST_ANSWER = 2**29  # numbers in one answer about counterfactuals: 2 GB


def effect(
    key: Key,
    model: SCM,
    params: Params,
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    cause: str,
    outcome: str,
    values: tuple[float, float] = (0.0, 1.0),
    given: Mapping[str, float] | None = None,
    num_rows: int = 1000,
) -> Effect:
    """E[outcome | do(cause = values[1])] - E[outcome | do(cause = values[0])], each draw.

    Both expectations use the same noise, so what does not depend on the cause cancels. In a
    linear model all rows then give the same difference and one of them is exact.

    Args:
        given: the effect among units *observed* with these values: E[Y₁ - Y₀ | Z = z]. For
            variables that the cause does not influence this is the usual conditional
            effect; for the cause itself it is the effect on those who had that value.
        num_rows: simulated rows a draw where the model is not linear.
    """
    x, y = labels.pair(names, cause, outcome)
    low, high = _two_values(cause, values)
    known, numbers = labels.assignment(names, given)
    structure = carriers(graphs, x, y)
    paths = np.flatnonzero((structure.reshape(-1) >= 0) & (weights.reshape(-1) > 0))
    differences = np.zeros(weights.size)
    if paths.size:
        chosen_graphs = graphs.reshape(-1, *graphs.shape[2:])[paths]
        rows = 1 if isinstance(model.mechanism, Linear) else num_rows
        found, sizes = _differences(
            jax.random.split(key, weights.size)[paths],
            _take(params, paths),
            chosen_graphs,
            _visits(chosen_graphs, x, y, known),
            _engine_units(model),
            rows,
            x,
            y,
            (np.array([low, high]) - model.scaling.shift[x]) / model.scaling.scale[x],
            (known, model.scaling.apply(numbers)) if known.any() else None,
        )
        _warn_of_rare(given, float(np.median(sizes)), rows)
        differences[paths] = np.asarray(found, dtype=float) * model.scaling.scale[y]
    return Effect(
        cause=cause,
        outcome=outcome,
        values=(low, high),
        given=dict(given or {}),
        draws=differences.reshape(weights.shape),
        weights=weights,
        structure=structure,
    )


def carriers(graphs: Draws, cause: int, outcome: int) -> Int[np.ndarray, "chain draw"]:
    """Number of the structure that carries the effect in each draw; -1 without a path.

    It is made of the nodes on directed paths from cause to outcome with all their parents.
    In a linear model nothing else of the graph bears on the effect.
    """
    different, index = graph_facts.unique_graphs(graphs)
    reach = graph_facts.ancestors(different)
    on_path = reach[:, cause] & reach[:, :, outcome]
    on_path[:, outcome] = reach[:, cause, outcome]
    kinds, kind = graph_facts.unique_graphs(different * on_path[:, None, :])
    numbers = np.where(kinds.any(axis=(1, 2)), np.arange(len(kinds)), -1)
    return numbers[kind][index]


def sample(
    key: Key,
    model: SCM,
    params: Params,
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    num_rows: int,
    do: Mapping[str, float] | None = None,
) -> "pandas.DataFrame":
    """Rows of the posterior predictive under do(…), each from a draw picked by its weight."""
    import pandas

    mask, numbers = labels.assignment(names, do)
    key_pick, key_rows = jax.random.split(key)
    mass = weights.reshape(-1)
    picked = generator(key_pick).choice(mass.size, size=num_rows, p=mass / mass.sum())
    scaled = _sampled(
        jax.random.split(key_rows, num_rows),
        jax.tree.map(lambda leaf: _flat(leaf), params),
        graphs.reshape(-1, *graphs.shape[2:]),
        picked,
        _engine_units(model),
        mask,
        model.scaling.apply(numbers),
    )
    rows = model.scaling.invert(np.asarray(scaled, dtype=float))
    rows[:, mask] = numbers[mask]
    return pandas.DataFrame(rows, columns=list(names))


def counterfactual(
    model: SCM,
    params: Params,
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    rows: Any,
    do: Mapping[str, float],
) -> Counterfactual:
    """The same units, had the variables in `do` been set: abduction, action, prediction.

    Args:
        rows: a table with all columns, one line a unit: the residuals of each are taken as
            they were, and only what follows from `do` changes.
    """
    values = _observed_rows(rows, names)
    if weights.size * values.size > LARGEST_ANSWER:
        raise InputError(
            f"{len(values)} rows times {weights.size} draws do not fit into memory; ask for "
            f"at most {LARGEST_ANSWER // (weights.size * len(names))} rows at a time"
        )
    mask, numbers = labels.assignment(names, do)
    scaled = _reimagined(
        jax.tree.map(_flat, params),
        graphs.reshape(-1, *graphs.shape[2:]),
        _engine_units(model),
        model.scaling.apply(values),
        mask,
        model.scaling.apply(numbers),
    )
    answers = model.scaling.invert(np.asarray(scaled, dtype=float))
    answers[:, :, mask] = numbers[mask]
    return Counterfactual(answers.reshape(*weights.shape, *values.shape), weights, tuple(names))


@partial(jax.jit, static_argnames=("model", "num_rows"))
def _differences(
    keys: Array,
    params: Params,
    graphs: Array,
    visits: Array,
    model: SCM,
    num_rows: int,
    cause: Array,
    outcome: Array,
    levels: Array,
    given: tuple[Array, Array] | None,
) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Effect in engine units for each draw, and how many rows it rests on."""
    d = graphs.shape[-1]
    do_mask = jnp.arange(d) == cause
    settings = jnp.repeat(levels.astype(jnp.float32), num_rows)[:, None] * jnp.ones((1, d))

    def one(draw: tuple[Key, Params, Array, Array]) -> tuple[Array, Array]:
        key, theta, graph, order = draw
        residuals, share = _units(key, model, theta, graph, order, num_rows, given)
        both = jnp.concatenate([residuals, residuals])
        reached = model.predict(theta, graph, both, do_mask, settings, order)[:, outcome]
        difference = ((reached[num_rows:] - reached[:num_rows]) * share).sum()
        return difference, 1 / (share**2).sum()

    batch = max(1, ROWS_AT_ONCE // num_rows)
    return jax.lax.map(one, (keys, params, graphs, visits), batch_size=batch)


def _units(
    key: Key,
    model: SCM,
    params: Params,
    graph: Array,
    order: Array,
    num_rows: int,
    given: tuple[Array, Array] | None,
) -> tuple[Array, Array]:
    """Residuals of simulated units, and the share of each, among those that are `given`.

    Likelihood weighting: the known variables are held at their values while the others are
    drawn, and each row counts by the density of the noise that those values then need.
    """
    d = graph.shape[0]
    if isinstance(model.mechanism, Linear):
        return jnp.zeros((num_rows, d)), jnp.full(num_rows, 1 / num_rows)
    residuals = model.noise.sample(params["noise"], key, (num_rows, d))
    if given is None:
        return residuals, jnp.full(num_rows, 1 / num_rows)
    known, numbers = given
    held = jnp.broadcast_to(numbers.astype(residuals.dtype)[None, :], residuals.shape)
    x = model.predict(params, graph, residuals, known, held, order)
    residuals = jnp.where(known[None, :], model.abduct(params, graph, x), residuals)
    density = model.noise.log_prob(params["noise"], residuals)
    return residuals, jax.nn.softmax(jnp.where(known[None, :], density, 0.0).sum(axis=1))


@partial(jax.jit, static_argnames=("model",))
def _sampled(
    keys: Array,
    params: Params,
    graphs: Array,
    picked: Array,
    model: SCM,
    do_mask: Array,
    do_values: Array,
) -> Float[Array, "n d"]:
    def one(row: tuple[Key, Array]) -> Array:
        key, index = row
        theta = jax.tree.map(lambda leaf: leaf[index], params)
        return model.sample(theta, key, graphs[index], 1, do_mask, do_values[None, :])[0]

    return jax.lax.map(one, (keys, picked), batch_size=256)


@partial(jax.jit, static_argnames=("model",))
def _reimagined(
    params: Params, graphs: Array, model: SCM, x: Array, do_mask: Array, do_values: Array
) -> Float[Array, "k n d"]:
    def one(draw: tuple[Params, Array]) -> Array:
        theta, graph = draw
        residuals = model.abduct(theta, graph, x)
        forced = jnp.broadcast_to(do_values[None, :], x.shape)
        return model.predict(theta, graph, residuals, do_mask, forced)

    return jax.lax.map(one, (params, graphs), batch_size=max(1, ROWS_AT_ONCE // x.shape[0]))


def _visits(
    graphs: Int[np.ndarray, "k d d"], cause: int, outcome: int, known: Bool[np.ndarray, " d"]
) -> Int[np.ndarray, "k m"]:
    """Nodes that bear on the answer, sources first, as many for each graph.

    Visiting a node twice changes nothing, so the lists are filled up with their last node.
    """
    wanted = known.copy()
    wanted[outcome] = True
    cut = graphs.copy()
    if not known.any():
        cut[:, :, cause] = 0  # what causes the cause is overruled
    needed = graph_facts.ancestors(cut)[:, :, wanted].any(axis=2) | wanted
    order = graph_facts.topological_order(cut)
    bears = np.take_along_axis(needed, order, axis=1)
    first = np.take_along_axis(order, np.argsort(~bears, axis=1, kind="stable"), axis=1)
    length = bears.sum(axis=1)
    position = np.minimum(np.arange(length.max())[None, :], length[:, None] - 1)
    return np.take_along_axis(first, position, axis=1)


def _engine_units(model: SCM) -> SCM:
    d = len(model.scaling.shift)
    return dataclasses.replace(model, scaling=Scaling(np.zeros(d), np.ones(d)))


def _flat(leaf: Array) -> np.ndarray:
    """Chains and draws as one dimension."""
    array = np.asarray(leaf)
    return array.reshape(-1, *array.shape[2:])


def _take(params: Params, which: np.ndarray) -> Params:
    return jax.tree.map(lambda leaf: _flat(leaf)[which], params)


def _two_values(cause: str, values: Sequence[float]) -> tuple[float, float]:
    if len(values) != 2 or not np.isfinite(values).all():
        raise InputError(
            f"an effect compares two values of {cause!r}, for example (0, 1), not {tuple(values)}"
        )
    return float(values[0]), float(values[1])


def _warn_of_rare(given: Mapping[str, float] | None, size: float, num_rows: int) -> None:
    if given and num_rows > 1 and size < FEW_ROWS:
        described = ", ".join(f"{name} = {value:g}" for name, value in given.items())
        warnings.warn(
            f"units with {described} are rare under this posterior: of {num_rows} simulated "
            f"rows about {size:.0f} count; raise num_rows or take less extreme values",
            BayesdagWarning,
            stacklevel=3,
        )


def _observed_rows(rows: Any, names: Sequence[str]) -> Float[np.ndarray, "n d"]:
    table = tables.frame(rows)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            f"the rows lack the column {missing[0]!r}; a counterfactual needs every variable "
            f"of the posterior: {', '.join(names)}"
        )
    try:
        values = table[list(names)].to_numpy(dtype=float)
    except (ValueError, TypeError) as error:
        raise InputError(f"the rows hold something that is not a number: {error}") from error
    return Dataset(values, tuple(names)).values
