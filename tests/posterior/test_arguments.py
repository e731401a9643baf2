"""Numbers out of range are refused by name at the border of the library, never answered."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import bayesdag
from bayesdag.errors import InputError
from bayesdag.random import key_of, words_of
from tests.posteriors import random_linear
from tests.toys import toy_frame

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("bad", [5, -0.1, NAN, INF])
def test_thresholds_are_probabilities(seed, bad, tmp_path):
    posterior = random_linear(seed)
    with pytest.raises(InputError, match="threshold is .*between 0 and 1"):
        posterior.export(tmp_path / "x.csv", threshold=bad)
    assert list(tmp_path.iterdir()) == []
    for ask in (posterior.consensus_graph, posterior.to_networkx, posterior.to_lingam):
        with pytest.raises(InputError, match="threshold is"):
            ask(bad)
    with pytest.raises(InputError, match="at_least is"):
        posterior.v_structures(bad)


@pytest.mark.parametrize("bad", [0, -1])
def test_counts_are_positive(seed, bad):
    posterior = random_linear(seed)
    for ask in (
        lambda: posterior.sample(bad),
        lambda: posterior.effect("a", "b", num_rows=bad),
        lambda: posterior.next_experiment(num_rows=bad),
        lambda: posterior.next_experiment(num_experiments=bad),
        lambda: posterior.next_experiment(num_draws=bad),
        lambda: posterior.adjustment_sets("a", "b", limit=bad),
    ):
        with pytest.raises(InputError, match="must be a whole number"):
            ask()
    with pytest.raises(InputError, match="top is -1"):
        posterior.edge_table(-1)


@pytest.mark.parametrize("bad", [2.0, 0.0, 1.0, -0.5, NAN])
def test_intervals_hold_a_probability_between_none_and_all(seed, bad):
    found = random_linear(seed).effect("a", "b")
    for ask in (found.hdi, found.summary, found.table):
        with pytest.raises(InputError, match="prob is"):
            ask(bad)


@pytest.mark.parametrize("bad", [-1, 2**64, 2**70])
def test_seeds_have_64_bits(seed, bad):
    posterior = random_linear(seed)
    for ask in (
        lambda: posterior.sample(3, seed=bad),
        lambda: posterior.effect("a", "b", seed=bad),
        lambda: posterior.next_experiment(seed=bad),
        lambda: posterior.check(toy_frame(), seed=bad),
        lambda: bayesdag.fit("no file at all", seed=bad),
    ):
        with pytest.raises(InputError, match="seed is .*2\\*\\*64"):
            ask()


def test_seeds_that_differ_in_any_bit_give_other_keys():
    """JAX alone drops the upper half: 0 and 2**32 would be the same seed."""
    seeds = [0, 1, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    assert len({words_of(key_of(seed)) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("bad", [1e300, -1e300, INF, NAN])
def test_values_that_would_overflow_are_refused(seed, bad):
    posterior = random_linear(seed)
    row = pd.DataFrame(dict.fromkeys(posterior.names, [1.0]))
    for ask in (
        lambda: posterior.effect("a", "b", values=(0, bad)),
        lambda: posterior.effect("a", "b", given={"c": bad}),
        lambda: posterior.sample(3, do={"a": bad}),
        lambda: posterior.counterfactual(row, do={"a": bad}),
    ):
        with pytest.raises(InputError):
            ask()


@pytest.mark.parametrize("bad", [0.0, -1.0, INF, NAN])
def test_costs_are_positive_numbers(seed, bad):
    with pytest.raises(InputError, match="a cost is a positive number"):
        random_linear(seed).next_experiment(cost={"a": bad})


def test_probabilities_never_exceed_one_although_sums_of_weights_do(seed):
    posterior = random_linear(seed)
    heavy = dataclasses.replace(
        posterior,
        graphs=np.repeat(posterior.graphs[:, :1], posterior.num_draws, axis=1),
        weights=posterior.weights * (1 + 1e-12),
        marginals={"edge": np.full((4, 4), 1 + 1e-12), "ancestor": np.full((4, 4), 1 + 1e-12)},
    )
    sampled = dataclasses.replace(heavy, marginals=None)
    for one in (heavy, sampled):
        assert one.edge_probabilities().to_numpy().max() <= 1
        assert one.path_probabilities().to_numpy().max() <= 1
        assert one.markov_blanket_probabilities().to_numpy().max() <= 1
        assert one.equivalence_classes().mass.max() <= 1
        assert one.equivalence_classes().compelled().to_numpy().max() <= 1
        assert max(mass for _, mass in one.weighted_graphs()) <= 1
    assert np.max(sampled.probability(lambda graph: True)) <= 1
    found = sampled.effect("a", "b")
    assert max(found.prob_positive, found.prob_negative, found.prob_no_path) <= 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_samples": 10**30}, "too large"),
        ({"num_warmup": -5}, "0 or more"),
        ({"hottest": NAN}, "finite"),
        ({"hottest": "1e400"}, "finite"),
        ({"num_samples": "nan"}, "whole number"),
    ],
)
def test_settings_that_no_computation_could_hold_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        bayesdag.fit(toy_frame(), "collapsed", **settings)


@pytest.mark.parametrize("bad", [-3, 0])
def test_extending_adds_draws(bad):
    posterior = bayesdag.fit(toy_frame(), "exact", num_samples=5)
    with pytest.raises(InputError, match="num_samples is"):
        bayesdag.extend(posterior, toy_frame(), bad)
