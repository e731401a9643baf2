"""All effects at once are the effects one by one."""

from dataclasses import replace

import numpy as np
import pytest

from bayesdag.errors import InputError
from bayesdag.model.mechanisms.networks import Networks
from bayesdag.posterior.linear_effects import linear_effects, total_effects
from tests.posteriors import random_linear


def test_they_agree_with_effects_asked_one_by_one():
    posterior = random_linear(3, d=4)
    pairs = [(a, b) for a in posterior.names for b in posterior.names if a != b][:6]
    found = linear_effects(posterior._ensemble, posterior.summary["columns"], pairs)
    for one, (cause, outcome) in zip(found, pairs, strict=True):
        same = posterior.effect(cause, outcome)
        scale = np.abs(same.draws).max()
        np.testing.assert_allclose(one.draws, same.draws, rtol=1e-3, atol=1e-5 * scale)
        assert one.values == same.values
        assert one.prob_no_path == same.prob_no_path
        assert one.sign_flips == pytest.approx(same.sign_flips)
        assert one.variance.structural == pytest.approx(same.variance.structural, rel=1e-2)


def test_without_a_path_the_effect_is_exactly_zero():
    posterior = random_linear(1, d=3)
    total = total_effects(posterior._ensemble)
    (found,) = linear_effects(posterior._ensemble, posterior.summary["columns"], [("a", "b")])
    assert (found.draws[found.structure < 0] == 0).all()
    assert (np.diagonal(total, axis1=2, axis2=3) == 0).all()


def test_models_that_are_not_linear_are_refused():
    ensemble = random_linear(1, d=3)._ensemble
    curved = replace(ensemble, model=replace(ensemble.model, mechanism=Networks()))
    with pytest.raises(InputError, match="linear"):
        total_effects(curved)
