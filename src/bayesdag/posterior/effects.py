"""Interventions: effects, samples, counterfactuals.

Everything is computed draw by draw, so that the spread of an answer holds both kinds of
uncertainty: which graph is true, and which functions are. Numbers go in and come out in the
original units of the data.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag import graphs as graph_facts
from bayesdag.data import tables
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.posterior import column_names
from bayesdag.posterior import simulation as many
from bayesdag.posterior.arguments import check_count, check_reach
from bayesdag.posterior.contexts import Contexts
from bayesdag.posterior.effect_result import Counterfactual, Effect
from bayesdag.posterior.levels import Columns, usual_levels, warn_outside_range
from bayesdag.posterior.libraries import DataFrame, data_frame
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import generator, jax_key, key_of
from bayesdag.types import DiscreteNodes, Draws, Key
from bayesdag.types.late_imports import jax

Numbers = Mapping[str, float | int]
FEW_ROWS = 50
LARGEST_ANSWER = 2**28  # numbers in one answer about counterfactuals: 2 GB


def effect(
    key: Key,
    ensemble: Ensemble,
    columns: Columns,
    cause: str,
    outcome: str,
    values: Sequence[float | int] | None = None,
    given: Numbers | None = None,
    num_rows: int = 1000,
    level: int = -1,
) -> Effect:
    """E[outcome | do(cause = values[1])] - E[outcome | do(cause = values[0])], per draw.

    Both expectations use the same noise, so what does not depend on the cause cancels. In a
    linear model all rows then give the same difference and one of them is exact. Otherwise
    only the noise of nodes between the two, and of other causes of these, is simulated; that
    of the outcome has mean 0.

    Values outside the range in which a column was seen bring a warning.

    Args:
        columns: what is known of the columns of the data.
        values: by default the usual levels of the cause.
        given: the effect among units *observed* with these values: E[Y₁ - Y₀ | Z = z]. For
            variables that the cause does not influence this is the usual conditional
            effect; for the cause itself it is the effect on those who had that value.
        num_rows: simulated rows per draw where the model is not linear.
        level: of the outcome, whose probability is compared; -1: its mean, which of a column of
            levels is the mean of its codes.
    """
    x, y = column_names.pair(ensemble.names, cause, outcome)
    check_count("num_rows", num_rows)
    levels = usual_levels(columns)[cause] if values is None else _two_values(cause, values)
    _refuse_contexts(ensemble, cause, outcome, levels, given)
    structure = carriers(ensemble.graphs, x, y)
    paths = np.flatnonzero((structure >= 0) & (ensemble.weights > 0))
    differences = np.zeros(ensemble.weights.size)
    if paths.size:
        rows = 1 if ensemble.is_linear else num_rows
        found = _differences(key, ensemble, paths, x, y, levels, given, rows, level)
        differences[paths] = found
    warn_outside_range(columns, [*((cause, level) for level in levels), *(given or {}).items()])
    return Effect(
        cause=cause,
        outcome=outcome,
        values=levels,
        given={name: float(value) for name, value in (given or {}).items()},
        draws=differences.reshape(ensemble.weights.shape),
        weights=ensemble.weights,
        structure=structure,
    )


def _differences(
    key: Key,
    ensemble: Ensemble,
    paths: Int[np.ndarray, " k"],
    cause: int,
    outcome: int,
    levels: tuple[float, float],
    given: Numbers | None,
    num_rows: int,
    level: int,
) -> Float[np.ndarray, " k"]:
    """Effects, in original units, in the draws that have a path."""
    scaling, names = ensemble.model.scaling, ensemble.names
    known, _ = _assigned(ensemble, given)
    params, graphs = ensemble.take(paths)
    contexts = None
    if ensemble.contexts and not ensemble.is_linear:
        # An environment is known or set, not more or less probable: it has no density.
        fixed = _assigned(ensemble, _of_contexts(ensemble, {names[cause]: 0, **(given or {})}))
        contexts = ensemble.context_rows(generator(key), num_rows, fixed)
        known = known & ~ensemble.contexts.mask
    scaled = np.array([_engine_units(ensemble, {names[cause]: level})[cause] for level in levels])
    run = partial(
        many.contrasts,
        model=ensemble.engine,
        num_rows=num_rows,
        cause=cause,
        outcome=outcome,
        levels=scaled,
        given=many.held(known, _engine_units(ensemble, given)),
        contexts=contexts,
        level=level,
    )
    keys = jax.random.split(jax_key(key), ensemble.weights.size)[paths]
    arguments = (keys, params, graphs, *_visits(graphs, cause, outcome))
    found, sizes = many.map_chunks(run, arguments, num_rows)
    if known.any() and given and num_rows > 1:
        _warn_of_rare(given, float(np.median(sizes)), num_rows)
    described = f"{names[cause]} from {levels[0]:g} to {levels[1]:g}"
    return _finite(found.astype(float) * scaling.scale[outcome], f"the effect of {described}")


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


def sample(key: Key, ensemble: Ensemble, num_rows: int, do: Numbers | None = None) -> DataFrame:
    """Rows of the posterior predictive under do(…), each from a draw picked by its weight."""
    scaling = ensemble.model.scaling
    check_count("num_rows", num_rows)
    mask, numbers = _assigned(ensemble, do)
    key_pick, key_rows = jax.random.split(jax_key(key))
    mass = ensemble.weights.reshape(-1)
    rng = generator(key_pick)
    picked = rng.choice(mass.size, size=num_rows, p=mass / mass.sum())
    settings = np.tile(_engine_units(ensemble, do), (num_rows, 1))
    do_mask, contexts = mask, ensemble.context_rows(rng, num_rows, (mask, numbers))
    if contexts is not None:
        do_mask, settings = mask | contexts[0], np.where(contexts[0], contexts[1], settings)
    run = partial(many.one_row_each, model=ensemble.engine, do_mask=do_mask)
    arguments = (jax.random.split(key_rows, num_rows), *ensemble.take(picked), settings)
    rows = _finite(many.map_chunks(run, arguments).astype(float), f"a sample with {_listing(do)}")
    rows = scaling.invert(rows)
    rows[:, mask] = numbers[mask]
    if ensemble.contexts:
        rows[:, ensemble.contexts.mask] = np.round(rows[:, ensemble.contexts.mask])
    return data_frame(rows, ensemble.names)


def counterfactual(ensemble: Ensemble, rows: object, do: Numbers) -> Counterfactual:
    """The same units, had the variables in `do` been set: abduction, action, prediction.

    Args:
        rows: a table with all columns, one line per unit: the residuals of each are taken as
            they were, and only what follows from `do` changes.

    What a level would have been is not identified by any data, only its distribution is: ordered
    levels and counts keep their place between the thresholds, levels without an order are tied
    by the Gumbel-max trick.
    """
    names, scaling, num_draws = ensemble.names, ensemble.model.scaling, ensemble.weights.size
    values = _observed_rows(rows, names, ensemble.contexts)
    if num_draws * values.size > LARGEST_ANSWER:
        raise InputError(
            f"{len(values)} rows times {num_draws} draws do not fit into memory; ask for at "
            f"most {LARGEST_ANSWER // (num_draws * len(names))} rows at a time"
        )
    mask, numbers = _assigned(ensemble, do)
    run = partial(
        many.counterfactual_rows,
        model=ensemble.engine,
        x=scaling.apply(values).astype(np.float32),
        do_mask=mask,
        do_values=_engine_units(ensemble, do),
    )
    keys = jax.random.split(jax_key(key_of(0)), num_draws)
    scaled = many.map_chunks(run, (keys, *ensemble.take(np.arange(num_draws))), len(values))
    scaled = _finite(scaled.astype(float), f"a counterfactual with {_listing(do)}")
    answers = scaling.invert(scaled)
    answers[:, :, mask] = numbers[mask]
    shape = (*ensemble.weights.shape, *values.shape)
    chosen = _discrete_followers(ensemble, mask)
    return Counterfactual(answers.reshape(shape), ensemble.weights, names, chosen)


def _discrete_followers(ensemble: Ensemble, mask: Bool[np.ndarray, " d"]) -> tuple[str, ...]:
    """Levels and counts that follow, in some draw, from what is set."""
    mechanism = ensemble.model.mechanism
    if not isinstance(mechanism, DiscreteNodes):
        return ()
    reach = graph_facts.ancestors(graph_facts.unique_graphs(ensemble.graphs)[0])
    follow = np.flatnonzero(reach[:, mask].any(axis=(0, 1)) & ~mask).tolist()
    return tuple(ensemble.names[j] for j in follow if not mechanism.is_continuous(np.array(j)))


def _assigned(
    ensemble: Ensemble, values: Numbers | None
) -> tuple[Bool[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Mask and values of the variables that are set; refused where they would overflow."""
    mask, numbers = column_names.assignment(ensemble.names, values)
    if ensemble.contexts:
        mask, numbers = ensemble.contexts.complete(ensemble.names, mask, numbers)
    check_reach(ensemble.names, ensemble.model.scaling, mask, numbers)
    return mask, numbers


