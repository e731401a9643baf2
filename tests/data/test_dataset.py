"""Scaling, the immutable Dataset, and `read` as the border."""

import dataclasses
import time

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.data import SCALINGS, Dataset, Scaling, check_rows, describe_sortability, read
from bayesdag.errors import InputError
from tests.toys import NAMES, toy_frame

tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(2, 5)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False),
)


def names_for(values) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(values.shape[1]))


@given(values=tables, kind=st.sampled_from(SCALINGS))
def test_scaling_and_its_inverse_cancel_to_rounding(values, kind):
    scaling = Scaling.of(values, kind)
    back = scaling.invert(scaling.apply(values))
    np.testing.assert_allclose(back, values, rtol=1e-14, atol=1e-15 * np.abs(values).max())


@given(values=tables, shift=st.floats(-1e9, 1e9))
def test_standardised_columns_have_mean_zero_and_deviation_one(values, shift):
    values = values + shift
    varies = np.ptp(values, axis=0) > 1e-6 * np.abs(values).max()
    scaled = Scaling.of(values).apply(values)[:, varies]
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0, rtol=1e-8)


def test_a_column_far_from_zero_is_centred_to_the_rounding_of_its_own_values(seed):
    values = 1e9 + np.random.default_rng(seed).normal(size=(50_000, 2))
    shift = Scaling.of(values).shift
    np.testing.assert_allclose((values - shift).mean(axis=0), 0.0, atol=np.spacing(1e9))


def test_centre_keeps_the_unit_and_none_keeps_the_numbers():
    values = toy_frame().to_numpy()
    np.testing.assert_allclose(
        Scaling.of(values, "centre").apply(values).mean(axis=0), 0, atol=1e-12
    )
    np.testing.assert_array_equal(Scaling.of(values, "centre").scale, 1.0)
    np.testing.assert_array_equal(Scaling.of(values, "none").apply(values), values)


def test_a_constant_column_is_not_divided_by_zero():
    values = np.column_stack([np.full(5, 3.0), np.arange(5.0)])
    scaled = Dataset(values, ("constant", "other")).scaled
    np.testing.assert_array_equal(scaled[:, 0], 0.0)
    assert np.isfinite(scaled).all()


def test_standardising_uses_all_rows_also_those_with_interventions():
    frame = toy_frame()
    mask = np.zeros(frame.shape, dtype=bool)
    mask[:50, 1] = True
    assert read(frame, interventions=mask).scaling == read(frame).scaling


def test_equal_tables_get_scalings_that_are_equal_and_hash_alike():
    values = np.ascontiguousarray(toy_frame().to_numpy())
    assert Scaling.of(values) == Scaling.of(np.asfortranarray(values))
    assert hash(Scaling.of(values)) == hash(Scaling.of(np.asfortranarray(values)))
    assert Scaling.of(values) != Scaling.of(values, "centre")
    assert Scaling.of(values) != "standardise"


def test_an_unknown_scaling_is_refused_with_the_list():
    with pytest.raises(InputError, match="'minmax'; there are: standardise, centre, none"):
        read(toy_frame(), scaling="minmax")


@pytest.mark.parametrize(("scale", "word"), [(0.0, "not positive"), (np.inf, "not finite")])
def test_a_scaling_without_an_inverse_is_refused(scale, word):
    with pytest.raises(InputError, match=word):
        Scaling(np.zeros(2), np.array([1.0, scale]))


