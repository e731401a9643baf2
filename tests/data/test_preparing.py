"""A table is prepared while it is read, and read again in the same way."""

import gzip

import numpy as np
import pandas as pd
import pytest

from bayesdag import fit, load
from bayesdag.data import read
from bayesdag.errors import BayesdagWarning, InputError
from tests.toys import NAMES, toy_frame


def test_columns_are_dropped_or_kept_by_name():
    assert read(toy_frame(), drop="soil").names == ("rain", "crop", "price")
    assert read(toy_frame(), drop="soil, price").names == ("rain", "crop")
    assert read(toy_frame(), only=["price", "rain"]).names == ("rain", "price")
    assert read(toy_frame(), drop=["soil"]).preparation == {"drop": ["soil"]}
    assert read(toy_frame(), drop="soil,price").preparation == {"drop": ["soil", "price"]}
    assert read(toy_frame()).preparation == {}


def test_a_name_with_a_comma_is_one_name():
    frame = toy_frame().rename(columns={"soil": "soil, wet"})
    assert read(frame, drop="soil, wet").names == ("rain", "crop", "price")


@pytest.mark.parametrize("option", ["drop", "only", "log"])
def test_unknown_columns_are_refused_with_the_nearest(option):
    with pytest.raises(InputError, match=f"{option} names 'rian'.*did you mean 'rain'"):
        read(toy_frame(), **{option: ["rian"]})


@pytest.mark.parametrize("code", ["-9", "-9.0", "unknown"])
def test_codes_for_missing_cells_become_gaps(code):
    frame = toy_frame().astype(object)
    frame.loc[[3, 8], "crop"] = -9 if code.startswith("-9") else code
    with pytest.warns(BayesdagWarning, match="2 of 1200 cells are missing"):
        data = read(frame, na_values=[code])
    assert data.missing is not None
    assert np.argwhere(data.missing).tolist() == [[3, 2], [8, 2]]


def test_logarithms_are_taken_and_named():
    frame = toy_frame().assign(price=np.exp(toy_frame()["price"] / 10))
    data = read(frame, log="price")
    assert data.names[3] == "log(price)"
    np.testing.assert_allclose(data.values[:, 3], np.log(frame["price"]))
    with pytest.raises(InputError, match="logarithm of column 'soil' .* in row"):
        read(toy_frame(), log=["soil"])


def test_decimal_commas_are_read(tmp_path):
    toy_frame().to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    data = read(tmp_path / "t.csv", decimal=",")
    np.testing.assert_allclose(data.values, toy_frame().to_numpy())
    with pytest.raises(InputError, match="decimal is ';'"):
        read(toy_frame(), decimal=";")


def test_compressed_files_are_read_and_damaged_ones_refused(tmp_path):
    toy_frame().to_csv(tmp_path / "t.csv.gz", index=False)
    np.testing.assert_allclose(read(tmp_path / "t.csv.gz").values, toy_frame().to_numpy())
    whole = (tmp_path / "t.csv.gz").read_bytes()
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "t.csv.gz")
    (tmp_path / "u.csv.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "u.csv.gz")
    with gzip.open(tmp_path / "e.csv.gz", "wb") as file:
        file.write(b"")
    with pytest.raises(InputError, match="is empty"):
        read(tmp_path / "e.csv.gz")


def test_excel_files_are_read_or_the_package_is_named(tmp_path, monkeypatch):
    sheet = pd.concat([pd.DataFrame([NAMES]), pd.DataFrame(toy_frame().to_numpy())])
    monkeypatch.setattr(pd, "read_excel", lambda *_, **__: sheet.reset_index(drop=True))
    (tmp_path / "t.xlsx").write_bytes(b"")
    np.testing.assert_allclose(read(tmp_path / "t.xlsx").values, toy_frame().to_numpy())

    def unavailable(*_, **__):
        raise ImportError

    monkeypatch.setattr(pd, "read_excel", unavailable)
    with pytest.raises(InputError, match=r"openpyxl: install bayesdag\[excel\]"):
        read(tmp_path / "t.xlsx")


def test_a_dataset_is_prepared_already():
    with pytest.raises(InputError, match="is prepared and has its kinds already"):
        read(read(toy_frame()), drop=["rain"])


def test_a_result_reads_its_table_as_it_was_fitted(tmp_path):
    from bayesdag import fit

    frame = toy_frame().assign(
        name=[f"p{i}" for i in range(300)],
        group=np.arange(300) % 3,
        price=lambda t: np.exp(t["price"] / 10),
    )
    options = {"drop": ["name"], "log": ["price"], "kinds": {"group": "continuous"}}
    found = fit(frame, "empty", **options)
    found.save(tmp_path / "r.nc")
    again = load(tmp_path / "r.nc")
    assert again.read(frame).hash == read(frame, **options).hash
    assert again.check(frame).num_rows == 300


def test_units_are_rows_of_the_table_before_or_after_it_was_prepared():
    frame = toy_frame().assign(price=np.exp(toy_frame()["price"] / 10))
    posterior = fit(frame, "exact", num_samples=20, progress=False, log="price")
    again, same = (
        posterior.counterfactual(rows, {"log(price)": 1.0}).draws
        for rows in (frame.head(3), posterior.read(frame).with_rows(np.arange(3)))
    )
    np.testing.assert_allclose(again, same)
    np.testing.assert_allclose(again[0, 0, :, 3], 1.0)