def _of_contexts(ensemble: Ensemble, values: Numbers) -> dict[str, float | int]:
    """The part of an assignment that names context variables."""
    assert ensemble.contexts is not None
    start = int((~ensemble.contexts.mask).sum())
    return {k: v for k, v in values.items() if ensemble.names.index(k) >= start}


def _refuse_contexts(
    ensemble: Ensemble,
    cause: str,
    outcome: str,
    levels: tuple[float, float],
    given: Numbers | None,
) -> None:
    """Refuses what cannot be asked of environments: what acts on them, and half of one."""
    if not ensemble.contexts:
        return
    names, mask = ensemble.names, ensemble.contexts.mask
    if mask[names.index(outcome)]:
        raise InputError(
            f"{outcome!r} is an environment, on which nothing acts; ask what it does to a variable"
        )
    if mask[names.index(cause)]:
        for level in levels:
            _assigned(ensemble, {cause: level})
        own = _assigned(ensemble, {cause: 0})[0]
        for name in given or {}:
            if own[column_names.node(names, name)]:
                raise InputError(
                    f"{name!r} and {cause!r} are environments of one column; leave {name!r} out"
                )


def _visits(
    graphs: Int[np.ndarray, "k d d"], cause: int, outcome: int
) -> tuple[Int[np.ndarray, "k d"], Int[np.ndarray, "k d"]]:
    """Nodes that bear on the outcome: those that the cause does not reach, and the others.

    Each sources first and filled up with -1. What is beside the point, or only a cause of
    the cause, is not among them.
    """
    cut = graphs.copy()
    cut[:, :, cause] = 0
    reach = graph_facts.ancestors(cut)
    bears, follows = reach[:, :, outcome], reach[:, cause]
    bears[:, outcome] = follows[:, cause] = True
    order = graph_facts.topological_order(cut)
    return _listed(order, bears & ~follows), _listed(order, bears & follows)