def test_a_dataset_cannot_be_changed_and_leaves_the_callers_array_alone():
    values, mask = toy_frame().to_numpy(copy=True), np.zeros((300, 4), dtype=bool)
    data = Dataset(values, NAMES, mask)
    for array in (data.values, data.scaled, data.observed, data.interventions, data.scaling.scale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.names = ("a",)  # pyright: ignore[reportAttributeAccessIssue]
    before = data.values[0, 0]
    values[0, 0] += 1
    mask[0, 0] = True
    assert data.values[0, 0] == before
    assert not data.interventions[0, 0]


def test_observed_is_what_was_not_set():
    mask = np.zeros((300, 4), dtype=bool)
    mask[3, 2] = True
    data = read(toy_frame(), interventions=mask)
    np.testing.assert_array_equal(data.observed, ~mask)
    assert read(toy_frame()).observed.all()


def test_the_hash_does_not_depend_on_memory_order_source_or_scaling(tmp_path):
    frame = toy_frame()
    expected = read(frame).hash
    assert len(expected) == 64
    assert Dataset(np.asfortranarray(frame.to_numpy()), NAMES).hash == expected
    assert read(frame, scaling="none").hash == expected
    assert read(frame, interventions=np.zeros(frame.shape, dtype=bool)).hash == expected
    frame.to_parquet(tmp_path / "toy.parquet")
    assert read(tmp_path / "toy.parquet").hash == expected


def test_the_hash_depends_on_every_value_name_and_cell_set():
    frame = toy_frame()
    mask = np.zeros(frame.shape, dtype=bool)
    mask[0, 0] = True
    moved = frame.copy()
    moved.iloc[7, 2] = np.nextafter(moved.iloc[7, 2], 1e9)
    variants = (frame, moved, frame.rename(columns={"rain": "Rain"}), frame.iloc[:, ::-1])
    hashes = [read(variant).hash for variant in variants]
    hashes.append(read(frame, interventions=mask).hash)
    assert len(set(hashes)) == len(hashes)


def test_a_dataset_passes_through_read_with_its_scaling_and_mask():
    mask = np.zeros((300, 4), dtype=bool)
    mask[:9, 0] = True
    data = read(toy_frame(), scaling="none", interventions=mask)
    again = read(data)
    assert again.scaling == data.scaling
    np.testing.assert_array_equal(again.interventions, mask)
    assert read(data, scaling="standardise").scaling == Scaling.of(data.values)
    other = np.roll(mask, 1)
    np.testing.assert_array_equal(read(data, interventions=other).interventions, other)


def test_a_dataset_with_a_constant_column_is_refused_by_read():
    with pytest.raises(InputError, match="'still' is always 2"):
        read(Dataset(np.column_stack([np.arange(30.0) ** 2, np.full(30, 2.0)]), ("x", "still")))


def test_a_column_of_the_table_may_name_the_targets():
    frame = toy_frame()
    frame.insert(1, "treated", ["soil"] * 10 + [""] * 290)
    data = read(frame, interventions="treated")
    assert data.names == NAMES
    assert data.interventions[:10, 1].all()
    assert data.interventions.sum() == 10
    assert "treated" in frame


def test_interventions_that_are_neither_a_column_nor_a_file_are_refused():
    with pytest.raises(InputError, match="'soyl' is neither a column .*mean 'soil'.* nor a"):
        read(toy_frame(), interventions="soyl")


@pytest.mark.parametrize(
    ("values", "names", "mask", "word"),
    [
        (np.eye(3), ("a", "b"), None, "2 names for 3 columns"),
        (np.eye(3), ("a", "b", "a"), None, "columns 1 and 3 are both called 'a'"),
        (np.eye(3), ("a", "", "c"), None, "column 2 has no name"),
        (np.eye(2)[:1], ("a", "b"), None, "1 row and 2 columns"),
        (np.array([[1, np.nan], [2, 3]]), ("a", "b"), None, "'b': 1; the first in row 1"),
        (np.array([[1, 2], [np.inf, 3]]), ("a", "b"), None, "'a' holds inf in row 2"),
    ],
)
def test_a_dataset_of_bad_form_is_refused(values, names, mask, word):
    with pytest.raises(InputError, match=word):
        Dataset(values, names, mask)


def test_too_few_rows_for_a_method_are_refused_by_its_name():
    data = Dataset(toy_frame(12).to_numpy(), NAMES)
    check_rows(data, 12, "exact")
    with pytest.raises(InputError, match="exact needs at least 13 rows for 4 variables .* have 12"):
        check_rows(data, 13, "exact")


def test_the_summary_is_plain_data_without_rows():
    frame = toy_frame()
    mask = np.zeros(frame.shape, dtype=bool)
    mask[:5, 2] = True
    summary = read(frame, interventions=mask).summary()
    assert summary["num_rows"] == 300
    assert summary["num_rows_with_interventions"] == 5
    assert summary["columns"]["crop"]["num_set"] == 5
    assert summary["columns"]["crop"]["num_distinct"] == frame["crop"].nunique()
    for column in NAMES:
        numbers = dict(summary["columns"][column])
        assert [numbers.pop(word) for word in ("kind", "levels")] == ["continuous", []]
        assert isinstance(numbers.pop("reason"), str)
        assert all(type(value) in (int, float) for value in numbers.values())
        assert numbers["mean"] == pytest.approx(frame[column].mean())
        assert numbers["sd"] == pytest.approx(frame[column].std(ddof=0))
        assert numbers["skewness"] == pytest.approx(frame[column].skew(), abs=0.01)


def test_words_on_sortability_name_the_extremes_and_say_whether_columns_are_standardised():
    standardised = describe_sortability(read(toy_frame()))
    assert "('rain')" in standardised
    assert "('crop')" in standardised
    assert "results here are from standardised columns" in standardised
    assert "scaling='standardise'" in describe_sortability(read(toy_frame(), scaling="none"))


@pytest.mark.slow
def test_a_large_file_is_read_and_checked_within_seconds(tmp_path, seed):
    values = np.random.default_rng(seed).normal(size=(100_000, 100))
    pd.DataFrame(values).add_prefix("gene").to_csv(tmp_path / "large.csv", index=False)
    start = time.process_time()
    data = read(tmp_path / "large.csv")
    assert time.process_time() - start < 20
    assert data.values.shape == (100_000, 100)
