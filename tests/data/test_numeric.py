"""Every way of storing numbers is accepted; everything else is named and refused."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from bayesdag.data import read
from bayesdag.errors import BayesdagWarning, InputError

NUM_ROWS = 40
NUMBERS = np.random.default_rng(0).integers(0, 2, NUM_ROWS)


def with_column(column) -> pd.DataFrame:
    other = np.random.default_rng(1).normal(size=NUM_ROWS)
    return pd.DataFrame({"other": other, "column": column})


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int8", "uint16", "int64", "float32", "float64"),
        *("boolean", "Int64", "UInt8", "Float32", "Float64"),
        *("bool[pyarrow]", "int32[pyarrow]", "double[pyarrow]", "Sparse[float64]"),
    ],
)
def test_every_numeric_type_becomes_the_same_numbers(dtype):
    frame = with_column(pd.Series(NUMBERS).astype(bool).astype(dtype))
    np.testing.assert_array_equal(read(frame).values[:, 1], NUMBERS)


@pytest.mark.parametrize("convert", [int, float, bool, Decimal, np.float32, np.bool_])
def test_numbers_stored_as_objects_are_accepted(convert):
    column = pd.Series([convert(int(x)) for x in NUMBERS], dtype=object)
    np.testing.assert_array_equal(read(with_column(column)).values[:, 1], NUMBERS)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(NUMBERS, dtype="float64").mask(np.arange(NUM_ROWS) == 3),
        pd.Series(NUMBERS, dtype="Int64").mask(np.arange(NUM_ROWS) == 3),
        pd.Series(NUMBERS, dtype="double[pyarrow]").mask(np.arange(NUM_ROWS) == 3),
        pd.Series([None if i == 3 else i % 2 for i in range(NUM_ROWS)], dtype=object),
    ],
    ids=["numpy", "nullable", "arrow", "objects"],
)
def test_missing_values_are_counted_and_located_whatever_the_type(column):
    with pytest.warns(BayesdagWarning, match=r"1 of 80 cells are missing \('column': 2.5%\)"):
        data = read(with_column(column))
    assert data.missing is not None
    assert np.argwhere(data.missing).tolist() == [[3, 1]]
    assert np.isfinite(data.values).all()


def text(first, rest="1.5"):
    """A column whose fifth entry is `first`; the others are `rest`."""
    return [first if i == 4 else rest for i in range(NUM_ROWS)]


REFUSED = {
    "words": (text("high"), "'column' holds text .'high' in row 5. among numbers; correct"),
    "decimal comma": (text("2,75", "1,5"), "decimal points.*decimal=','"),
    "thousands": (text("1,234", "12,000"), "thousands separators or decimal points.*decimal=','"),
    "small decimals": (text("0,126", "1,329"), "decimal points.*decimal=','"),
    "date as text": (text("2024-01-31", "2024-02-01"), "looks like a date"),
    "names of columns": (text("", "other"), "pass its name as `interventions`"),
    "arrow text": (pd.Series(text("high"), dtype="string[pyarrow]"), "holds text .'high' in row 5"),
    "objects": (pd.Series(text("high", 1.5), dtype=object), "holds text .'high' in row 5"),
    "timestamps": (pd.date_range("2020-05-17", periods=NUM_ROWS), "dates or times .2020-05-17"),
    "time zone": (pd.date_range("2020-05-17", periods=NUM_ROWS, tz="UTC"), "dates or times"),
    "durations": (pd.to_timedelta(range(NUM_ROWS), unit="s"), "dates or times"),
    "periods": (pd.period_range("2020-05", periods=NUM_ROWS, freq="M"), "dates or times .2020-05"),
    "date objects": ([datetime.date(2020, 5, 17)] * NUM_ROWS, "dates or times .2020-05-17"),
    "complex": (np.full(NUM_ROWS, 1 + 2j), "complex numbers; pass real and imaginary"),
    "complex objects": (pd.Series([1 + 2j] * NUM_ROWS, dtype=object), "complex numbers"),
    "lists": (pd.Series([[1, 2]] * NUM_ROWS, dtype=object), "holds a list in row 1"),
}


@pytest.mark.parametrize(("column", "word"), REFUSED.values(), ids=REFUSED)
def test_a_column_without_numbers_is_refused_by_name_value_and_remedy(column, word):
    with pytest.raises(InputError, match=f"column 'column'.*{word}|{word}"):
        read(with_column(column))


@pytest.mark.parametrize("sure", ["1,034,567", "1,234,567.5"])
def test_commas_that_can_only_separate_thousands_are_read(sure):
    column = [sure if i == 4 else f"{1 + i % 9},{i:03d},005" for i in range(NUM_ROWS)]
    values = read(with_column(column)).values[:, 1]
    assert values[4] == float(sure.replace(",", ""))
    assert values[5] == 6005005


@pytest.mark.parametrize("sure", ["1.034.567", "1.234.567,5"])
def test_points_that_can_only_separate_thousands_are_read(sure):
    column = [sure if i == 4 else f"{1 + i % 9}.{i:03d}.005,25" for i in range(NUM_ROWS)]
    column[7] = "12,5"
    values = read(with_column(column)).values[:, 1]
    assert values[4] == float(sure.replace(".", "").replace(",", "."))
    assert values[5] == 6005005.25
    assert values[7] == 12.5


def test_arrow_dates_are_refused():
    days = pd.Series([datetime.date(2020, 5, 17)] * NUM_ROWS, dtype="date32[pyarrow]")
    with pytest.raises(InputError, match="column 'column' holds dates or times .2020-05-17"):
        read(with_column(days))


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.full((9, 2), 1j), "'x0' holds complex numbers"),
        (np.full((9, 2), "low"), "'x0' is always 'low'"),
        (np.full((9, 2), np.datetime64("2020-05-17")), "'x0' holds dates"),
    ],
)
def test_arrays_without_numbers_are_refused(array, word):
    with pytest.raises(InputError, match=word):
        read(array)


@pytest.mark.parametrize("dtype", [object, "string[pyarrow]", "category"])
def test_numbers_stored_as_text_are_numbers_and_as_categories_levels(dtype):
    data = read(with_column(pd.Series(["1.5", "2.5"] * 20, dtype=dtype)))
    assert data.kinds[1].levels == ("1.5", "2.5")
    np.testing.assert_array_equal(data.values[:, 1], np.arange(NUM_ROWS) % 2)


def test_codes_for_missing_cells_among_numbers_are_gaps_with_a_word():
    column = [f"{x:.3f}" for x in np.random.default_rng(3).normal(size=NUM_ROWS)]
    column[4] = "?"
    with pytest.warns(BayesdagWarning) as said:
        data = read(with_column(column))
    assert any("holds '?' (row 5) among numbers; 1 such cells" in str(w.message) for w in said)
    assert data.missing is not None
    assert data.missing.sum() == 1
    assert data.kinds[1].name == "continuous"
