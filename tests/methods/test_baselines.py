"""The baselines: orders by chance, by variance and by R², then regression."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag import fit, graphs
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods.empty import Empty
from bayesdag.methods.random_order import RandomOrder
from bayesdag.methods.sort_r2 import SortR2, explained_shares
from bayesdag.methods.sort_variance import SortVariance, variances
from bayesdag.orders import baselines

NAMES = ("a", "b", "c", "d")
CHAIN = np.eye(4, k=1, dtype=np.int8)  # a → b → c → d
ALL = pytest.mark.parametrize("method", [RandomOrder(), SortVariance(), SortR2()])


def chain(num_rows: int = 1000, seed: int = 0, units: tuple[float, ...] = (1, 1, 1, 1)) -> Dataset:
    """Rows of a → b → c → d with weights 1.5, in which variance and R² both grow."""
    noise = np.random.default_rng(seed).normal(size=(num_rows, 4))
    values = noise @ np.linalg.inv(np.eye(4) - 1.5 * CHAIN)
    return Dataset(values * units, NAMES)


def run(method, data: Dataset, seed: int = 0, knowledge: Constraints | None = None):
    return method(jax.random.key(seed), data, knowledge or Constraints.free(data.names), None)


def only_graph(posterior) -> np.ndarray:
    assert (posterior.graphs == posterior.graphs[0, 0]).all()
    return posterior.graphs[0, 0]


def test_sorting_by_variance_finds_a_chain_whose_variance_grows():
    np.testing.assert_array_equal(only_graph(run(SortVariance(), chain())), CHAIN)


def test_sorting_by_variance_reads_the_units_of_the_table():
    shrunk = chain(units=(1000, 100, 10, 1))
    np.testing.assert_array_equal(only_graph(run(SortVariance(), shrunk)), CHAIN.T)


def test_sorting_by_variance_uses_original_units_whatever_the_scaling():
    raw = chain()
    for kind in ("standardise", "centre", "none"):
        data = Dataset(raw.values, NAMES, scaling=Scaling.of(raw.values, kind))
        np.testing.assert_array_equal(only_graph(run(SortVariance(), data)), CHAIN)


def test_on_standardised_columns_the_variances_tie_and_chance_decides():
    raw = chain()
    data = Dataset(Scaling.of(raw.values).apply(raw.values), NAMES)
    found = {
        only_graph(run(SortVariance(num_samples=1), data, seed)).tobytes() for seed in range(8)
    }
    assert len(found) > 1


def test_sorting_by_r_squared_does_not_see_units():
    # In a long chain the ends are predicted from one side only: R² says a, d, then b and c.
    found, moved = (only_graph(run(SortR2(), chain(units=u))) for u in ((1,) * 4, (9, 7, 0.1, 3)))
    np.testing.assert_array_equal(found, moved)
    shares = explained_shares(chain())
    assert shares.argmin() == 0
    np.testing.assert_allclose(shares, explained_shares(chain(units=(9, 7, 0.1, 3))))


def test_sorting_by_r_squared_finds_a_fork_with_its_effects_last():
    # x2 has two causes and no effects, so it is predicted best.
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(1000, 2))
    values = np.column_stack([causes, causes @ [1.0, -1.0] + rng.normal(size=1000)])
    graph = only_graph(run(SortR2(), Dataset(values, ("x0", "x1", "x2"))))
    np.testing.assert_array_equal(graph[:, 2], [1, 1, 0])


def test_a_random_order_turns_every_edge_either_way_equally_often():
    data = Dataset(chain().values[:, :2], NAMES[:2])
    share = run(RandomOrder(num_samples=400), data).edge_matrix()
    assert share[0, 1] + share[1, 0] == pytest.approx(1)
    assert abs(share[0, 1] - 0.5) < 4 * 0.5 / 20  # four standard errors of 400 fair coins


@ALL
def test_functions_are_drawn_around_least_squares(method):
    data = chain(300)
    posterior = run(type(method)(num_samples=400), data)
    weights = posterior.params["mechanism"]["weights"][0]
    graph, x = posterior.graphs[0], data.scaled
    for i, j in ((0, 1), (1, 0), (2, 3)):
        draws = weights[(graph[:, :, j] == np.eye(4)[i]).all(axis=1), i, j]  # i is the only parent
        if len(draws) > 20:
            slope = x[:, i] @ x[:, j] / (x[:, i] @ x[:, i])
            error = draws.std() / len(draws) ** 0.5
            # BGe's prior counts as a row or so: it pulls by less than a part in a hundred.
            assert abs(draws.mean() - slope) < 4 * error + 0.01 * abs(slope)
            assert draws.std() > 0


def test_the_empty_graph_has_required_edges_only():
    knowledge = Knowledge(required=(("c", "a"),), forbidden=(("a", "b"),)).bind(NAMES)
    assert not only_graph(run(Empty(), chain())).any()
    np.testing.assert_array_equal(
        only_graph(run(Empty(), chain(), knowledge=knowledge)), knowledge.required
    )


@ALL
def test_weights_are_zero_where_there_is_no_edge(method):
    posterior = run(method, chain())
    assert not posterior.params["mechanism"]["weights"][posterior.graphs == 0].any()


@ALL
def test_the_number_of_draws_is_a_setting(method):
    assert run(type(method)(num_samples=7), chain()).num_draws == 7
    with pytest.raises(InputError, match="num_samples is 0"):
        run(type(method)(num_samples=0), chain())


@ALL
def test_fit_runs_it_and_says_that_it_is_a_baseline(method):
    posterior = fit(chain(), method)
    assert any(line.startswith("baseline") for line in posterior.describe())


@ALL
def test_tiers_come_before_what_the_data_say(method):
    # The chain backwards in tiers: directions must follow, and no link may be lost.
    knowledge = Knowledge(tiers=(("d",), ("c",), ("b",), ("a",))).bind(NAMES)
    posterior = run(method, chain(), knowledge=knowledge)
    np.testing.assert_array_equal(only_graph(posterior), CHAIN.T)


@ALL
def test_a_set_column_is_judged_by_the_rows_in_which_it_was_not(method):
    data = chain(2000)
    values, interventions = data.values.copy(), np.zeros((2000, 4), dtype=bool)
    values[1000:, 2] = -9 * values[1000:, 0]  # the experimenter looked at a, nature does not
    values[1000:, 3] = 1.5 * values[1000:, 2] + np.random.default_rng(1).normal(size=1000)
    interventions[1000:, 2] = True
    knowledge = Knowledge(tiers=(("a",), ("b",), ("c",), ("d",))).bind(NAMES)
    seeing = run(method, Dataset(values, NAMES, interventions), knowledge=knowledge)
    blind = run(method, Dataset(values, NAMES), knowledge=knowledge)
    np.testing.assert_array_equal(only_graph(seeing), CHAIN)
    assert not np.array_equal(only_graph(blind), CHAIN)


def test_variances_and_shares_of_set_columns_leave_out_what_was_set():
    data = chain()
    values, interventions = data.values.copy(), np.zeros((1000, 4), dtype=bool)
    interventions[500:, 1] = True
    values[500:, 1] = 100.0
    interventions[:, 3] = True
    mixed = Dataset(values, NAMES, interventions)
    np.testing.assert_allclose(variances(mixed)[:2], [values[:, 0].var(), values[:500, 1].var()])
    first_half = Dataset(data.values[:500], NAMES)
    assert explained_shares(mixed)[1] == pytest.approx(explained_shares(first_half)[1])
    assert variances(mixed)[3] == explained_shares(mixed)[3] == 0.0


@st.composite
def statements(draw):
    """Names, and required and forbidden edges that do not contradict each other."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(2, 6))
    names = tuple("abcdef"[:d])
    hidden = rng.permutation(d)  # required edges follow it, so they form no cycle
    before = hidden[:, None] < hidden[None, :]
    required = before & (rng.random((d, d)) < 0.2)
    forbidden = ~required & (rng.random((d, d)) < rng.choice([0.1, 0.5, 0.9]))
    np.fill_diagonal(forbidden, False)

    def edges(matrix):
        return tuple((names[i], names[j]) for i, j in np.argwhere(matrix))

    return names, edges(required), edges(forbidden)