def _listed(
    order: Int[np.ndarray, "k d"], chosen: Bool[np.ndarray, "k d"]
) -> Int[np.ndarray, "k d"]:
    """The chosen nodes in their order, then -1."""
    absent = ~np.take_along_axis(chosen, order, axis=1)
    first = np.argsort(absent, axis=1, kind="stable")
    return np.take_along_axis(np.where(absent, -1, order), first, axis=1)


def _two_values(cause: str, values: Sequence[float | int]) -> tuple[float, float]:
    if len(values) != 2 or not np.isfinite(values).all():
        raise InputError(
            f"an effect compares two values of {cause!r}, for example (0, 1), not {tuple(values)}"
        )
    return float(values[0]), float(values[1])


def _engine_units(ensemble: Ensemble, values: Numbers | None) -> Float[np.ndarray, " d"]:
    """An assignment as the compiled functions take it: scaled, in single precision."""
    mask, numbers = _assigned(ensemble, values)
    return np.where(mask, ensemble.model.scaling.apply(numbers), 0.0).astype(np.float32)


def _finite(answer: np.ndarray, described: str) -> np.ndarray:
    if not np.isfinite(answer).all():
        raise InputError(f"{described} overflows; give values nearer to the data")
    return answer


def _listing(values: Numbers | None) -> str:
    """Assignments in words."""
    return (
        ", ".join(f"{name} = {value:g}" for name, value in (values or {}).items()) or "nothing set"
    )


def _warn_of_rare(given: Numbers, size: float, num_rows: int) -> None:
    if size < FEW_ROWS:
        warnings.warn(
            f"units with {_listing(given)} are rare under this posterior: of {num_rows} simulated "
            f"rows about {size:.0f} count; raise num_rows or take less extreme values",
            BayesdagWarning,
            stacklevel=4,
        )


def _observed_rows(
    rows: object, names: Sequence[str], contexts: Contexts | None
) -> Float[np.ndarray, "n d"]:
    table = tables.frame(rows)
    table = contexts.encoded(table) if contexts else table
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            f"the rows lack the column {missing[0]!r}; a counterfactual needs every variable "
            f"of the posterior: {', '.join(names)}"
        )
    try:
        values = np.asarray(table[list(names)], dtype=float)
    except (ValueError, TypeError) as error:
        raise InputError(f"the rows hold something that is not a number: {error}") from error
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        name = names[int(column)]
        raise InputError(f"{name!r} is missing or infinite in row {row + 1}; fill it in")
    return values
