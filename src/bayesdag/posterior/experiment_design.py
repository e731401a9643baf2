"""Which variable should be set next, to learn most about the graph, an edge or an effect?

For every candidate, draws from the posterior take turns in being the truth: each simulates
the rows of an experiment, and all draws are judged by their likelihood of those rows. The
gain is how much surer one would be on average: the fall in entropy of a discrete question
(in nats), or half the logarithm of the fall in variance of an effect.

Limits: the draws are all the hypotheses there are, so a gain never exceeds what they can
express, and with many rows every draw becomes its own explanation. The gain is then too
high for all candidates alike; a warning says so.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.model.scm import SCM
from bayesdag.posterior import column_names, estimates
from bayesdag.posterior import simulation as many
from bayesdag.posterior.arguments import check_count
from bayesdag.posterior.effect_result import Effect
from bayesdag.posterior.simulation import Ensemble
from bayesdag.types import Array, Key, Params

if TYPE_CHECKING:
    import pandas

About = Effect | Sequence[str] | None
NOTHING = "(only observe)"
SATURATED = 0.98
NO_DOUBT = 1e-12  # rounding


def next_experiment(
    key: Key,
    ensemble: Ensemble,
    levels: Mapping[str, Sequence[float | int]],
    *,
    about: About = None,
    candidates: Sequence[str] | None = None,
    cost: Mapping[str, float | int] | None = None,
    num_rows: int = 10,
    num_draws: int = 200,
    num_experiments: int = 64,
) -> "pandas.DataFrame":
    """Single-variable interventions, best first by expected gain per cost.

    Only observing as many rows stands among them for comparison.

    Args:
        levels: values to which each variable is set, in turn over the rows.
        about: None for the graph, (source, target) for an edge, or an `Effect` of the same
            posterior.
        candidates: columns that can be set; all by default.
        cost: of each candidate, 1 unless given; gains are compared per cost.
        num_rows: rows of the planned experiment.
        num_draws: hypotheses that are compared.
        num_experiments: how many of them take a turn in being the truth.
    """
    import pandas

    for setting, value in [("num_rows", num_rows), ("num_experiments", num_experiments)]:
        check_count(setting, value)
    check_count("num_draws", num_draws, least=2)
    names = ensemble.names
    chosen = list(names) if candidates is None else list(candidates)
    nodes = [column_names.node(names, name) for name in chosen]
    prices = [_price(name, cost) for name in [*chosen, NOTHING]]
    _refuse_unknown(names, cost)
    question = _question(ensemble, about)
    which, weights = _hypotheses(ensemble, num_draws)
    truths = _spread(weights, num_experiments)
    doubt = _doubt(question.reshape(-1)[which], weights[None, :])[0]
    found = [
        _gain(key, ensemble, which, weights, truths, question, node, levels, num_rows)
        for node in [*nodes, None]
    ]
    table = pandas.DataFrame(
        {
            "set": [*chosen, NOTHING],
            "gain": [gain for gain, _, _ in found],
            "error": [error for _, error, _ in found],
            "resolved": [share for _, _, share in found],
            "cost": prices,
        }
    )
    table["gain per cost"] = table["gain"] / table["cost"]
    _warn_if_saturated(table["resolved"].to_numpy(), float(doubt), num_rows)
    order = np.argsort(-np.round(table["gain per cost"].to_numpy(), 12), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _gain(
    key: Key,
    ensemble: Ensemble,
    which: Int[np.ndarray, " s"],
    weights: Float[np.ndarray, " s"],
    truths: Int[np.ndarray, " e"],
    question: Shaped[np.ndarray, "chain draw"],
    node: int | None,
    levels: Mapping[str, Sequence[float | int]],
    num_rows: int,
) -> tuple[float, float, float]:
    """Expected gain of one experiment, its Monte-Carlo error, and the doubt it removes."""
    log_likelihood = _judge(key, ensemble, which, which[truths], node, levels, num_rows)
    after = np.log(weights)[None, :] + log_likelihood
    after = np.exp(after - after.max(axis=1, keepdims=True))
    after /= after.sum(axis=1, keepdims=True)
    answers = question.reshape(-1)[which]
    before, left = _doubt(answers, weights[None, :])[0], _doubt(answers, after)
    error = left.std() / np.sqrt(len(left))
    if before < NO_DOUBT:
        return 0.0, 0.0, 0.0
    if answers.dtype.kind == "f":
        remaining = max(float(left.mean() / before), np.finfo(float).tiny)
        return -0.5 * np.log(remaining), float(0.5 * error / left.mean()), 1 - remaining
    return float(before - left.mean()), float(error), float(1 - left.mean() / before)


def _doubt(answers: Shaped[np.ndarray, " s"], weights: Float[np.ndarray, "e s"]) -> np.ndarray:
    """Entropy of a discrete answer, or variance of a number, under each set of weights."""
    if answers.dtype.kind == "f":
        mean = weights @ answers
        return np.maximum(weights @ answers**2 - mean**2, 0.0)
    _, kind = np.unique(answers, return_inverse=True)
    mass = weights @ np.eye(kind.max() + 1)[kind]
    return -(mass * np.log(np.where(mass > 0, mass, 1.0))).sum(axis=1)


def _judge(
    key: Key,
    ensemble: Ensemble,
    which: Int[np.ndarray, " s"],
    truths: Int[np.ndarray, " e"],
    node: int | None,
    levels: Mapping[str, Sequence[float | int]],
    num_rows: int,
) -> Float[np.ndarray, "e s"]:
    """Log likelihood of every simulated experiment under every hypothesis."""
    mask, settings = _plan(ensemble, node, levels, num_rows)
    # The same keys for every candidate: they differ by what they set, not by luck.
    rows = many.map_chunks(
        partial(_simulated, model=ensemble.engine, do_mask=mask, do_values=settings),
        (jax.random.split(key, len(truths)), *ensemble.take(truths)),
        num_rows,
    )
    d = len(ensemble.names)
    judge = partial(
        _log_likelihood,
        model=ensemble.engine,
        x=rows.reshape(-1, d),
        do_mask=mask,
        num_rows=num_rows,
    )
    return many.map_chunks(judge, ensemble.take(which), len(truths) * num_rows).astype(float).T


def _plan(
    ensemble: Ensemble, node: int | None, levels: Mapping[str, Sequence[float | int]], num_rows: int
) -> tuple[Bool[np.ndarray, " d"], Float[np.ndarray, "n d"]]:
    """What is set, and to which values row by row, in engine units."""
    d, scaling = len(ensemble.names), ensemble.model.scaling
    mask, settings = np.zeros(d, dtype=bool), np.zeros((num_rows, d), dtype=np.float32)
    if node is not None:
        mask[node] = True
        values = np.resize(np.asarray(levels[ensemble.names[node]], dtype=float), num_rows)
        settings[:, node] = (values - scaling.shift[node]) / scaling.scale[node]
    return mask, settings


@partial(jax.jit, static_argnames=("model",))
def _simulated(
    keys: Array, params: Params, graphs: Array, *, model: SCM, do_mask: Array, do_values: Array
) -> Float[Array, "e n d"]:
    def one(draw: tuple[Key, Params, Array]) -> Array:
        key, theta, graph = draw
        return model.sample(theta, key, graph, do_values.shape[0], do_mask, do_values)

    return jax.lax.map(one, (keys, params, graphs), batch_size=16)


@partial(jax.jit, static_argnames=("model", "num_rows"))
def _log_likelihood(
    params: Params, graphs: Array, *, model: SCM, x: Array, do_mask: Array, num_rows: int
) -> Float[Array, "s e"]:
    set_cells = jnp.broadcast_to(do_mask[None, :], x.shape)

    def one(draw: tuple[Params, Array]) -> Array:
        return model.log_prob(*draw, x, set_cells).reshape(-1, num_rows).sum(axis=1)

    return jax.lax.map(one, (params, graphs), batch_size=4)


def _question(ensemble: Ensemble, about: About) -> Shaped[np.ndarray, "chain draw"]:
    """The answer that each draw gives: whole numbers for kinds, floats for sizes."""
    if about is None:
        return estimates.distinct(ensemble.graphs, ensemble.weights).index
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


def _hypotheses(
    ensemble: Ensemble, num_draws: int
) -> tuple[Int[np.ndarray, " s"], Float[np.ndarray, " s"]]:
    """Draws that are compared and their weights; evenly chosen by weight when too many."""
    weights = ensemble.weights.reshape(-1)
    possible = np.flatnonzero(weights > 0)
    if possible.size <= num_draws:
        return possible, weights[possible] / weights[possible].sum()
    return _spread(weights, num_draws), np.full(num_draws, 1 / num_draws)


def _spread(weights: Float[np.ndarray, " s"], num: int) -> Int[np.ndarray, " k"]:
    """`num` draws at equal steps of the cumulative weight."""
    levels = (np.arange(num) + 0.5) / num * weights.sum()
    return np.minimum(np.searchsorted(np.cumsum(weights), levels), len(weights) - 1)


def _price(name: str, cost: Mapping[str, float | int] | None) -> float:
    price = float((cost or {}).get(name, 1.0))
    if not 0 < price < np.inf:
        raise InputError(f"the cost of {name!r} is {price:g}; a cost is a positive number")
    return price


def _refuse_unknown(names: Sequence[str], cost: Mapping[str, float | int] | None) -> None:
    for name in cost or {}:
        if name != NOTHING:
            column_names.node(names, name)


def _warn_if_saturated(resolved: np.ndarray, doubt: float, num_rows: int) -> None:
    if doubt > NO_DOUBT and resolved.min() > SATURATED:
        warnings.warn(
            f"{num_rows} rows of any experiment, or of none, would single out one draw; the "
            "ranking says little: lower num_rows or raise num_draws",
            BayesdagWarning,
            stacklevel=3,
        )


def usual_levels(columns: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """One standard deviation below and above the mean of each column of a data summary."""
    return {
        name: (facts["mean"] - facts["sd"], facts["mean"] + facts["sd"])
        for name, facts in columns.items()
    }
