"""Experimental design: the variable to set next, to learn about graph, edge or effect.

For every candidate, draws from the posterior take turns in being the truth: each simulates
the rows of an experiment, and `information_gain` estimates what they would teach on
average: the fall in entropy of a discrete question (in nats), or half the logarithm of the
fall in variance of an effect. Bounds from both sides say how far the draws can know it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.model.scm import SCM
from bayesdag.posterior import column_names, estimates, information_gain
from bayesdag.posterior import simulation as many
from bayesdag.posterior.arguments import check_count
from bayesdag.posterior.effect_result import Effect
from bayesdag.posterior.information_gain import NO_UNCERTAINTY, Gain, Hypotheses
from bayesdag.posterior.libraries import (
    DataFrame,
    column,
    data_frame,
    jnp,
    lax,
    rows_in_order,
)
from bayesdag.posterior.simulation import Ensemble
from bayesdag.random import jax_key
from bayesdag.types import Array, Key, Params
from bayesdag.types.late_imports import compiled, jax

About = Effect | Sequence[str] | None
Levels = Mapping[str, Sequence[float | int]]
NOTHING = "(only observe)"
FAR_APART = 0.25  # of the entropy, or of the variance


def next_experiment(
    key: Key,
    ensemble: Ensemble,
    levels: Levels,
    *,
    about: About = None,
    candidates: Sequence[str] | None = None,
    cost: Mapping[str, float | int] | None = None,
    num_rows: int = 10,
    num_draws: int = 1000,
    num_experiments: int = 64,
) -> DataFrame:
    """Single-variable interventions, best first by expected gain per cost.

    Only observing as many rows stands among them for comparison. `low` and `high` bound the
    expected gain, which is in nats; `error` is its Monte-Carlo standard error; `fraction
    removed` is that of the entropy of the graph or edge, or of the variance of the effect.

    Args:
        levels: values to which each variable is set, in turn over the rows.
        about: None for the graph, (source, target) for an edge, or an `Effect` of the same
            posterior.
        candidates: columns that can be set; by default all but environments. Planned rows
            come from the reference environments.
        cost: of each candidate, 1 unless given; gains are compared per cost.
        num_rows: rows of the planned experiment.
        num_draws: draws that are compared, at most; the more, the closer the bounds.
        num_experiments: simulated experiments per candidate; the more, the smaller the error.
    """
    for setting, value in [("num_rows", num_rows), ("num_experiments", num_experiments)]:
        check_count(setting, value)
    check_count("num_draws", num_draws, least=2)
    names = ensemble.names
    chosen = _variables(ensemble) if candidates is None else list(candidates)
    _refuse_environments(ensemble, chosen)
    nodes = [column_names.node(names, name) for name in chosen]
    prices = [_price(name, cost) for name in [*chosen, NOTHING]]
    _refuse_unknown(names, cost)
    _refuse_too_few(num_rows=(num_rows, 1), num_draws=(num_draws, 2))
    _refuse_too_few(num_experiments=(num_experiments, 2))
    which, hypotheses = _hypotheses(ensemble, about, num_draws, num_experiments)
    answers = _question(ensemble, about).reshape(-1)[which]
    own = _own_functions(ensemble, about, which)
    found: list[Gain] = []
    for node in [*nodes, None]:
        plan = _plan(ensemble, node, levels, num_rows)
        terms = partial(_log_terms, key, ensemble, which, hypotheses.truths, *plan)
        found.append(_gain(terms, hypotheses, answers, own))
    _warn_if_far_apart([*chosen, NOTHING], found, answers, hypotheses, ensemble.weights.size)
    return _ranked([*chosen, NOTHING], found, prices)


def _ranked(labels: Sequence[str], found: Sequence[Gain], prices: Sequence[float]) -> DataFrame:
    table = data_frame(
        {
            "set": labels,
            "gain": [gain.value for gain in found],
            "low": [gain.low for gain in found],
            "high": [gain.high for gain in found],
            "error": [gain.error for gain in found],
            "fraction removed": [gain.fraction for gain in found],
            "cost": prices,
        }
    )
    table["gain per cost"] = table["gain"] / table["cost"]
    per_cost = column(table, "gain per cost")
    return rows_in_order(table, np.argsort(-np.round(per_cost, 12), kind="stable"))


def _gain(
    terms: Callable[[], Float[np.ndarray, "e s d"]],
    hypotheses: Hypotheses,
    answers: Shaped[np.ndarray, " s"],
    own: Bool[np.ndarray, "s d"],
) -> Gain:
    """Expected gain of one experiment; nothing is simulated where nothing is uncertain."""
    if answers.dtype.kind == "f":
        if np.ptp(answers) <= NO_UNCERTAINTY * np.abs(answers).max():
            return Gain(0.0, 0.0, 0.0, 0.0, 0.0)
        return information_gain.variance_gain(terms(), hypotheses, answers, own)
    entropy = information_gain.entropy(answers, hypotheses.weights)
    if entropy < NO_UNCERTAINTY:
        return Gain(0.0, 0.0, 0.0, 0.0, 0.0)
    return information_gain.entropy_gain(terms(), hypotheses, answers, entropy)


def _log_terms(
    key: Key,
    ensemble: Ensemble,
    which: Int[np.ndarray, " s"],
    truths: Int[np.ndarray, " e"],
    do_mask: Bool[np.ndarray, " d"],
    do_values: Float[np.ndarray, "n d"],
) -> Float[np.ndarray, "e s d"]:
    """Log density of every simulated experiment, node by node, under every draw."""
    num_rows, d = do_values.shape
    # The same keys for every candidate: they differ by what they set, not by luck.
    rows = many.map_chunks(
        partial(_simulated, model=ensemble.engine, do_mask=do_mask, do_values=do_values),
        (jax.random.split(jax_key(key), len(truths)), *ensemble.take(which[truths])),
        num_rows,
    )
    evaluate = partial(
        _node_log_likelihood,
        model=ensemble.engine,
        x=rows.reshape(-1, d),
        do_mask=do_mask,
        num_rows=num_rows,
    )
    terms = many.map_chunks(evaluate, ensemble.take(which), len(truths) * num_rows)
    _refuse_overflow(ensemble, do_mask, np.isfinite(terms))
    return terms.astype(float).swapaxes(0, 1)


def _plan(
    ensemble: Ensemble, node: int | None, levels: Levels, num_rows: int
) -> tuple[Bool[np.ndarray, " d"], Float[np.ndarray, "n d"]]:
    """Mask of what is set, and its values row by row, in engine units."""
    d, scaling = len(ensemble.names), ensemble.model.scaling
    mask, settings = np.zeros(d, dtype=bool), np.zeros((num_rows, d), dtype=np.float32)
    if ensemble.contexts:
        mask = ensemble.contexts.mask.copy()
        settings[:] = np.where(mask, -scaling.shift / scaling.scale, 0.0)
    if node is not None:
        mask[node] = True
        values = np.resize(np.asarray(levels[ensemble.names[node]], dtype=float), num_rows)
        scaled = (values - scaling.shift[node]) / scaling.scale[node]
        _refuse_overflow(ensemble, mask, np.abs(scaled) < np.finfo(np.float32).max)
        settings[:, node] = scaled
    return mask, settings


def _refuse_overflow(
    ensemble: Ensemble, do_mask: Bool[np.ndarray, " d"], sound: np.ndarray
) -> None:
    if not sound.all():
        held = [ensemble.names[i] for i in np.flatnonzero(do_mask)]
        raise InputError(
            f"rows simulated with {held[0] if held else 'nothing'} set overflow; give it levels "
            "nearer to the data"
        )


@compiled("model")
def _simulated(
    keys: Array, params: Params, graphs: Array, *, model: SCM, do_mask: Array, do_values: Array
) -> Float[Array, "e n d"]:
    def one(draw: tuple[Key, Params, Array]) -> Array:
        key, theta, graph = draw
        return model.sample(theta, key, graph, do_values.shape[0], do_mask, do_values)

    return lax.map(one, (keys, params, graphs), batch_size=16)


@compiled("model", "num_rows")
def _node_log_likelihood(
    params: Params, graphs: Array, *, model: SCM, x: Array, do_mask: Array, num_rows: int
) -> Float[Array, "s e d"]:
    def one(draw: tuple[Params, Array]) -> Array:
        terms = jnp.where(do_mask[None, :], 0.0, model.log_terms(*draw, x))
        return terms.reshape(-1, num_rows, x.shape[1]).sum(axis=1)

    return lax.map(one, (params, graphs), batch_size=4)


def _question(ensemble: Ensemble, about: About) -> Shaped[np.ndarray, "chain draw"]:
    """The answer that each draw gives: whole numbers for kinds, floats for sizes."""
    if about is None:
        d = len(_variables(ensemble))  # planned rows say nothing of what environments act on
        return estimates.distinct(ensemble.graphs[:, :, :d, :d], ensemble.weights).index
    if isinstance(about, Effect):
        if about.draws.shape != ensemble.weights.shape:
            raise InputError("the effect is of another posterior; compute it from this one")
        return about.draws
    if isinstance(about, str) or len(about) != 2:
        raise InputError(
            f"about is None (the graph), (source, target) for an edge, or an Effect, not {about!r}"
        )
    i, j = column_names.pair(ensemble.names, *about)
    return ensemble.graphs[:, :, i, j]


def _own_functions(
    ensemble: Ensemble, about: About, which: Int[np.ndarray, " s"]
) -> Bool[np.ndarray, "s d"]:
    """Nodes whose functions decide the answer of a draw; those of the others are averaged.

    A graph or an edge depends on none. A linear effect depends on the nodes on its paths; a
    nonlinear one on the other ancestors of the outcome too, and on all nodes if it is about
    units that were seen with given values.
    """
    graphs = ensemble.flat_graphs[which] != 0
    own = np.zeros(graphs.shape[:2], dtype=bool)
    if not isinstance(about, Effect):
        return own
    asked = about.outcome  # a column, or "column=level" for the probability of a level
    column = asked if asked in ensemble.names else asked.rpartition("=")[0]
    cause, outcome = column_names.pair(ensemble.names, about.cause, column)
    cut = graphs.copy()
    cut[:, :, cause] = False
    reach = graph_facts.ancestors(cut)
    if about.given and not ensemble.is_linear:
        own[:] = True
    else:
        own = reach[:, :, outcome] & (reach[:, cause] if ensemble.is_linear else True)
        own[:, outcome] = True
        own[:, cause] = False
    return own & reach[:, cause, outcome][:, None]


def _hypotheses(
    ensemble: Ensemble, about: About, num_draws: int, num_experiments: int
) -> tuple[Int[np.ndarray, " s"], Hypotheses]:
    """Draws that are compared, evenly chosen by weight when too many, and the truths."""
    weights = ensemble.weights.reshape(-1)
    which = np.flatnonzero(weights > 0)
    if which.size > num_draws:
        which, counts = np.unique(_spread(weights, num_draws), return_counts=True)
        weights = counts / num_draws
    else:
        weights = weights[which] / weights[which].sum()
    # Truths in the order of their answers: each answer gets its part of the experiments.
    order = np.argsort(_question(ensemble, about).reshape(-1)[which], kind="stable")
    truths = order[_spread(weights[order], num_experiments)]
    return which, Hypotheses(weights, ensemble.flat_graphs[which], truths)


def _spread(weights: Float[np.ndarray, " s"], num: int) -> Int[np.ndarray, " k"]:
    """`num` draws at equal steps of the cumulative weight."""
    levels = (np.arange(num) + 0.5) / num * float(weights.sum())
    places: np.ndarray = np.cumsum(weights).searchsorted(levels)
    return np.minimum(places, len(weights) - 1)


def _variables(ensemble: Ensemble) -> list[str]:
    """All columns but indicators of environments."""
    if not ensemble.contexts:
        return list(ensemble.names)
    return [n for n, held in zip(ensemble.names, ensemble.contexts.mask, strict=True) if not held]


def _refuse_environments(ensemble: Ensemble, chosen: Sequence[str]) -> None:
    variables = _variables(ensemble)
    for name in chosen:
        if name in ensemble.names and name not in variables:
            raise InputError(
                f"{name!r} is an environment, and experiments set variables; leave it out"
            )


def _price(name: str, cost: Mapping[str, float | int] | None) -> float:
    price = float((cost or {}).get(name, 1.0))
    if not 0 < price < np.inf:
        raise InputError(f"the cost of {name!r} is {price:g}; a cost is a positive number")
    return price


def _refuse_unknown(names: Sequence[str], cost: Mapping[str, float | int] | None) -> None:
    for name in cost or {}:
        if name != NOTHING:
            column_names.node(names, name)


def _refuse_too_few(**counts: tuple[int, int]) -> None:
    for name, (count, least) in counts.items():
        if count < least:
            raise InputError(f"{name} is {count}; it must be {least} or more")


def _warn_if_far_apart(
    labels: Sequence[str],
    found: Sequence[Gain],
    answers: Shaped[np.ndarray, " s"],
    hypotheses: Hypotheses,
    num_available: int,
) -> None:
    """Says which gain is least known, if the draws are too few to know it."""
    if answers.dtype.kind == "f":
        gaps = [np.exp(-2 * gain.low) - np.exp(-2 * gain.high) for gain in found]
    else:
        entropy = information_gain.entropy(answers, hypotheses.weights)
        gaps = [(gain.high - gain.low) / max(entropy, NO_UNCERTAINTY) for gain in found]
    worst = int(np.argmax(gaps))
    if gaps[worst] <= FAR_APART:
        return
    used = len(hypotheses.weights)
    more = "raise num_draws" if num_available > used else "fit with more draws"
    warnings.warn(
        f"{used} draws are too few to know the gain of the experiments: the expected gain of "
        f"{labels[worst]!r} lies between {found[worst].low:.2g} and {found[worst].high:.2g} "
        f"nats; {more}, or plan fewer rows (num_rows)",
        BayesdagWarning,
        stacklevel=4,
    )
