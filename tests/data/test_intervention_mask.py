"""All ways to write down what was set give the same mask."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.data import intervention_mask, read
from bayesdag.errors import InputError
from tests.toys import NAMES, toy_frame

NUM_ROWS = 60
ENTRIES = (["soil", "", "rain;price", "crop, price"] * 15)[:NUM_ROWS]
EXPECTED = np.tile([[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1]], (15, 1)).astype(bool)
FRAME = pd.DataFrame(EXPECTED, columns=list(NAMES))
MISSING = [entry or None for entry in ENTRIES]

SAME = {
    "booleans": EXPECTED,
    "zeros and ones": EXPECTED.astype(int),
    "floats": EXPECTED.astype(np.float32),
    "nested lists": EXPECTED.tolist(),
    "objects": EXPECTED.astype(object),
    "frame": FRAME,
    "frame in another order": FRAME.iloc[:, ::-1],
    "frame without names": pd.DataFrame(EXPECTED),
    "nullable frame": FRAME.astype("boolean"),
    "arrow frame": FRAME.astype("int8[pyarrow]"),
    "frame of text": FRAME.astype(int).astype(str),
    "list": ENTRIES,
    "list with None": MISSING,
    "list with NaN": [entry or float("nan") for entry in ENTRIES],
    "tuple": tuple(ENTRIES),
    "array of text": np.array(ENTRIES),
    "series": pd.Series(ENTRIES),
    "series with an index": pd.Series(MISSING, index=range(100, 100 + NUM_ROWS)),
    "arrow series": pd.Series(MISSING, dtype="string[pyarrow]"),
    "categories": pd.Series(MISSING, dtype="category"),
    "frame of one column": pd.DataFrame({"target": MISSING}),
}


@pytest.mark.parametrize("given", SAME.values(), ids=SAME)
def test_every_notation_gives_the_same_mask(given):
    np.testing.assert_array_equal(intervention_mask.mask(given, NAMES, NUM_ROWS), EXPECTED)


FILES = {
    "table of booleans": FRAME.to_csv(index=False),
    "table of numbers": FRAME.astype(int).to_csv(index=False),
    "table with a blank line at the end": FRAME.to_csv(index=False) + "\n\n",
    "semicolons": FRAME.to_csv(index=False, sep=";"),
    "quoted targets": pd.DataFrame({"target": ENTRIES}).to_csv(index=False),
    "bare targets": "set by the experimenter\n" + "".join(f"{entry}\n" for entry in ENTRIES),
    "blank lines at the end": "target\n" + "".join(f"{entry}\n" for entry in ENTRIES) + "\n\n",
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_every_file_gives_the_same_mask(tmp_path, content):
    path = tmp_path / "set.csv"
    path.write_text(content)
    frame = toy_frame(NUM_ROWS)
    np.testing.assert_array_equal(read(frame, interventions=path).interventions, EXPECTED)
    np.testing.assert_array_equal(read(frame, interventions=str(path)).interventions, EXPECTED)


@given(st.lists(st.sets(st.sampled_from(NAMES)), min_size=1), st.sampled_from([";", ",", " ; "]))
def test_names_written_row_by_row_come_back_as_a_mask(sets, separator):
    mask = intervention_mask.mask([separator.join(row) for row in sets], NAMES, len(sets))
    assert [{NAMES[j] for j in np.flatnonzero(row)} for row in mask] == sets


def test_a_name_may_contain_a_separator():
    mask = intervention_mask.mask(["a,b", "c", "c;d"], ("a,b", "c", "d"), 3)
    np.testing.assert_array_equal(
        mask, [[True, False, False], [False, True, False], [False, True, True]]
    )


def test_integer_names_with_gaps_are_understood():
    mask = intervention_mask.mask(pd.Series([0.0, np.nan, 1.0]), ("0", "1"), 3)
    np.testing.assert_array_equal(mask, [[True, False], [False, False], [False, True]])


def test_an_unknown_target_is_refused_with_its_row_and_the_nearest_name():
    with pytest.raises(InputError, match="row 3 .* names 'Soil', which .*did you mean 'soil'"):
        intervention_mask.mask(["soil", "", "rain;Soil"], NAMES, 3)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (EXPECTED[:, :3], r"shape \(60, 3\) and the data \(60, 4\)"),
        (EXPECTED[:7], r"shape \(7, 4\) and the data \(60, 4\)"),
        (EXPECTED[:, 0], r"shape \(60,\)"),
        (True, r"shape \(\)"),
        (FRAME.iloc[:, :2], r"shape \(60, 2\)"),
        (ENTRIES[:7], "targets of 7 rows and the data have 60"),
        ([[1, 0, 0, 0], [1]], "different lengths"),
        (EXPECTED * 2, "hold '2' for 'soil' in row 1"),
        (np.where(EXPECTED, np.nan, 0.0), "hold 'nan' for 'soil' in row 1"),
        (FRAME.rename(columns={"crop": "Crop"}), "column 'Crop', .*did you mean 'crop'"),
        (FRAME.set_axis(["rain", "soil", "soil", "price"], axis=1), "lacks the column 'crop'"),
        (FRAME.astype(int).astype(str).replace("1", "maybe"), "hold 'maybe' for 'soil' in row 1"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(given, word):
    with pytest.raises(InputError, match=word):
        intervention_mask.mask(given, NAMES, NUM_ROWS)
