"""Order chains against enumeration: is every move right, and do they add up?"""

from itertools import permutations

import numpy as np
import pytest

from bayesdag.orders import score_tables, tempering
from bayesdag.orders.score_tables import NodeTable
from bayesdag.runs import host_loop, loop
from tests.orders.test_score_tables import local_scores

D = 4
ORDERS = np.array(list(permutations(range(D))))


def random_tables(seed: int, d: int, spread: float = 1.0) -> list[NodeTable]:
    """Tables with independent entries: no symmetry that could hide a wrong rule."""
    rng = np.random.default_rng(seed)
    result = []
    for i in range(d):
        scores = rng.normal(0, spread, (1, 1 << (d - 1)))
        others = tuple(j for j in range(d) if j != i)
        result.append(NodeTable(i, (), others, ((),), scores, scores[0]))
    return result


def log_posterior(node_tables, log_weights, penalties) -> np.ndarray:
    """Of every component and order, from the definition."""
    d = len(node_tables)
    result = np.zeros((len(log_weights), len(list(permutations(range(d))))))
    for c, penalty in enumerate(penalties):
        sums = [table.log_sums(penalty)[0] for table in node_tables]
        for k, order in enumerate(permutations(range(d))):
            result[c, k] = log_weights[c]
            for place, node in enumerate(order):
                before = order[:place]
                bits = [1 << b for b, j in enumerate(node_tables[node].uncertain) if j in before]
                result[c, k] += sums[node][sum(bits)]
    return result


def softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values - values.max())
    return weights / weights.sum()


@pytest.fixture
def world(seed):
    """Tables of four nodes under two components, and their exact log posterior."""
    rng = np.random.default_rng(seed)
    node_tables = random_tables(seed, D)
    log_weights, penalties = rng.normal(size=2), rng.normal(size=(2, D))
    exact = log_posterior(node_tables, log_weights, penalties)
    return score_tables.lookup(node_tables, log_weights, penalties), exact


def from_target(rng, table, exact, betas: np.ndarray, num: int) -> tuple:
    """Replicas that already follow the tempered posteriors of one rung each, and their context."""
    context = tempering.TemperingContext(table, np.tile(betas, (num, 1)))
    draws = [rng.choice(exact.size, size=num, p=softmax(beta * exact.ravel())) for beta in betas]
    component, order = np.divmod(np.stack(draws, axis=1), exact.shape[1])
    return tempering.init(context, ORDERS[order], component).replicas, context


def shares(replicas: tempering.Replicas, exact: np.ndarray) -> np.ndarray:
    orders = np.argsort(replicas.position, axis=0).T
    code = codes(orders, replicas.component, ORDERS)
    return np.bincount(code, minlength=exact.size) / len(code)


def codes(orders: np.ndarray, component: np.ndarray, all_orders: np.ndarray) -> np.ndarray:
    """Number of each (component, order) pair; `all_orders` in lexical order."""
    digits = all_orders.shape[1] ** np.arange(all_orders.shape[1])[::-1]
    return component * len(all_orders) + np.searchsorted(all_orders @ digits, orders @ digits)


def surprise(found: np.ndarray, expected: np.ndarray, num: int) -> float:
    """Chi-square of the common cells, in standard deviations above its mean."""
    common = num * expected > 10
    chi_square = (num * (found - expected) ** 2 / expected)[common].sum()
    return float((chi_square - common.sum()) / np.sqrt(2 * common.sum()))


def relocated(uniform, state, context):
    """Replicas after three variables have been relocated."""
    state = tempering.Replicas(*(leaf.copy() for leaf in state))
    for node, own in enumerate(uniform):
        tempering.relocate(node, own, state, context)
    return state


def recomponent(uniform, state, context):
    return tempering.choose_component(uniform[0], state, context)


@pytest.mark.parametrize("move", [relocated, recomponent])
@pytest.mark.parametrize("beta", [1.0, 0.4])
def test_each_move_leaves_the_tempered_posterior_as_it_is(move, beta, world, seed):
    table, exact = world
    num, rng = 40_000, np.random.default_rng(seed)
    start, context = from_target(rng, table, exact, np.array([beta]), num)
    state = move(rng.random((3, num), dtype=np.float32), start, context)
    changed = (state.position != start.position).any(axis=0) | (state.component != start.component)
    assert changed.mean() > 0.05
    assert surprise(shares(state, exact), softmax(beta * exact.ravel()), num) < 4.5


