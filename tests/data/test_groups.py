"""Groups of rows that nobody marked: found where they are, and not where they are not."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayesdag.data.groups import FEWEST_ROWS, candidates


def two_groups(num_rows: int = 400, apart: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=num_rows)
    return rng.normal(size=(num_rows, 4)) + apart * labels[:, None] * [1, 1, 0, 0], labels


def agreement(found: np.ndarray, true: np.ndarray) -> float:
    same = (found == true).mean()
    return max(same, 1 - same)


@pytest.mark.parametrize("bend", [lambda x: x, np.exp], ids=["plain", "bent"])
def test_separate_clusters_are_found(bend):
    values, labels = two_groups()
    best = max(agreement(one.labels, labels) for one in candidates(bend(values), rng()))
    assert best > 0.95


def test_labels_of_separate_clusters_cost_their_entropy():
    values, _ = two_groups(4000, apart=8.0)
    found = candidates(values, rng())[0]
    fraction = np.bincount(found.labels) / len(values)
    entropy = -(fraction * np.log(fraction)).sum()
    assert found.log_odds == pytest.approx(-4000 * entropy, rel=0.01)


def test_labels_of_overlapping_clusters_cost_only_what_they_say():
    """Told the densities of the clusters, labels and rows together are the rows alone."""
    generator, centre = rng(), np.array([1.2, 1.2, 0, 0])
    labels = generator.integers(2, size=4000)
    values = generator.normal(size=(4000, 4)) + np.where(labels[:, None] == 1, centre, -centre)
    found = candidates(values, generator)[0]
    number = found.labels if values[found.labels == 1, 0].mean() > 0 else 1 - found.labels
    told = multivariate_normal(cov=np.eye(4))
    by_label = np.stack([told.logpdf(values + centre), told.logpdf(values - centre)])
    given = by_label[number, np.arange(4000)].sum()
    alone = (np.logaddexp(*by_label) - np.log(2)).sum()
    assert given + found.log_odds == pytest.approx(alone, abs=40)


def test_gaussian_rows_are_one_group():
    mixing = rng().normal(size=(5, 5))
    assert candidates(rng().normal(size=(600, 5)) @ mixing, rng()) == []


def test_codes_are_no_clusters():
    values = rng().normal(size=(400, 3))
    values[:, 2] = rng().integers(2, size=400) * 10
    assert candidates(values, rng()) == []


def test_few_rows_are_not_divided():
    values, _ = two_groups(FEWEST_ROWS - 1)
    assert candidates(values, rng()) == []


def test_many_columns_are_divided_along_few_directions():
    values, labels = two_groups(1000)
    noise = 0.3 * rng().normal(size=(1000, 60))
    wide = np.hstack([values, values[:, [0]] + noise])
    best = max(agreement(one.labels, labels) for one in candidates(wide, rng()))
    assert best > 0.9


def rng() -> np.random.Generator:
    return np.random.default_rng(1)
