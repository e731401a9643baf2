"""Kinds of columns: what a Dataset keeps of them, and how they are found."""

import json

import numpy as np
import pytest

from bayesdag.data import Dataset, Kind
from bayesdag.errors import InputError

COLOUR = Kind("categorical", ("blue", "green", "red"), "declared")
RNG = np.random.default_rng(0)
MEASURED = RNG.normal(3.0, 2.0, size=30)
CODES = np.tile([0.0, 2.0, 1.0], 10)
TABLE = np.column_stack([MEASURED, CODES, RNG.poisson(3, size=30)])
KINDS = (Kind("continuous"), COLOUR, Kind("count"))
NAMES = ("size", "colour", "seeds")


def test_columns_are_continuous_unless_something_is_said():
    data = Dataset(TABLE, NAMES)
    assert {kind.name for kind in data.kinds} == {"continuous"}
    assert data.missing is None
    assert data.hash == Dataset(TABLE, NAMES, kinds=(Kind("continuous", (), "why"),) * 3).hash


def test_codes_and_counts_keep_their_unit_and_measurements_do_not():
    data = Dataset(TABLE, NAMES, kinds=KINDS)
    np.testing.assert_array_equal(data.scaled[:, 1:], TABLE[:, 1:])
    assert data.scaled[:, 0].std() == pytest.approx(1)


def test_kinds_and_gaps_are_part_of_the_hash():
    gap = np.zeros(TABLE.shape, bool)
    assert Dataset(TABLE, NAMES, missing=gap).hash == Dataset(TABLE, NAMES).hash
    gap[3, 0] = True
    hashes = {
        Dataset(TABLE, NAMES).hash,
        Dataset(TABLE, NAMES, kinds=KINDS).hash,
        Dataset(TABLE, NAMES, kinds=KINDS, missing=gap).hash,
        Dataset(TABLE, NAMES, missing=gap).hash,
    }
    assert len(hashes) == 4


def test_the_summary_keeps_kinds_and_gaps_as_plain_data():
    gap = np.zeros(TABLE.shape, bool)
    gap[:3, 1] = True
    summary = Dataset(TABLE, NAMES, kinds=KINDS, missing=gap).summary()
    kept = json.loads(json.dumps(summary))["columns"]["colour"]
    assert (kept["kind"], kept["levels"]) == ("categorical", ["blue", "green", "red"])
    assert (kept["reason"], kept["missing_fraction"]) == ("declared", 0.1)


def test_placeholders_do_not_count_for_the_scaling():
    gap = np.zeros(TABLE.shape, bool)
    gap[:10, 0] = True
    table = TABLE.copy()
    table[:10, 0] = 1e6
    data = Dataset(table, NAMES, missing=gap)
    assert data.scaled[10:, 0].mean() == pytest.approx(0, abs=1e-9)


def test_indicators_of_environments_are_binary_and_scaled_as_before():
    labels = ["here"] * 20 + ["there"] * 10
    gap = np.zeros(TABLE.shape, bool)
    gap[0, 0] = True
    data = Dataset(TABLE, NAMES, environment={"site": labels}, kinds=KINDS, missing=gap)
    assert data.kinds[-1][:2] == ("binary", ("here", "there"))
    assert data.kinds_present == {"continuous", "categorical", "count"}
    assert data.scaled[:, -1].std() == pytest.approx(1)
    assert data.missing is not None
    assert data.missing.shape == data.values.shape
    again = Dataset(data.values, data.names, environment=data.environment)
    assert again.kinds[-1] == data.kinds[-1]


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        ((Kind("number"), COLOUR, Kind("count")), "'size' is declared 'number', which is no kind"),
        ((Kind("count"), COLOUR, Kind("count")), "'size' is count and holds .* in row 1"),
        ((Kind("continuous"), Kind("ordinal"), Kind("count")), "'colour' .* without levels"),
        ((Kind("continuous"), Kind("binary", ("a", "b")), Kind("count")), "holds 2 in row 2"),
        ((Kind("continuous"), Kind("binary", ("a",)), Kind("count")), "a binary column has two"),
        ((Kind("continuous"),), "1 kinds for 3 columns"),
    ],
)
def test_kinds_that_the_values_contradict_are_refused(kinds, word):
    with pytest.raises(InputError, match=word):
        Dataset(TABLE, NAMES, kinds=kinds)