@given(statements(), st.integers(0, 2**32 - 1))
def test_an_order_holds_every_node_once_and_causes_first(statement, seed):
    names, required, forbidden = statement
    knowledge = Knowledge(required=required, forbidden=forbidden).bind(names)
    before = baselines.precedence(knowledge)
    d = len(before)
    assert graphs.is_acyclic(before)
    order = baselines.constrained_order(np.random.default_rng(seed).random(d), before)
    assert sorted(order.tolist()) == list(range(d))
    place = np.argsort(order)
    assert not (knowledge.required & (place[:, None] > place[None, :])).any()


@given(statements(), st.integers(0, 2**32 - 1))
def test_every_allowed_dag_fits_an_order_worth_having(statement, seed):
    # A DAG that obeys the knowledge, joined with the precedence, is still acyclic: no graph
    # is ruled out by it.
    names, required, forbidden = statement
    knowledge = Knowledge(required=required, forbidden=forbidden).bind(names)
    rng = np.random.default_rng(seed)
    base = knowledge.required.copy()
    for i, j in rng.permutation(np.argwhere(~knowledge.forbidden)):
        grown = base.copy()
        grown[i, j] = True
        base = grown if graphs.is_acyclic(grown) else base
    assert knowledge.allows(base)
    assert graphs.is_acyclic(base | baselines.precedence(knowledge))


def test_without_knowledge_the_order_is_that_of_the_priority():
    free = baselines.precedence(Constraints.free(NAMES))
    order = baselines.constrained_order(np.array([3.0, 0.5, 2.0, 1.0]), free)
    np.testing.assert_array_equal(order, [1, 3, 2, 0])


def test_equal_values_are_ranked_by_chance_and_others_by_size(seed):
    rng = np.random.default_rng(seed)
    ranks = np.array(
        [baselines.ascending(np.array([2.0, 1.0, 1.0 + 1e-13]), rng) for _ in range(60)]
    )
    assert (ranks[:, 0] == 2).all()
    assert set(ranks[:, 1]) == {0.0, 1.0}
