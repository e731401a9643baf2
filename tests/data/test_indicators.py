"""Indicators of one column of levels, recognised by never being true together."""

import numpy as np
import pandas as pd
import pytest

from bayesdag import read
from bayesdag.data import indicators
from bayesdag.errors import BayesdagWarning


def frame(num_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    health = rng.integers(0, 4, num_rows)
    return pd.DataFrame(
        {
            "good": (health == 1).astype(int),
            "x": rng.normal(size=num_rows),
            "fair": (health == 2).astype(int),
            "poor": (health == 3).astype(int),
            "other": rng.integers(0, 2, num_rows),
        }
    )


def test_indicators_of_one_column_are_named_together():
    with pytest.warns(BayesdagWarning, match="good, fair, poor are never true in the same row"):
        read(frame())


def test_one_row_in_which_two_are_true_is_enough_to_say_nothing():
    table = frame()
    table.loc[0, ["good", "fair", "poor"]] = 1
    read(table)


def test_rare_columns_may_miss_each_other_by_chance():
    table = frame()
    rare = pd.DataFrame({"a": np.arange(400) < 5, "b": np.arange(400) > 395, "x": table["x"]})
    data = read(rare)
    assert indicators.exclusive(data.values, data.kinds, data.missing) == []
