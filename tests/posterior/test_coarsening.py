"""How much of the evidence counts, by what a check has found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesdag import fit, read
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.posterior import coarsening
from bayesdag.posterior.check_result import Check, VariableCheck
from bayesdag.scores.additive import Additive

ROWS = 1000


def checked(dependence: float = 0.0, repetition: float = 1.0, linear: bool = False) -> Check:
    one = VariableCheck("a", ROWS, dependence=dependence)
    flags = {"linear": linear, "fixed_spread": True, "gaussian": True}
    return Check((one,), **flags, num_rows=ROWS, repetition=repetition)


def test_rows_that_contradict_nothing_count_in_full():
    assert coarsening.power(checked()) == 1


def test_the_larger_the_misfit_the_less_counts_up_to_a_limit():
    values = [coarsening.power(checked(misfit)) for misfit in (0.02, 0.04, 0.07, 1.0)]
    assert values[0] > values[1] > values[2] == values[3] > 0.1


def test_misfit_of_lines_costs_less_than_that_of_functions_of_any_shape():
    assert coarsening.power(checked(0.05, linear=True)) > coarsening.power(checked(0.05))


def test_rows_that_repeat_one_another_lower_the_power_by_as_much():
    once, thrice = (coarsening.power(checked(0.02, times)) for times in (1.0, 3.0))
    assert thrice == pytest.approx(once / 3)


def test_words_say_why():
    assert "the estimated misfit is" in coarsening.in_words(checked(0.05), 0.4)
    assert "worth one independent row" in coarsening.in_words(checked(0.0, 3.0), 0.3)
    few = Check((), linear=True, fixed_spread=True, gaussian=True, repetition=3.0)
    assert "misfit" not in coarsening.in_words(few, 0.3)


@pytest.mark.parametrize("method", ["auto", "collapsed"])
def test_rows_in_time_count_as_the_independent_rows_that_they_are_worth(method):
    """Two independent series that remember their past look dependent, row by row."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(400, 3))
    for row in range(1, 400):
        x[row] += 0.95 * x[row - 1]
    result = fit(x, method, seed=0, progress=False)
    assert result.provenance["temperature"] > 2
    assert any("one independent row" in note for note in result.provenance["notes"])
    assert result.edge_matrix().max() < 0.95


@pytest.mark.parametrize("seed", [0, 3])
def test_curves_of_independent_random_walks_are_no_arrows(seed):
    """They explain one another so well that their residuals seem to have no memory."""
    rng = np.random.default_rng(seed)
    walks = np.cumsum(rng.normal(size=(150, 8)), axis=0)
    method = replace(Collapsed.PRESETS["quick"], score=Additive(), max_rounds=2)
    result = fit(walks, method, seed=0, progress=False)
    assert result.provenance["temperature"] > 10
    assert result.checked.repetition == pytest.approx(result.provenance["repetition"], rel=0.3)
    assert result.edge_matrix().max() < 0.9


def test_what_follows_from_a_trend_is_found_and_counted_by_its_noise():
    rng = np.random.default_rng(5)
    trend = np.cumsum(rng.normal(size=400))
    follows = trend / trend.std() + 0.3 * rng.normal(size=400)
    last = follows + 0.3 * rng.normal(size=400)
    table = pd.DataFrame({"trend": trend, "follows": follows, "last": last})
    result = fit(table, Collapsed.PRESETS["quick"], seed=0, progress=False)
    edges = result.edge_probabilities()
    assert edges.loc["trend", "follows"] + edges.loc["follows", "trend"] > 0.95
    assert edges.loc["last", "follows"] + edges.loc["follows", "last"] > 0.95


def test_the_exact_posterior_stays_that_of_its_model_unless_told():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    rows = read(np.column_stack([a, np.abs(a) + 0.2 * a + 0.3 * rng.normal(size=500)]))
    plain, coarse = (fit(rows, Exact(coarsened=told), progress=False) for told in (False, True))
    assert plain.provenance["temperature"] == 1 < coarse.provenance["temperature"]
    adjacent = [one.edge_matrix().sum() for one in (plain, coarse)]
    assert adjacent[1] < adjacent[0]
