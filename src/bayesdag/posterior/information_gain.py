"""Expected information of simulated experiments, bounded from below and from above.

Draws take turns in being the truth and simulate the rows Y of an experiment. What the rows
say about a question Q needs p(Y | graph), in which the functions are integrated out. Given
the graph, the functions of different nodes are independent, so the integral is a product

    p(Y | graph) = Π_i E[p(Y_i | Y_parents, function_i) | parents of i],

and each factor is an average over *all* draws in which node i has these parents, whatever
the rest of their graphs. Two such averages bound the truth. With the draw that simulated Y
among them the rows are recognised by their own function, and the average is too high; without
it, it is too low (Jensen's inequality). Hence E log p(Y | Q) - log p(Y) is bounded from below
by (without) - (with) and from above by (with) - (without), as in prior contrastive and nested
Monte-Carlo estimation. To first order in 1/draws both are off by the same amount, so the
middle is the estimate.

Mechanisms whose nodes share weights are treated as if their functions were independent too.

References:
    Foster et al. (2020), A unified stochastic gradient approach to designing
    Bayesian-optimal experiments, AISTATS. Rainforth et al. (2018), On nesting Monte Carlo
    estimators, ICML.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

NO_UNCERTAINTY = 1e-12  # rounding
LARGEST_FRACTION = 1 - 1e-9  # of a variance: no gain is infinite

Terms = Float[np.ndarray, "e s d"]
Evidence = Float[np.ndarray, "e s"]


class Gain(NamedTuple):
    """Expected information gain of an experiment.

    Attributes:
        value: expected gain in nats.
        low: expectation of the estimate that is too low.
        high: expectation of the estimate that is too high.
        error: Monte-Carlo standard error of `value`.
        fraction: of the entropy (or variance) removed.
    """

    value: float
    low: float
    high: float
    error: float
    fraction: float


@dataclass(frozen=True)
class Hypotheses:
    """Draws that explain simulated rows, and those among them that simulate.

    Attributes:
        weights: of the draws, with sum 1.
        graphs: of the draws.
        truths: the draw behind each experiment.
    """

    weights: Float[np.ndarray, " s"]
    graphs: Shaped[np.ndarray, "s d d"]
    truths: Int[np.ndarray, " e"]

    @property
    def log_weights(self) -> Float[np.ndarray, " s"]:
        """Logarithms of the weights."""
        return np.log(self.weights)

    @property
    def experiments(self) -> Int[np.ndarray, " e"]:
        """Numbers of the experiments."""
        return np.arange(len(self.truths))

    @cached_property
    def log_weights_of_others(self) -> Evidence:
        """The same for each experiment, -inf at the draw behind it."""
        others = np.tile(self.log_weights, (len(self.truths), 1))
        others[self.experiments, self.truths] = -np.inf
        return others

    @cached_property
    def families(self) -> list["DrawGroups"]:
        """Draws with the same parents, of each node."""
        return [self._families_of(node) for node in range(self.graphs.shape[2])]

    def _families_of(self, node: int) -> "DrawGroups":
        parents = self.graphs[:, :, node] != 0
        _, index = np.unique(parents, axis=0, return_inverse=True)
        index = index.reshape(-1)
        alone = np.bincount(index)[index[self.truths]] == 1
        nearest = {int(e): _nearest(parents, int(self.truths[e])) for e in np.flatnonzero(alone)}
        return _grouped(index, nearest)


class DrawGroups(NamedTuple):
    """Draws in groups: by the parents of one node, or by their answer.

    Attributes:
        group: of each draw.
        order: draws, one group after the other.
        starts: where the groups start in `order`.
        nearest: for experiments whose truth is alone in its group, the other draws with the
            most similar parents.
    """

    group: Int[np.ndarray, " s"]
    order: Int[np.ndarray, " s"]
    starts: Int[np.ndarray, " f"]
    nearest: dict[int, np.ndarray]


def log_evidence(
    terms: Terms, hypotheses: Hypotheses, own: Bool[np.ndarray, "s d"]
) -> tuple[Evidence, Evidence]:
    """log p(Y | graph) of each experiment under each draw's graph: with the truth, without.

    Args:
        terms: log density of the rows of each node, given its parents, under each draw.
        hypotheses: the draws.
        own: nodes whose function is not integrated out: the answer depends on it.
    """
    within, without = (np.zeros(terms.shape[:2]) for _ in range(2))
    for node, families in enumerate(hypotheses.families):
        pooled = _pooled(terms[:, :, node], hypotheses, families)
        for total, average in zip((within, without), pooled, strict=True):
            total += np.where(own[None, :, node], terms[:, :, node], average[:, families.group])
    return within, without


def _pooled(
    terms: Evidence, hypotheses: Hypotheses, families: DrawGroups
) -> tuple[Float[np.ndarray, "e f"], Float[np.ndarray, "e f"]]:
    """Log average density over the draws of each family: with the truth, without."""
    e, own_family = hypotheses.experiments, families.group[hypotheses.truths]
    others = _segment_logsumexp(terms + hypotheses.log_weights_of_others, families)
    mass = _segment_logsumexp(hypotheses.log_weights_of_others, families)
    weight = hypotheses.log_weights[hypotheses.truths]
    all_terms, all_mass = others.copy(), mass.copy()
    truth = terms[e, hypotheses.truths] + weight
    all_terms[e, own_family] = np.logaddexp(others[e, own_family], truth)
    all_mass[e, own_family] = np.logaddexp(mass[e, own_family], weight)
    for experiment, near in families.nearest.items():
        # Any density serves as a lower bound; that of a similar family is a good one.
        family, log_weights = own_family[experiment], hypotheses.log_weights[near]
        others[experiment, family] = np.logaddexp.reduce(terms[experiment, near] + log_weights)
        mass[experiment, family] = np.logaddexp.reduce(log_weights)
    return all_terms - all_mass, others - mass


def _segment_logsumexp(values: Evidence, families: DrawGroups) -> Float[np.ndarray, "e f"]:
    """log Σ exp over the draws of each family; -inf where nothing is left."""
    grouped = values[:, families.order]
    highest = np.maximum.reduceat(grouped, families.starts, axis=1)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    sizes = np.diff(families.starts, append=grouped.shape[1])
    scaled = np.exp(grouped - np.repeat(highest, sizes, axis=1))
    with np.errstate(divide="ignore"):
        return np.log(np.add.reduceat(scaled, families.starts, axis=1)) + highest


def _grouped(
    group: Int[np.ndarray, " s"], nearest: dict[int, np.ndarray] | None = None
) -> DrawGroups:
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return DrawGroups(group, order, starts, nearest or {})


def _nearest(parents: Bool[np.ndarray, "s d"], truth: int) -> Int[np.ndarray, " k"]:
    """The other draws whose parents differ least."""
    distance = (parents != parents[truth]).sum(axis=1)
    distance[truth] = parents.shape[1] + 1
    return np.flatnonzero(distance == distance.min())


def entropy_gain(
    terms: Terms, hypotheses: Hypotheses, answers: Int[np.ndarray, " s"], entropy: float
) -> Gain:
    """Expected fall of the entropy of a discrete answer."""
    own = np.zeros(hypotheses.graphs.shape[:2], dtype=bool)
    within, without = log_evidence(terms, hypotheses, own)
    within = within + hypotheses.log_weights[None, :]
    others = without + hypotheses.log_weights_of_others
    same = answers[None, :] == answers[hypotheses.truths][:, None]
    low = _without_truth(without, others, same, hypotheses) - np.logaddexp.reduce(within, axis=1)
    given_answer = np.logaddexp.reduce(np.where(same, within, -np.inf), axis=1)
    given_answer -= np.log(same @ hypotheses.weights)
    rest = np.logaddexp.reduce(hypotheses.log_weights_of_others, axis=1)
    high = given_answer - (np.logaddexp.reduce(others, axis=1) - rest)
    learned = _log_probability(within, answers) - _log_probability(
        hypotheses.log_weights[None, :], answers
    )
    value, error = _mean((low + high) / 2 - _surprise(learned, terms, hypotheses), hypotheses)
    half_width = max(float((high - low).mean() / 2), 0.0)
    bounds = np.clip([value, value - half_width, value + half_width], 0, entropy)
    value, low, high = (float(bound) for bound in bounds)
    return Gain(value, low, high, error, value / entropy)


def _log_probability(log_posterior: Evidence, answers: Int[np.ndarray, " s"]) -> Evidence:
    """Log probability, given the rows, of the answer that each draw gives."""
    _, index = np.unique(answers, return_inverse=True)
    families = _grouped(index.reshape(-1))
    by_answer = _segment_logsumexp(log_posterior, families)
    return (by_answer - np.logaddexp.reduce(by_answer, axis=1, keepdims=True))[:, families.group]


def _surprise(values: Evidence, terms: Terms, hypotheses: Hypotheses) -> Float[np.ndarray, " e"]:
    """By how much a number of the truth differs from what the rows let one expect.

    Each draw was as likely to be the truth as its weight, so its weight times its likelihood
    is the probability that it simulated the rows: the mean over experiments is exactly 0, and
    taking it from an estimate takes noise away (a control variate).
    """
    expected = (_softmax(terms.sum(axis=2) + hypotheses.log_weights[None, :]) * values).sum(axis=1)
    return values[hypotheses.experiments, hypotheses.truths] - expected


def _mean(values: Float[np.ndarray, " e"], hypotheses: Hypotheses) -> tuple[float, float]:
    """Mean over experiments and its standard error.

    However many experiments there are, their truths are no more than the draws.
    """
    variance = values.var(ddof=1) * (1 / len(values) + (hypotheses.weights**2).sum())
    return float(values.mean()), float(np.sqrt(variance))


def _without_truth(
    without: Evidence,
    others: Evidence,
    same: Bool[np.ndarray, "e s"],
    hypotheses: Hypotheses,
) -> Float[np.ndarray, " e"]:
    """log p(Y | true answer) from the draws that did not simulate Y.

    Where no other draw gives that answer, from the graph behind Y with the functions of others.
    """
    log_mass = np.logaddexp.reduce(
        np.where(same, hypotheses.log_weights_of_others, -np.inf), axis=1
    )
    alone = ~np.isfinite(log_mass)
    found = np.logaddexp.reduce(np.where(same, others, -np.inf), axis=1) - np.where(
        alone, 0.0, log_mass
    )
    return np.where(alone, without[hypotheses.experiments, hypotheses.truths], found)


def variance_gain(
    terms: Terms,
    hypotheses: Hypotheses,
    answers: Float[np.ndarray, " s"],
    own: Bool[np.ndarray, "s d"],
) -> Gain:
    """Half the expected logarithmic fall of the variance of a number.

    The variance that remains is the mean squared error of the posterior mean given the rows.
    It is too small where the truth is among the draws that are averaged, and too large where
    it is not: no other predictor than the posterior mean has a smaller error.
    """
    within, without = log_evidence(terms, hypotheses, own)
    centred = answers - hypotheses.weights @ answers
    before = float(hypotheses.weights @ centred**2)
    large, small = (
        _squares_explained(centred, log_posterior)
        for log_posterior in (
            within + hypotheses.log_weights[None, :],
            without + hypotheses.log_weights_of_others,
        )
    )
    behind = (hypotheses.experiments, hypotheses.truths)
    surprise = _surprise(large, terms, hypotheses)
    value, error = _mean((small + large)[behind] / 2 - surprise, hypotheses)
    half_width = max(float((large - small)[behind].mean() / 2), 0.0)
    bounds = np.array([value, value - half_width, value + half_width]) / before
    fraction, low, high = np.clip(bounds, 0, LARGEST_FRACTION)
    error = 0.5 * error / before / (1 - fraction)  # of -½ log(1 - fraction)
    value, low, high = (float(-0.5 * np.log1p(-bound)) for bound in (fraction, low, high))
    return Gain(value, low, high, float(error), float(fraction))


def _squares_explained(centred: Float[np.ndarray, " s"], log_posterior: Evidence) -> Evidence:
    """By how much nearer each draw's number is to the mean given the rows than to that before."""
    mean = _softmax(log_posterior) @ centred
    return centred[None, :] ** 2 - (centred[None, :] - mean[:, None]) ** 2


def _softmax(log_weights: Evidence) -> Evidence:
    return np.exp(log_weights - np.logaddexp.reduce(log_weights, axis=1, keepdims=True))


def entropy(answers: Int[np.ndarray, " s"], weights: Float[np.ndarray, " s"]) -> float:
    """Entropy of a discrete answer, with an allowance for answers that were never drawn.

    The entropy of the drawn frequencies alone is too low where many answers were drawn once.
    The weight of these estimates that of the answers not seen (Chao & Shen, 2003,
    Environmental and Ecological Statistics).
    """
    _, kind = np.unique(answers, return_inverse=True)
    kind = kind.reshape(-1)
    mass, count = np.bincount(kind, weights), np.bincount(kind)
    if len(mass) == 1:
        return 0.0
    size = weights.sum() ** 2 / (weights**2).sum()
    covered = max(1 - mass[count == 1].sum(), 1 / size)
    seen = covered * mass
    return float(-(seen * np.log(seen) / -np.expm1(size * np.log1p(-seen))).sum())
