"""The parameter prior of BGe, under which Markov equivalent lines have equal evidence.

Ridge regressions and Laplace's approximation have a prior of their own: whitened weights of one
size, any scale of the noise. It is not the one under which equivalent graphs of linear Gaussian
variables have the same evidence, and the difference (a few nats per family, more where little is
left unexplained) would decide about arrows that no observation can tell. Every family is
therefore weighed by the odds of the two priors, as they are for its line with Gaussian noise:

    log BGe(family) - log evidence of the ridge regression(family).

Both are known in closed form. What tells a curve, a network or another noise from that line
stays what it is.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesdag.scores._neural.laplace import JITTER
from bayesdag.scores._neural.network import INTERCEPT_PRECISION
from bayesdag.scores._sufficient_statistics import by_size
from bayesdag.scores.bge import BGe, BGeStats

_NUM_STEPS = 4  # towards the scale of the noise, on which the penalty of the weights depends


class CountedRows(NamedTuple):
    """Standardised columns in the rows that count for some nodes: those where nobody set them.

    Attributes:
        num_rows: of them.
        bge: of the columns.
        alone: log evidence under BGe of each column without parents.
        correlation: of the columns.
    """

    num_rows: int
    bge: BGeStats
    alone: Float[np.ndarray, " c"]
    correlation: Float[np.ndarray, "c c"]


class WishartPrior(NamedTuple):
    """What the rows say about lines under BGe and without it.

    Attributes:
        group: entry of each node.
        rows: that count for the nodes of an entry; None where none do.
    """

    group: Int[np.ndarray, " c"]
    rows: tuple[CountedRows | None, ...]


def wishart_prior(
    values: Float[np.ndarray, "n c"], observed: Bool[np.ndarray, "n c"]
) -> WishartPrior:
    """What a table of columns says under BGe, whatever their units."""
    patterns, group = np.unique(observed, axis=1, return_inverse=True)
    rows = tuple(_counted(values[counts]) if counts.any() else None for counts in patterns.T)
    return WishartPrior(group.reshape(-1), rows)


def _counted(values: Float[np.ndarray, "n c"]) -> CountedRows:
    spread = values.std(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    score, nobody = BGe(), np.zeros((1, values.shape[1]), dtype=bool)
    stats = score.of_rows(standard, np.ones_like(standard, dtype=bool))
    alone = [score.log_evidence(stats, node, nobody)[0] for node in range(values.shape[1])]
    return CountedRows(len(values), stats, np.array(alone), _correlation(standard))


def _correlation(standard: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "c c"]:
    """Of columns that may be constant or determine one another: made regular."""
    found = standard.T @ standard / len(standard)
    np.fill_diagonal(found, 1 + JITTER)
    return found


def log_odds(
    prior: WishartPrior, nodes: Int[np.ndarray, " m"], parents: Bool[np.ndarray, "m c"]
) -> Float[np.ndarray, " m"]:
    """Log odds of the two priors for each family; 0 without parents."""
    result, score, entry = np.zeros(len(nodes)), BGe(), prior.group[nodes]
    for number, rows in enumerate(prior.rows):
        own = np.flatnonzero(entry == number)
        if rows is None or not len(own):
            continue
        gain = score.log_evidence_of_each(rows.bge, nodes[own], parents[own])
        gain -= rows.alone[nodes[own]]
        for which, members in by_size(parents[own]):
            if not members.size:
                continue
            explained = _explained(rows.correlation, nodes[own[which]], members)
            without = _ridge_gain(explained, members.shape[1], rows.num_rows)
            result[own[which]] = gain[which] - without
    return result


def _explained(
    correlation: Float[np.ndarray, "c c"],
    nodes: Int[np.ndarray, " b"],
    members: Int[np.ndarray, "b p"],
) -> Float[np.ndarray, " b"]:
    """Share of the variance of each node that a linear regression on its parents explains."""
    family = np.concatenate([members, nodes[:, None]], axis=1)
    root = np.linalg.cholesky(correlation[family[:, :, None], family[:, None, :]])
    return np.clip(1 - root[:, -1, -1] ** 2, 0.0, 1 - JITTER)


def _ridge_gain(
    explained: Float[np.ndarray, " b"], num_parents: int, num_rows: int
) -> Float[np.ndarray, " b"]:
    """Log evidence of ridge regressions with Gaussian noise, less that without parents.

    Weights of the whitened inputs are N(0, 1 / number of parents), the intercept nearly free, the
    scale of the noise the most likely one (`laplace.fit`).
    """
    variance = 1 - explained
    shrunk = np.ones_like(variance)
    for _ in range(_NUM_STEPS):
        shrunk = num_rows / (num_rows + num_parents * variance)
        variance = 1 - explained + (1 - shrunk) ** 2 * explained
    likelihood = -0.5 * num_rows * np.log(variance)
    penalty = 0.5 * num_parents * shrunk**2 * explained
    penalty += 0.5 * num_parents * np.log1p(num_rows / (num_parents * variance))
    intercept = np.log1p(num_rows / (INTERCEPT_PRECISION * variance))
    intercept -= np.log1p(num_rows / INTERCEPT_PRECISION)
    return likelihood - penalty - 0.5 * intercept
