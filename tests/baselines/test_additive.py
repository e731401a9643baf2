"""Additive regressions from one Gram matrix agree with least squares on the rows."""

import numpy as np
import pytest
from scipy import stats
from scipy.interpolate import CubicSpline

from bayesdag.baselines import additive


def rows(num_rows: int = 200, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, num_rows))
    c = np.sin(2 * a) + 0.3 * b**2 + 0.4 * rng.normal(size=num_rows)
    binary = (rng.random(num_rows) < 0.4).astype(float)
    return np.column_stack([a, b, c, binary])


def prepared(x: np.ndarray, size: int = 5):
    basis = additive.spline_basis(x, size)
    features = basis.features(x)
    observed = np.ones(x.shape, dtype=bool)
    return basis, features, additive.additive_stats(basis, features, observed)


def least_squares(x: np.ndarray, features: np.ndarray, node: int, parents: list[int]) -> float:
    """Sum of squares that is left, in units of the node's deviation."""
    design = np.column_stack([np.ones(len(x)), *(features[:, p] for p in parents)])
    target = x[:, node] / x[:, node].std()
    fitted = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return float(((target - fitted) ** 2).sum())


def test_splines_are_natural_cubic_ones_and_straight_outside():
    knots = np.array([-1.0, -0.2, 0.5, 1.5])
    values = np.array([0.3, -1.0, 0.8, 0.1])
    inside = np.linspace(-1, 1.5, 50)
    expected = CubicSpline(knots, values, bc_type="natural")(inside)
    np.testing.assert_allclose(additive.cardinal(knots, inside) @ values, expected, atol=1e-12)
    for outside in (np.array([-4.0, -3.0, -2.0]), np.array([2.0, 3.0, 4.0])):
        np.testing.assert_allclose(
            np.diff(additive.cardinal(knots, outside) @ values, n=2), 0, atol=1e-12
        )


def test_the_first_feature_is_the_variable_and_the_others_are_uncorrelated_with_it():
    x = rows()
    basis, features, _ = prepared(x)
    np.testing.assert_allclose(features[:, :, 0] * x.std(axis=0), x, atol=1e-12)
    for variable in range(3):
        matrix = np.corrcoef(features[:, variable].T)
        np.testing.assert_allclose(matrix, np.eye(5), atol=1e-6)
    np.testing.assert_array_equal(basis.sizes, [5, 5, 5, 1])
    assert (features[:, 3, 1:] == 0).all()  # two values have no curvature


@pytest.mark.parametrize("parents", [[], [0], [0, 1], [1, 0, 3]])
def test_a_fit_is_least_squares(parents):
    x = rows()
    _, features, found = prepared(x)
    fit = found.fit(2, np.array(parents, dtype=int))
    left = least_squares(x, features, 2, parents)
    num = 1 + sum(1 if p == 3 else 5 for p in parents)
    assert fit.num_coefficients == num
    assert fit.variance == pytest.approx(left / (len(x) - num), rel=1e-5)


def test_p_values_are_those_of_partial_f_tests():
    x = rows()
    _, features, found = prepared(x)
    fit = found.fit(2, np.array([0, 1, 3]))
    left = least_squares(x, features, 2, [0, 1, 3])
    for k, (without, num) in enumerate([([1, 3], 5), ([0, 3], 5), ([0, 1], 1)]):
        more = least_squares(x, features, 2, without)
        f = (more - left) / num / (left / (len(x) - 12))
        assert fit.p_values[k] == pytest.approx(stats.f.sf(f, num, len(x) - 12), rel=1e-3)
    assert fit.p_values[0] < 1e-10
    assert fit.p_values[2] > 1e-4


def test_gains_are_those_of_fits_however_many_blocks_are_in():
    _, _, found = prepared(rows())
    regression = additive.GrowingRegression(found, 2, np.array([0, 1, 3]))
    inside: list[int] = []
    for variable in (1, 0, 3):
        before = found.fit(2, np.array(inside, dtype=int)).log_likelihood
        after = found.fit(2, np.array([*inside, variable])).log_likelihood
        k = [0, 1, 3].index(variable)
        assert regression.gains[k] == pytest.approx(after - before, abs=1e-3)
        regression.add(variable)
        inside.append(variable)
        assert regression.gains[k] == -np.inf


def test_a_node_without_rows_gains_nothing():
    x = rows()
    basis = additive.spline_basis(x, 4)
    observed = np.ones(x.shape, dtype=bool)
    observed[:, 2] = False
    found = additive.additive_stats(basis, basis.features(x), observed)
    regression = additive.GrowingRegression(found, 2, np.array([0, 1]))
    assert (regression.gains == -np.inf).all()
    assert np.isfinite(found.fit(2, np.array([0])).log_likelihood)


def test_columns_with_repeated_values_have_evenly_spaced_knots():
    counts = np.random.default_rng(0).poisson(1.0, 300).astype(float)
    basis = additive.spline_basis(counts[:, None], 6)
    assert (np.diff(basis.knots[0]) > 0).all()
    assert 1 < basis.sizes[0] < len(np.unique(counts))
