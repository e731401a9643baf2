"""The next experiment, where theory knows the answer: an equivalence class of chains."""

import numpy as np
import pytest

from bayesdag.data import Dataset
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.posterior.experiment_design import NOTHING
from bayesdag.posterior.levels import usual_levels
from tests.posteriors import linear

# a -> b -> c, a <- b -> c and a <- b <- c: no observation can tell them apart.
CHAINS = np.array(
    [
        [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
        [[0, 0, 0], [1, 0, 1], [0, 0, 0]],
        [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
    ],
    dtype=np.int8,
)
LOG2, LOG3 = np.log(2), np.log(3)


def chain_posterior(seed: int, copies: int = 30, num_rows: int = 3000):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=num_rows)
    b = a + 0.5 * rng.normal(size=num_rows)
    c = b + 0.5 * rng.normal(size=num_rows)
    data = Dataset(np.c_[a, 20 + 7 * b, 0.1 * c], ("a", "b", "c"))
    return linear(np.repeat(CHAINS, copies, axis=0)[None], data, seed=seed)


def gains(table):
    return dict(zip(table["set"], table["gain"], strict=True))


def test_the_middle_of_a_chain_tells_all_three_graphs_apart(seed):
    """Setting b moves c, both, or a: log 3. An end tells one graph from the other two."""
    table = chain_posterior(seed).next_experiment(num_rows=40)
    assert table.loc[0, "set"] == "b"
    found = gains(table)
    assert found["b"] == pytest.approx(LOG3, abs=0.05)
    assert found["a"] == pytest.approx(LOG3 - 2 / 3 * LOG2, abs=0.1)
    assert found["c"] == pytest.approx(LOG3 - 2 / 3 * LOG2, abs=0.1)
    assert abs(found[NOTHING]) < 0.1
    assert table.loc[0, "fraction removed"] == pytest.approx(1, abs=0.05)


def test_a_question_about_an_edge_has_another_answer(seed):
    """a -> b is settled by setting a or b; c only tells whether the chain runs c to a."""
    found = gains(chain_posterior(seed).next_experiment(about=("a", "b"), num_rows=40))
    entropy = LOG3 - 2 / 3 * LOG2
    assert found["a"] == pytest.approx(entropy, abs=0.05)
    assert found["b"] == pytest.approx(entropy, abs=0.05)
    assert found["c"] == pytest.approx(entropy - 2 / 3 * LOG2, abs=0.1)


def test_cost_decides_between_equals(seed):
    posterior = chain_posterior(seed)
    dear = posterior.next_experiment(about=("a", "b"), cost={"b": 5}, num_rows=40)
    assert dear.loc[0, "set"] == "a"
    assert dear.set_index("set").loc["b", "cost"] == 5
    graph = posterior.next_experiment(cost={"b": 1.2}, num_rows=40)
    assert graph.loc[0, "set"] == "b"


def test_a_question_about_an_effect_is_answered_by_setting_its_cause(seed):
    posterior = chain_posterior(seed)
    effect = posterior.effect("a", "c")
    table = posterior.next_experiment(about=effect, num_rows=40)
    found = gains(table)
    assert {table.loc[0, "set"], table.loc[1, "set"]} == {"a", "b"}
    assert found["a"] > 3 * found["c"] > 0


def test_candidates_are_those_that_can_be_set(seed):
    table = chain_posterior(seed).next_experiment(["c", "a"], num_rows=40)
    assert set(table["set"]) == {"a", "c", NOTHING}


def test_nothing_is_gained_where_nothing_is_in_doubt(seed):
    data = chain_posterior(seed).sample(200)
    posterior = linear(
        np.repeat(CHAINS[:1], 90, axis=0)[None], Dataset(data.to_numpy(), ("a", "b", "c"))
    )
    assert (posterior.next_experiment(num_rows=40)["gain"] == 0).all()  # pyright: ignore[reportGeneralTypeIssues]


def test_more_rows_never_make_the_answer_less_sure(seed):
    few, many = (gains(chain_posterior(seed).next_experiment(num_rows=n)) for n in (2, 40))
    assert few["b"] < many["b"]


def test_bounds_that_are_far_apart_bring_a_warning(seed):
    """Few rows were fitted, so that draws differ much and each explains only itself."""
    posterior = chain_posterior(seed, copies=3, num_rows=8)
    with pytest.warns(BayesdagWarning, match="between 0 and .* nats; fit with more draws, or plan"):
        posterior.next_experiment(num_rows=4000)
    with pytest.warns(BayesdagWarning, match="nats; raise num_draws, or plan fewer rows"):
        posterior.next_experiment(num_rows=4000, num_draws=6)


def test_bounds_surround_the_gain_and_never_leave_the_possible(seed):
    table = chain_posterior(seed).next_experiment(num_rows=40)
    assert np.all(table["low"] <= table["gain"])
    assert np.all(table["gain"] <= table["high"])
    assert np.all(table["low"] >= 0)
    assert table["fraction removed"].between(0, 1).all()
    assert np.all(table["error"] >= 0)


def test_a_binary_column_is_set_to_its_two_values():
    facts = {"mean": 0.3, "sd": 0.4, "min": 0.0, "max": 1.0}
    found = usual_levels({"drug": facts | {"num_distinct": 2}, "dose": facts | {"num_distinct": 9}})
    assert found == {"drug": (0.0, 1.0), "dose": (0.3 - 0.4, 0.3 + 0.4)}


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"candidates": ["q"]}, "no column is called 'q'"),
        ({"cost": {"q": 2}}, "no column is called 'q'"),
        ({"cost": {"a": 0}}, "positive"),
        ({"about": ("a", "b", "c")}, "source, target"),
        ({"about": ("a", "a")}, "both 'a'"),
        ({"num_rows": 0}, "num_rows is 0; it must be a whole number, 1 or more"),
        ({"num_draws": 1}, "num_draws is 1; it must be a whole number, 2 or more"),
        ({"num_experiments": 1}, "num_experiments is 1"),
        ({"levels": {"a": (0.0, 1e300)}}, "with a set overflow"),
    ],
)
def test_bad_questions_are_refused_in_words(question, words):
    with pytest.raises(InputError, match=words):
        chain_posterior(0, copies=2, num_rows=50).next_experiment(**question)
