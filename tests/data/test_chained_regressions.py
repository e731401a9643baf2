"""The first completion: measured cells stay, and gaps get values that occur."""

import numpy as np

from bayesdag.data import Kind, chained_regressions

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
    whole = chained_regressions.complete(np.random.default_rng(2), values, missing, KINDS)
    np.testing.assert_array_equal(whole[~missing], values[~missing])
    for j in range(4):
        assert np.isin(whole[missing[:, j], j], values[~missing[:, j], j]).all()


def test_gaps_follow_what_the_other_columns_say():
    values = table()
    missing = np.zeros(values.shape, bool)
    missing[::3, [1, 3]] = True
    whole = chained_regressions.complete(np.random.default_rng(2), values, missing, KINDS)
    gap = missing[:, 3]
    assert np.abs(whole[gap, 3] - values[gap, 3]).mean() < 0.4  # 2 where nothing is said
    assert (whole[gap, 1] == values[gap, 1]).mean() > 0.5
