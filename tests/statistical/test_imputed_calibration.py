"""Gaps cost certainty, not calibration: graph and functions from the prior, cells masked."""

import dataclasses

import jax
import numpy as np
import pytest

from bayesdag import random
from bayesdag.methods.exact import Exact
from bayesdag.methods.imputed import Imputed
from tests.statistical import kit
from tests.statistical.prior_draws import PRIOR, D, graph_prior, simulate

# With ten completions their own spread is a part of every probability: 0.02 nats per arrow.
TABLES, NUM_ROWS, NUM_COMPLETIONS = 100, 60, 40
FRACTIONS = (0.0, 0.1, 0.3)
BINS = (0.0, 0.05, 0.25, 0.5, 0.75, 1.0)
OFF_DIAGONAL = ~np.eye(D, dtype=bool)
LEAST = 1e-3  # a probability from completions is no nearer to 0 or 1


def masked(data, draws: np.ndarray, fraction: float):
    return dataclasses.replace(data, missing=draws < fraction) if fraction else data


def of_one_table(key, exact: Exact, dags, mass) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all arrows at each fraction of gaps, and which arrows there are."""
    key_data, key_gaps, key_fit = jax.random.split(key, 3)
    data, graph, _ = simulate(key_data, exact, dags, mass, NUM_ROWS)
    draws = random.generator(key_gaps).random(data.values.shape)
    method = Imputed(exact, num_completions=NUM_COMPLETIONS)
    tables = [masked(data, draws, fraction) for fraction in FRACTIONS]
    found = [method(key_fit, one, kit.no_knowledge(one), None).edge_matrix() for one in tables]
    return np.stack(found)[:, OFF_DIAGONAL], graph[OFF_DIAGONAL]


def z_of(values: np.ndarray) -> float:
    """Mean over tables in standard errors; arrows of one table are not independent."""
    return float(values.mean() / (values.std() / np.sqrt(len(values)) + 1e-12))


@pytest.mark.slow
def test_calibration_holds_and_certainty_falls_with_the_gaps(key):
    """Of the arrows with probability p a fraction p is true, with gaps as without.

    The log score is compared with what the probabilities themselves expect it to be, which sees
    any certainty that is not earned.
    """
    exact = Exact(score=PRIOR, num_samples=200)
    dags, mass = graph_prior(exact)
    drawn = [of_one_table(k, exact, dags, mass) for k in jax.random.split(key, TABLES)]
    probability = np.clip(np.stack([p for p, _ in drawn], axis=1), LEAST, 1 - LEAST)
    true = np.stack([t for _, t in drawn]).astype(bool)
    log_score = np.where(true, np.log(probability), np.log1p(-probability)).mean(axis=2)
    entropy = -(probability * np.log(probability)).mean(axis=2)
    entropy -= ((1 - probability) * np.log1p(-probability)).mean(axis=2)
    for number, fraction in enumerate(FRACTIONS):
        p = probability[number]
        assert abs(z_of(log_score[number] + entropy[number])) < 4, fraction
        for low, high in zip(BINS, BINS[1:], strict=False):
            inside = (p >= low) & (p < high)
            # Where a bin holds few arrows, its deviation is not known well enough to count in.
            if inside.sum() >= 40:
                assert abs(z_of(np.where(inside, true - p, 0.0).sum(axis=1))) < 4, (fraction, low)
    # What gaps add to the certainty that is not earned, table by table.
    unearned = log_score + entropy
    assert abs(z_of(unearned[2] - unearned[0])) < 3
    # A tenth of the cells costs less than what chance does to so few tables.
    assert z_of(entropy[2] - entropy[0]) > 2
    assert z_of(log_score[0] - log_score[2]) > 2