def test_exchanges_keep_the_posterior_of_every_rung(world, seed):
    table, exact = world
    num, rng = 40_000, np.random.default_rng(seed)
    betas = np.array([1.0, 0.5, 0.2])
    state, context = from_target(rng, table, exact, betas, num)
    for parity in (0, 1):
        before = np.sort(state.log_prob.reshape(num, 3), axis=1)
        state, accepted = tempering.exchange(rng.random(num * 3), state, context, parity)
        assert 0.2 < accepted[:, parity].mean() < 1
        # No state is lost or doubled.
        np.testing.assert_array_equal(np.sort(state.log_prob.reshape(num, 3), axis=1), before)
    for rung, beta in enumerate(betas):
        found = shares(tempering.Replicas(*(leaf[..., rung::3] for leaf in state)), exact)
        assert surprise(found, softmax(beta * exact.ravel()), num) < 4.5


def run(key, table, start: np.ndarray) -> loop.RunState:
    """Ladders of three rungs that all start from one order."""
    starts = np.tile(start, (64, 3, 1))
    context = tempering.TemperingContext(table, tempering.ladders(64, 3, 4.0))
    state = tempering.init(context, starts, np.zeros((64, 3), dtype=int))
    return host_loop.run(key, tempering.OrderChains(context), state, loop.Schedule(20, 400, 1))


@pytest.mark.parametrize("d", [4, 5])
def test_chains_from_one_bad_start_sample_the_exact_order_posterior(d, key, seed):
    rng = np.random.default_rng(seed)
    node_tables = random_tables(seed, d)
    log_weights, penalties = rng.normal(size=2), rng.normal(size=(2, d))
    exact = log_posterior(node_tables, log_weights, penalties)
    all_orders = np.array(list(permutations(range(d))))
    worst = all_orders[exact[0].argmin()]
    done = run(key, score_tables.lookup(node_tables, log_weights, penalties), worst)
    draws = codes(np.asarray(done.draws.order), np.asarray(done.draws.component), all_orders)
    each = np.stack([np.bincount(c, minlength=exact.size) for c in draws.T]) / len(draws)
    # Ladders are independent, so their spread is the error bar.
    error = each.std(axis=0) / np.sqrt(len(each) - 1)
    target = softmax(exact.ravel())
    gap = np.abs(each.mean(axis=0) - target)
    assert (gap < 5 * error)[target > 2e-3].all()
    # Half the sum of |N(0, error²)|, which is what the error bars alone would give.
    assert gap.sum() / 2 < 1.5 * error.sum() * np.sqrt(2 / np.pi) / 2
    assert (done.state.exchanges.mean(axis=0) > 0.1 * (20 + 400)).all()


def test_orders_that_break_a_required_edge_are_never_entered(key, seed):
    scores = local_scores(seed, 5, required=[("v3", "v0"), ("v0", "v4")])
    lists = [[j for j in range(5) if j != i] for i in range(5)]
    node_tables = [score_tables.tabulate(scores, i, (), some) for i, some in enumerate(lists)]
    table = score_tables.lookup(node_tables, np.zeros(2), np.zeros((2, 5)))
    orders = np.asarray(run(key, table, np.array([3, 0, 4, 1, 2])).draws.order)
    position = np.argsort(orders, axis=-1)
    assert (position[..., 3] < position[..., 0]).all()
    assert (position[..., 0] < position[..., 4]).all()
    assert len(np.unique(orders.reshape(-1, 5), axis=0)) > 5


def test_what_moves_keep_up_to_date_equals_what_is_computed_from_scratch(key, seed):
    scores = local_scores(seed, 5, spread=0.5)
    node_tables = [
        score_tables.tabulate(scores, 0, (1, 2, 3), (4,)),
        *(score_tables.tabulate(scores, i, (), [(i + k) % 5 for k in (1, 2)]) for i in range(1, 5)),
    ]
    table = score_tables.lookup(node_tables, np.zeros(2), np.zeros((2, 5)))
    state = run(key, table, np.array([1, 2, 3, 0, 4])).state
    context = tempering.TemperingContext(table, tempering.ladders(64, 3, 4.0))
    component = state.replicas.component.reshape(64, 3)
    fresh = tempering.init(context, state.orders, component).replicas
    np.testing.assert_array_equal(state.replicas.position, fresh.position)
    np.testing.assert_array_equal(state.replicas.index, fresh.index)
    np.testing.assert_array_equal(state.replicas.value, fresh.value)
    np.testing.assert_allclose(state.replicas.log_prob, fresh.log_prob, atol=1e-3)
    assert len(np.unique(state.orders.reshape(-1, 5), axis=0)) > 20
