"""The measuring instruments themselves: they must see an error and not see one that is not."""

import numpy as np
import pytest

from bayesdag import random, read
from bayesdag.methods.exact import Exact
from tests.statistical import kit
from tests.toys import toy_frame


@pytest.fixture(scope="module")
def truth():
    return kit.truth_of(Exact(), read(toy_frame(40)))


def test_the_exact_probabilities_sum_to_one(truth):
    assert truth.probability.sum() == pytest.approx(1)
    assert len(truth.dags) == 543


def test_exact_draws_lie_on_the_floor(truth, seed):
    rng = np.random.default_rng(seed)
    picked = rng.choice(543, size=2000, p=truth.probability / truth.probability.sum())
    verdict = kit.judge(rng, truth, truth.dags[picked].reshape(4, 500, 4, 4))
    assert all(np.array(verdict.found) < np.array(verdict.limit))
    assert all(np.array(verdict.found) > 0)


def test_draws_of_another_posterior_do_not(truth, seed):
    rng = np.random.default_rng(seed)
    other = kit.truth_of(Exact(order_modular=False), read(toy_frame(40))).probability
    picked = rng.choice(543, size=20_000, p=other / other.sum())
    verdict = kit.judge(rng, truth, truth.dags[picked])
    assert verdict.found.total_variation > 2 * verdict.limit.total_variation
    assert verdict.found.mmd > 2 * verdict.limit.mmd


def test_weights_count(truth):
    weights = truth.probability / truth.probability.sum()
    distance = kit.between(truth, kit.shares(truth, truth.dags, weights))
    np.testing.assert_allclose(distance, 0, atol=1e-12)


def test_distances_of_two_point_masses_are_known(truth):
    one = truth._replace(probability=np.eye(543)[0])  # the empty graph
    assert not one.dags[0].any()
    far = int(np.argmax(truth.dags.sum(axis=(1, 2))))
    distance = kit.between(one, np.eye(543)[far])
    assert distance.total_variation == 1
    assert distance.edge == distance.ancestor == 1
    assert distance.mmd == pytest.approx(np.sqrt(2 * 6) / 4)


def gaussian_mean(key):
    rng = random.generator(key)
    mean = rng.normal()
    return mean + rng.normal(size=5), np.array([mean])


def posterior_of_mean(spread):
    def draw(key, data):
        return random.generator(key).normal(data.sum() / 6, spread / np.sqrt(6), size=(31, 1))

    return draw


def test_a_right_posterior_is_calibrated_and_a_narrow_one_is_not(key):
    right = kit.calibration_ranks(key, 300, gaussian_mean, posterior_of_mean(1.0))
    assert kit.calibration_pvalues(*right)[0] > 1e-3
    narrow = kit.calibration_ranks(key, 300, gaussian_mean, posterior_of_mean(0.6))
    assert kit.calibration_pvalues(*narrow)[0] < 1e-6
