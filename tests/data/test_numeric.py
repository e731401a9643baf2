"""Every way of storing numbers is accepted; everything else is named and refused."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from bayesdag.data import read
from bayesdag.errors import InputError

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
        pd.Series([None if i == 3 else 1 for i in range(NUM_ROWS)], dtype=object),
    ],
    ids=["numpy", "nullable", "arrow", "objects"],
)
def test_missing_values_are_counted_and_located_whatever_the_type(column):
    with pytest.raises(InputError, match=r"1 missing value \('column': 1; the first in row 4\)"):
        read(with_column(column))


def text(first, rest="1.5"):
    """A column whose fifth entry is `first`; the others are `rest`."""
    return [first if i == 4 else rest for i in range(NUM_ROWS)]


REFUSED = {
    "words": (text("high"), "'column' holds text .'high' in row 5.; drop the column or encode"),
    "decimal comma": (text("2,75", "1,5"), "decimal points.*decimal=','"),
    "thousands": (text("1,234.5", "12,000"), "thousands separators.*thousands=','"),
    "both": (text("1.234,5", "12.000,1"), "decimal=',' and thousands='.'"),
    "date as text": (text("2024-01-31", "2024-02-01"), "looks like a date"),
    "missing code": (text("?"), "'[?]' in row 5.; if this stands for a missing value"),
    "numbers as text": (text("2.5"), "holds numbers stored as text .'1.5' in row 1."),
    "names of columns": (text("", "other"), "pass its name as `interventions`"),
    "arrow text": (pd.Series(text("high"), dtype="string[pyarrow]"), "holds text .'high' in row 5"),
    "objects": (pd.Series(text("high", 1.5), dtype=object), "holds text .'high' in row 5"),
    "categories": (pd.Series(text("b", "a"), dtype="category"), "holds text .'a' in row 1"),
    "numeric categories": (pd.Series(text(2, 1), dtype="category"), "numbers stored as categories"),
    "timestamps": (pd.date_range("2020-05-17", periods=NUM_ROWS), "dates or times .2020-05-17"),
    "time zone": (pd.date_range("2020-05-17", periods=NUM_ROWS, tz="UTC"), "dates or times"),
    "durations": (pd.to_timedelta(range(NUM_ROWS), unit="s"), "dates or times"),
    "periods": (pd.period_range("2020-05", periods=NUM_ROWS, freq="M"), "dates or times .2020-05"),
    "date objects": ([datetime.date(2020, 5, 17)] * NUM_ROWS, "dates or times .2020-05-17"),
    "complex": (np.full(NUM_ROWS, 1 + 2j), "complex numbers; pass real and imaginary"),
    "complex objects": (pd.Series([1 + 2j] * NUM_ROWS, dtype=object), "complex numbers"),
    "lists": (pd.Series([[1, 2]] * NUM_ROWS, dtype=object), "holds text"),
}


@pytest.mark.parametrize(("column", "word"), REFUSED.values(), ids=REFUSED)
def test_a_column_without_numbers_is_refused_by_name_value_and_remedy(column, word):
    with pytest.raises(InputError, match=f"column 'column'.*{word}|{word}"):
        read(with_column(column))


def test_arrow_dates_are_refused():
    days = pd.Series([datetime.date(2020, 5, 17)] * NUM_ROWS, dtype="date32[pyarrow]")
    with pytest.raises(InputError, match="column 'column' holds dates or times .2020-05-17"):
        read(with_column(days))


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.full((9, 2), 1j), "'x0' holds complex numbers"),
        (np.full((9, 2), "low"), "'x0' holds text .'low' in row 1"),
        (np.full((9, 2), np.datetime64("2020-05-17")), "'x0' holds dates"),
    ],
)
def test_arrays_without_numbers_are_refused(array, word):
    with pytest.raises(InputError, match=word):
        read(array)
