"""What directions rest on: the classes of functions, the noise, and what contradicts them."""

import numpy as np
import pytest

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.fitting import fit
from bayesdag.methods.exact import Exact
from bayesdag.posterior.assumptions import in_words
from bayesdag.posterior.check_result import Check, VariableCheck

FOUND = VariableCheck("a", 500, 0.15, 0.01, 0.05, 0.01, suspect="b")
CHECK = Check((FOUND, VariableCheck("b", 500)), linear=False, fixed_spread=False, gaussian=False)
WEIGHTS = {"linear": 0.02, "additive": 0.7, "network": 0.28, "of normal scores": 0.99}


def test_functions_are_named_in_the_order_of_their_weight():
    words = in_words(CHECK, "b", WEIGHTS)
    assert words == (
        "directions around b rest on its function, a sum of curves (0.70) or a network (0.28), "
        "and on noise that adds to its normal scores; the rows do not contradict that (no misfit "
        "found)"
    )


def test_a_contradiction_is_said_in_nats_with_what_was_found():
    words = in_words(CHECK, "a", {"linear": 1.0, "of normal scores": 0.4})
    assert "its function, a line, and on noise that adds to its values (0.60) or normal" in words
    assert words.endswith(
        "the rows contradict that by 0.2 nats per row "
        "(noise of another shape; residuals depend on b)"
    )


def test_levels_have_no_noise():
    words = in_words(CHECK, "b", {"table": 1.0}, has_levels=True)
    assert "how the odds of its levels follow from its causes, a table of its parents'" in words
    assert "noise" not in words


def test_a_linear_fit_says_that_curved_rows_contradict_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = x + x**2 + 0.3 * rng.normal(size=600)
    posterior = fit(Dataset(np.c_[x, y], ("x", "y")), Exact(num_samples=20))
    said = [posterior.assumption(name) for name in ("x", "y")]
    assert all(
        "a line, and on Gaussian noise of one size that adds to its values" in s for s in said
    )
    assert any("the rows contradict that by" in s for s in said)
    with pytest.raises(InputError, match="no column is called 'z'"):
        posterior.assumption("z")
