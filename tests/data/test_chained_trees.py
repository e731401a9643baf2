"""The first completion: measured cells stay, and gaps get values that occur."""

import numpy as np

from bayesdag.data import Kind, chained_trees

KINDS = (
    Kind("continuous"),
    Kind("categorical", ("a", "b", "c")),
    Kind("count"),
    Kind("continuous"),
)


def table(num_rows=400):
    rng = np.random.default_rng(0)
    x = rng.normal(size=num_rows)
    level = np.digitize(x + 0.3 * rng.normal(size=num_rows), [-0.5, 0.5]).astype(float)
    return np.column_stack(
        [x, level, rng.poisson(np.exp(level)), 2 * x + 0.1 * rng.normal(size=num_rows)]
    )


def test_measured_cells_stay_and_gaps_get_values_that_occur():
    values = table()
    missing = np.random.default_rng(1).random(values.shape) < 0.2
    whole = chained_trees.complete(np.random.default_rng(2), values, missing, KINDS)
    np.testing.assert_array_equal(whole[~missing], values[~missing])
    for j in range(4):
        assert np.isin(whole[missing[:, j], j], values[~missing[:, j], j]).all()


def test_gaps_follow_what_the_other_columns_say():
    values = table()
    missing = np.zeros(values.shape, bool)
    missing[::3, [1, 3]] = True
    whole = chained_trees.complete(np.random.default_rng(2), values, missing, KINDS)
    gap = missing[:, 3]
    assert np.abs(whole[gap, 3] - values[gap, 3]).mean() < 0.4  # 2 where nothing is said
    assert (whole[gap, 1] == values[gap, 1]).mean() > 0.5


def test_gaps_follow_curves_that_no_line_tells():
    rng = np.random.default_rng(3)
    x = rng.normal(size=800)
    values = np.column_stack([x, np.abs(x) + 0.1 * rng.normal(size=800)])
    missing = np.zeros(values.shape, bool)
    missing[::3, 1] = True
    kinds = (Kind("continuous"),) * 2
    whole = chained_trees.complete(np.random.default_rng(4), values, missing, kinds)
    gap = missing[:, 1]
    assert np.corrcoef(whole[gap, 1], np.abs(x[gap]))[0, 1] > 0.8  # 0 by a line


def test_a_column_of_one_value_and_few_rows_are_completed():
    values = np.column_stack([np.zeros(10), np.arange(10.0)])
    missing = np.zeros(values.shape, bool)
    missing[2, 1] = True
    kinds = (Kind("continuous"),) * 2
    whole = chained_trees.complete(np.random.default_rng(4), values, missing, kinds)
    assert np.isin(whole[2, 1], values[~missing[:, 1], 1])
