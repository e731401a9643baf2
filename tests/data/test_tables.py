"""Whatever holds the table, the same numbers and names come out, or a refusal in words."""

import numpy as np
import pandas as pd
import pyarrow
import pytest

from bayesdag.data import read
from bayesdag.errors import BayesdagWarning, InputError
from tests.toys import NAMES, toy_frame


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes to a file and returns its path."""

    def to_file(content: str | bytes, name: str = "table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file


def rows(separator: str = ",", num_rows: int = 30, decimal: str = ".") -> str:
    """Thirty rows of two columns without a header."""
    cells = np.random.default_rng(0).normal(size=(num_rows, 2)).round(3)
    lines = (separator.join(f"{x}".replace(".", decimal) for x in row) for row in cells)
    return "\n".join(lines) + "\n"


def same_as_toy(data) -> None:
    assert data.names == NAMES
    np.testing.assert_allclose(data.values, toy_frame().to_numpy(), rtol=1e-15)


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.set_axis(pd.date_range("2020", periods=300), axis=0),
        lambda frame: frame.to_dict("list"),
        pyarrow.Table.from_pandas,
    ],
    ids=["frame", "frame with an index of dates", "dictionary", "arrow"],
)
def test_tables_in_memory_give_the_same_dataset(convert):
    same_as_toy(read(convert(toy_frame())))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("name", ["table.csv", "table.TXT", "table.tsv"])
def test_a_text_file_is_read_whatever_separates_its_fields(tmp_path, separator, name):
    toy_frame().to_csv(tmp_path / name, index=False, sep=separator)
    same_as_toy(read(tmp_path / name))
    same_as_toy(read(str(tmp_path / name)))


@pytest.mark.parametrize("name", ["table.parquet", "table.pq"])
def test_parquet_is_read_without_its_index(tmp_path, name):
    toy_frame().set_axis([f"row {i}" for i in range(300)], axis=0).to_parquet(tmp_path / name)
    same_as_toy(read(tmp_path / name))


def test_arrays_and_lists_get_numbered_names():
    values = toy_frame().to_numpy()
    assert read(values).names == ("x0", "x1", "x2", "x3")
    np.testing.assert_array_equal(read(values.tolist()).values, values)


def test_labels_that_are_not_text_become_names():
    assert read(pd.DataFrame(toy_frame().to_numpy())).names == ("0", "1", "2", "3")


def test_a_byte_order_mark_and_spaces_are_no_part_of_a_name(write):
    assert read(write(b"\xef\xbb\xbfa , b\n" + rows(", ").encode())).names == ("a", "b")


def test_quoted_names_may_contain_separators(write):
    assert read(write('"a, b","c;d"\n' + rows())).names == ("a, b", "c;d")


def test_names_may_contain_the_separator_of_other_files(write):
    assert read(write("mass, kg;size, cm\n" + rows(";"))).names == ("mass, kg", "size, cm")


def test_a_nameless_first_column_of_row_numbers_is_left_out_with_a_warning(tmp_path):
    toy_frame().to_csv(tmp_path / "table.csv")
    with pytest.warns(BayesdagWarning, match="first column has no name and counts the rows"):
        same_as_toy(read(tmp_path / "table.csv"))
    with pytest.warns(BayesdagWarning, match="counts the rows"):
        same_as_toy(read(pd.read_csv(tmp_path / "table.csv")))


def test_row_labels_without_a_name_are_left_out_with_a_warning(write):
    labelled = "".join(f"row{i},{line}\n" for i, line in enumerate(rows().splitlines()))
    with pytest.warns(BayesdagWarning, match="first field is taken for a row label"):
        data = read(write("a,b\n" + labelled))
    np.testing.assert_array_equal(data.values, read(write("a,b\n" + rows())).values)


def test_a_nameless_column_of_labels_is_refused(write):
    labelled = "".join(f"row{i},{line}\n" for i, line in enumerate(rows().splitlines()))
    with pytest.raises(InputError, match="column 1 has no name.* labels the rows"):
        read(write(",a,b\n" + labelled))


REFUSED_FILES = {
    "empty": ("", "is empty"),
    "blank lines only": ("\n\n", "is empty"),
    "header only": ("a,b\n", "0 rows and 2 columns"),
    "one column": ("a\n1\n2\n3\n", "3 rows and 1 column"),
    "repeated name": ("a,b,a\n1,2,3\n2,3,5\n", "columns 1 and 3 are both called 'a'"),
    "numbers as names": ("0.3,1.2\n" + rows(), "first line .* holds numbers .0.3, 1.2"),
    "long first row": ("a,b\n1,2,3\n1,3\n", "not a readable table|has 3 fields"),
    "long row": ("a,b\n1,2\n1,3,5,8\n", "line 3 .* has 4 fields .* before it have 2"),
    "separator at the end": ("a,b\n1,2,\n3,5,\n", "more fields than the 2 names"),
    "two labels a row": ("a,b\nr,s,1,2\nr,t,3,5\n", "more fields than the 2 names"),
    "open quote": ('a,b\n1,2\n"3,5\n', "check its quotes and separators"),
    "Latin-1": ("a,größe\n1,2\n".encode("latin-1"), "not UTF-8 text .byte 0xf6"),
    "Latin-1 far down": (b"a,b\n" + b"1,2\n" * 5000 + b"\xf6,2\n", "not UTF-8 text .byte 0xf6"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "not UTF-8"),
    "decimal comma": ("a;b\n" + rows(";", decimal=","), "look like decimal points.* decimal=','"),
}


@pytest.mark.parametrize(("content", "word"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_a_bad_text_file_is_refused_in_words(write, content, word):
    with pytest.raises(InputError, match=word):
        read(write(content))


def test_names_that_pandas_numbered_are_accepted(write):
    assert read(write("0,1\n" + rows())).names == ("0", "1")


def test_a_missing_file_a_folder_and_an_unknown_suffix_are_refused(tmp_path, write):
    with pytest.raises(InputError, match="there is no file '.*nowhere.csv'"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(InputError, match="ends in '.sav', and tables are read from .csv"):
        read(write("a,b\n", "table.sav"))


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PAR1 and then nothing"])
def test_a_damaged_parquet_file_is_refused(write, content):
    with pytest.raises(InputError, match="not a readable Parquet file .*write it again"):
        read(write(content, "table.parquet"))


def test_a_truncated_parquet_file_is_refused(tmp_path, write):
    toy_frame().to_parquet(tmp_path / "whole.parquet")
    half = (tmp_path / "whole.parquet").read_bytes()[:2000]
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read(write(half, "half.parquet"))


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (np.arange(5.0), r"shape \(5,\), 1-D"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\), 3-D"),
        (pd.Series([1.0, 2.0]), "1-D"),
        ([[1, 2], [3]], "different lengths"),
        ({"a": [1, 2], "b": [1]}, "columns do not make a table"),
        (5, "cannot read data from int"),
        (None, "cannot read data from NoneType"),
    ],
)
def test_what_is_no_table_is_refused(source, word):
    with pytest.raises(InputError, match=word):
        read(source)
