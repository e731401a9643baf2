"""Data no method could use are refused; data worth a second look get a warning."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.data import Dataset, read, validation
from bayesdag.errors import BayesdagWarning, InputError
from tests.toys import NAMES, toy_frame


def normal(num_rows=100, num_columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(num_rows, num_columns))


def silent(source, **options) -> None:
    """Reads without any warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(source, **options)


def test_missing_values_are_counted_by_column_and_located():
    frame = toy_frame()
    frame.loc[[6, 9], "soil"] = np.nan
    frame.loc[4, "price"] = np.nan
    word = r"3 missing values \('soil': 2, 'price': 1; the first in row 5\); pass the table itself"
    with pytest.raises(InputError, match=word):
        Dataset(frame.to_numpy(), NAMES)


@pytest.mark.parametrize(
    ("value", "remedy"), [(np.inf, "replace"), (-np.inf, "drop"), (1e100, "unit")]
)
def test_infinite_and_immense_values_are_refused(value, remedy):
    frame = toy_frame()
    frame.loc[2, "crop"] = value
    with pytest.raises(InputError, match=f"column 'crop' holds .* in row 3, .*{remedy}"):
        read(frame)


def test_constant_columns_are_refused_by_name_and_value():
    frame = toy_frame().assign(PKC=3.5, JNK=0)
    word = r"2 constant columns \('PKC' is always 3.5, 'JNK' is always 0\).*drop"
    with pytest.raises(InputError, match=word):
        read(frame)


def test_a_column_that_varies_only_by_rounding_is_constant():
    wobble = np.where(np.arange(300) % 2, 0.1 + 0.2, 0.3)
    with pytest.raises(InputError, match="1 constant column .'wobble'"):
        read(toy_frame().assign(wobble=wobble))
    with pytest.raises(
        InputError, match="1 constant column .'tiny'.* but for differences of 3e-198"
    ):
        read(toy_frame().assign(tiny=np.arange(300) * 1e-200))


def test_only_five_columns_are_listed():
    with pytest.raises(InputError, match="9 constant columns .*'x4' is always 1 and 4 more"):
        read(np.ones((5, 9)))


def test_a_copy_is_refused_and_both_columns_are_named():
    frame = toy_frame()
    with pytest.raises(InputError, match="column 'again' is a copy of 'soil'; .*drop one"):
        read(frame.assign(again=frame["soil"]))


@given(
    slope=st.floats(1e-6, 1e6).flatmap(lambda b: st.sampled_from([b, -b])),
    offset=st.floats(-1e3, 1e3),
    seed=st.integers(0, 99),
)
def test_a_copy_in_other_units_is_refused(slope, offset, seed):
    values = normal(40, 3, seed)
    values[:, 2] = offset * slope + slope * values[:, 0]
    with pytest.raises(InputError, match="'c' is a copy in other units .* of 'a'"):
        validation.check(values, ("a", "b", "c"))


def test_a_copy_of_a_near_copy_is_refused():
    x = normal(200, 1)[:, 0]
    near = x + 1e-8 * normal(200, 1, seed=1)[:, 0]
    with pytest.raises(InputError, match="'c' is a copy in other units .* of 'b'"):
        validation.check(np.column_stack([x, near, 2 * near + 1]), ("a", "b", "c"))


# Those that differ by less than a ten-thousandth determine each other, too.
@pytest.mark.filterwarnings("ignore:x0 and x2 determine one another")
@given(noise=st.floats(1e-11, 1e-2), seed=st.integers(0, 99))
def test_a_near_copy_is_only_warned_of(noise, seed):
    values = normal(60, 3, seed)
    values[:, 2] = values[:, 0] + noise * values[:, 2]
    with pytest.warns(BayesdagWarning, match="almost copies .*'x0' and 'x2': (0.999|1.000)"):
        read(values)


def test_two_rows_are_not_called_copies():
    with pytest.warns(BayesdagWarning, match="2 rows are few"):
        read(normal(2, 3))


@given(seed=st.integers(0, 999))
def test_ordinary_data_pass_in_silence(seed):
    silent(normal(60, 4, seed))


def test_strongly_correlated_columns_pass_in_silence():
    values = normal(1000, 2)
    values[:, 1] = values[:, 0] + 0.1 * values[:, 1]
    silent(values)


@pytest.mark.parametrize(("num_rows", "few"), [(39, True), (40, False)])
def test_fewer_than_ten_rows_a_variable_are_warned_of(num_rows, few):
    if not few:
        return silent(toy_frame(num_rows))
    with pytest.warns(BayesdagWarning, match="39 rows are few for 4 variables"):
        read(toy_frame(num_rows))
    return None


def test_skewed_columns_are_warned_of_with_a_logarithm_only_where_it_exists():
    skewed = np.exp(2 * normal(500, 1)[:, 0])
    with pytest.warns(BayesdagWarning, match="'dose' is very skewed .* consider its logarithm"):
        read(toy_frame(500).assign(dose=skewed))
    with pytest.warns(BayesdagWarning, match="'dose' is very skewed .*-.* look for outliers"):
        read(toy_frame(500).assign(dose=-skewed))


def test_skewness_of_an_exponential_is_two(seed):
    draws = np.random.default_rng(seed).exponential(size=(20_000, 64))
    found = validation.skewness(draws)
    error = found.std() / len(found) ** 0.5
    # The estimate at n rows is biased downwards by about 15 / n: negligible here.
    assert abs(found.mean() - 2.0) < 4 * error + 15 / 20_000


def test_a_column_that_numbers_the_rows_is_warned_of():
    with pytest.warns(BayesdagWarning, match="'id' grows by one from row to row"):
        read(toy_frame().assign(id=np.arange(300) + 17))


def test_a_variable_set_in_every_row_is_warned_of():
    mask = np.zeros((300, 4), dtype=bool)
    mask[:, 1] = True
    with pytest.warns(
        BayesdagWarning, match="'soil' is set in every row; .* nothing of its causes"
    ):
        read(toy_frame(), interventions=mask)


def test_a_variable_that_varies_only_where_it_was_set_is_warned_of():
    frame = toy_frame()
    mask = np.zeros(frame.shape, dtype=bool)
    mask[:40, 0] = True
    frame.loc[40:, "rain"] = 0.0
    with pytest.warns(BayesdagWarning, match="'rain' is 0 in every row in which it was not set"):
        read(frame, interventions=mask)
