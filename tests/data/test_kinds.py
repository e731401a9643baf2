"""Kinds of columns: what a Dataset keeps of them, and how they are found."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from bayesdag.data import Dataset, Kind, read
from bayesdag.data.kinds import declarations
from bayesdag.errors import BayesdagWarning, InputError

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


N = 200
CODES_OF = np.random.default_rng(7)


def found(column, name="column", **options) -> Kind:
    """The kind of a column beside an ordinary one."""
    frame = pd.DataFrame({"other": np.random.default_rng(1).normal(size=len(column))})
    frame[name] = column
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesdagWarning)
        return read(frame, **options).kinds[1]


LOOKS = {
    "measurements": (CODES_OF.normal(size=N), "continuous"),
    "whole measurements": (CODES_OF.integers(17, 90, N), "continuous"),
    "two numbers": (CODES_OF.integers(1, 3, N), "binary"),
    "yes and no": (CODES_OF.random(N) < 0.3, "binary"),
    "two words": (CODES_OF.choice(["no", "yes"], N), "binary"),
    "words": (CODES_OF.choice(["red", "green", "blue"], N), "categorical"),
    "a scale from 1": (CODES_OF.integers(1, 6, N), "ordinal"),
    "a scale from 0": (CODES_OF.integers(0, 7, N), "ordinal"),
    "classes from 0": (CODES_OF.integers(0, 3, N), "categorical"),
    "small counts": (CODES_OF.poisson(1.2, N), "count"),
    "large counts": (CODES_OF.negative_binomial(1, 0.1, N), "count"),
    "coarse measurements": (CODES_OF.choice([0.5, 2.5, 6.0, 9.0], N), "ordinal"),
    "few rows": (CODES_OF.integers(1, 8, 16), "continuous"),
    "ordered categories": (
        pd.Categorical(
            CODES_OF.choice(["low", "mid", "high"], N), ["low", "mid", "high", "top"], True
        ),
        "ordinal",
    ),
    "categories": (pd.Categorical(CODES_OF.choice([3, 1, 2], N)), "categorical"),
}


@pytest.mark.parametrize(("column", "kind"), LOOKS.values(), ids=LOOKS)
def test_kinds_are_found_by_looking_with_a_reason(column, kind):
    looked = found(column)
    assert looked.name == kind
    assert looked.reason
    assert bool(looked.levels) == looked.is_discrete


def test_levels_are_in_the_order_of_their_type_or_size_or_the_alphabet():
    ordered = LOOKS["ordered categories"][0]
    assert found(ordered).levels == ("low", "mid", "high")  # "top" never occurs
    assert found(LOOKS["words"][0]).levels == ("blue", "green", "red")
    assert found(np.repeat([10, 9, 2], 20)).levels == ("2", "9", "10")


def test_names_of_classes_make_codes_categorical():
    codes = LOOKS["a scale from 1"][0]
    assert found(codes, "occupation_husb").name == "categorical"
    assert found(codes, "rating").name == "ordinal"


def test_codes_stand_for_their_labels():
    data = read(pd.DataFrame({"x": np.arange(40.0) ** 0.5, "g": ["b", "a"] * 20}))
    np.testing.assert_array_equal(data.values[:, 1], np.tile([1.0, 0.0], 20))


DECLARED = {
    "a kind": ({"column": "ordinal"}, ("ordinal", ("0", "1", "2"))),
    "levels": ({"column": ["2", "0", "1"]}, ("ordinal", ("2", "0", "1"))),
    "numbers as levels": ({"column": [2, 0, 1]}, ("ordinal", ("2", "0", "1"))),
    "both": (
        {"column": {"kind": "categorical", "levels": [2, 0, 1]}},
        ("categorical", ("2", "0", "1")),
    ),
    "a Kind": ({"column": Kind("continuous")}, ("continuous", ())),
    "more levels than occur": ({"column": [0, 1, 2, 3]}, ("ordinal", ("0", "1", "2", "3"))),
    "a count": ({"column": "count"}, ("count", ())),
}


@pytest.mark.parametrize(("said", "kind"), DECLARED.values(), ids=DECLARED)
def test_a_declared_kind_is_taken(said, kind, tmp_path):
    column = LOOKS["classes from 0"][0]
    assert found(column, kinds=said)[:2] == kind
    if not isinstance(said["column"], Kind):
        (tmp_path / "kinds.yaml").write_text(json.dumps(said))
        assert found(column, kinds=tmp_path / "kinds.yaml")[:2] == kind


def test_a_file_of_kinds_takes_text_for_text(tmp_path):
    """YAML would read yes and no as true and false, and 010 as eight."""
    file = tmp_path / "kinds.yaml"
    file.write_text(
        "no: [No, Yes, off]\nb: [1, 2.5, true, 010, 2024-01-01]\n", encoding="utf-8-sig"
    )
    said = declarations(file)
    assert said["no"].levels == ("No", "Yes", "off")
    assert said["b"].levels == ("1", "2.5", "True", "010", "2024-01-01")
    file.write_text("a: count\na: ordinal\n")
    with pytest.raises(InputError, match="declares 'a' twice"):
        declarations(file)


def test_a_file_of_kinds_that_cannot_be_read_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "kinds.yaml"
    with pytest.raises(InputError, match="kinds.yaml' does not exist; check the name"):
        declarations(file)
    with pytest.raises(InputError, match="is a folder; name the file in it"):
        declarations(tmp_path)
    file.write_bytes("größe: count".encode("latin-1"))
    with pytest.raises(InputError, match="is not UTF-8 text .byte 2.; save it again"):
        declarations(file)
    file.write_text("a: count\nb: [1, 2\n")
    with pytest.raises(InputError, match="kinds.yaml' is not valid YAML in line 3: expected ','"):
        declarations(file)
    file.write_text("# nothing yet\n")
    assert declarations(file) == {}


WRONG = {
    "unknown kind": ({"column": "ordinall"}, "'ordinall', which is no kind .*'ordinal'"),
    "unknown column": ({"colum": "ordinal"}, "kinds names 'colum'.*did you mean 'column'"),
    "unknown level": ({"column": ["red", "green"]}, "'blue' in row 1, which is none of its levels"),
    "text": (
        {"column": "continuous"},
        "declared continuous and holds text .'blue' in row 1.; corr",
    ),
    "one level twice": ({"column": ["red", "red"]}, "two or more different"),
    "binary": ({"column": "binary"}, "declared binary and holds 3 different values"),
    "no mapping": (["ordinal"], "kinds are a mapping"),
    "nonsense": ({"column": 3}, "declared 3; give a kind"),
    "nothing": ({"column": {}}, "declared {}; give a kind"),
    "levels of numbers": ({"column": {"kind": "count", "levels": [1, 2]}}, "count with levels"),
}


@pytest.mark.parametrize(("said", "word"), WRONG.values(), ids=WRONG)
def test_a_declaration_that_is_wrong_is_refused_in_words(said, word):
    with pytest.raises(InputError, match=word):
        found(np.tile(["blue", "red", "green"], 20), kinds=said)


def test_counts_are_whole_and_not_negative():
    with pytest.raises(InputError, match="declared count and holds -1 in row 3"):
        found(np.tile([0.0, 1.0, -1.0, 2.0], 20), kinds={"column": "count"})


HOSTILE = {
    "identifiers": ([f"p{i}" for i in range(N)], "200 different texts in 200 rows.*--drop column"),
    "free text": ([f"said {i % 150}" for i in range(N)], "identifier or free text"),
    "many labels": ([f"city {i % 60}" for i in range(600)], "60 different labels.*rare ones"),
    "dates": ([f"2024-01-{1 + i % 28:02d}" for i in range(N)], "looks like a date.*--drop"),
    "units": ([f"{i % 7} %" for i in range(N)], "numbers with a unit"),
    "money": ([f"-${1000 + i:,}.50" for i in range(N)], "numbers with a unit"),
    "other units": ([f"{i % 60} kg" for i in range(600)], "numbers with a unit or in quotes"),
    "quoted numbers": ([f'="{i % 60}"' for i in range(600)], "with a unit or in quotes, take"),
    "quarters": ([f"{2000 + i // 4}Q{1 + i % 4}" for i in range(N)], "looks like a date"),
    "always the same": (["a"] * N, "always 'a'; a constant"),
}


@pytest.mark.parametrize(("column", "word"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_variable_is_refused_with_advice(column, word):
    with pytest.raises(InputError, match=word):
        found(column)


def test_the_same_levels_under_other_names_are_refused():
    codes = CODES_OF.choice(3, N, p=[0.6, 0.3, 0.1])
    frame = pd.DataFrame({"x": CODES_OF.normal(size=N), "code": codes})
    frame["word"] = np.array(["three", "one", "two"])[codes]
    with pytest.raises(InputError, match="'word' names the levels of 'code' differently"):
        read(frame)


def test_almost_equal_ranks_bring_a_warning():
    x = CODES_OF.uniform(-2, 2, size=N)
    y = np.exp(x) * (1 + 0.003 * CODES_OF.normal(size=N))
    with pytest.warns(BayesdagWarning, match="almost copies .*of ranks"):
        read(pd.DataFrame({"x": x, "y": y}))


def test_numbers_for_a_method_without_levels_are_those_of_the_labels():
    frame = pd.DataFrame(
        {
            "x": CODES_OF.normal(size=N),
            "educ": CODES_OF.choice([9, 12, 16], N),
            "t": ["a", "b"] * 100,
        }
    )
    data = read(frame)
    taken = data.as_numbers(["educ", "t"], "why")
    np.testing.assert_array_equal(taken.values[:, 1], frame["educ"])
    assert [kind.name for kind in taken.kinds] == ["continuous", "continuous", "binary"]
    assert taken.kinds[1].reason == "why"
    np.testing.assert_allclose(taken.scaled.std(axis=0), 1)
    assert taken.hash != data.hash


def test_whole_numbers_that_only_name_the_rows_bring_a_warning():
    numbers = CODES_OF.permutation(N)
    with pytest.warns(BayesdagWarning, match="'id' holds another whole number in every row"):
        read(pd.DataFrame({"x": CODES_OF.normal(size=N), "id": numbers}))
