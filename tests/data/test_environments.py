"""Columns that say where rows come from become indicators; bad ones are refused in words."""

import dataclasses
import datetime

import numpy as np
import pandas as pd
import pytest

from bayesdag import BayesdagWarning, Dataset, InputError, read
from bayesdag.data import Scaling
from bayesdag.data.environments import Environment

N = 60
ROWS = np.random.default_rng(0).normal(size=(N, 2))
LABELS = {
    "text": (["control", "drug", "control"], ("control", ("drug",))),
    "integers": ([3, 10, 3], ("3", ("10",))),
    "whole floats": ([3.0, 10.0, 3.0], ("3", ("10",))),
    "booleans": ([False, True, False], ("False", ("True",))),
    "dates": ([datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)] * 2, None),
    "categories": (pd.Categorical(["b", "a", "b"]).tolist(), ("b", ("a",))),
    "text with blanks": ([" b", "a ", "b"], ("b", ("a",))),
}


def table(labels) -> pd.DataFrame:
    """Two variables and a column of labels, repeated to the length of the table."""
    repeated = [labels[row % len(labels)] for row in range(N)]
    return pd.DataFrame(ROWS, columns=["x", "y"]).assign(condition=repeated)


@pytest.mark.parametrize(("labels", "meant"), LABELS.values(), ids=LABELS)
def test_numbers_text_and_booleans_are_labels(labels, meant):
    data = read(table(labels), environment="condition")
    (found,) = data.environment
    assert meant is None or (found.reference, found.others) == meant
    assert data.names == ("x", "y", *found.names)
    np.testing.assert_array_equal(data.contexts, [False, False, True])
    np.testing.assert_array_equal(data.values[:3, 2], np.array([0, 1, 0]))
    np.testing.assert_array_equal(data.values[:, :2], ROWS)


def test_an_indicator_counts_as_set_and_variables_do_not():
    data = read(table(["a", "b"]), environment="condition")
    np.testing.assert_array_equal(data.observed.all(axis=0), [True, True, False])
    assert not data.has_interventions
    assert data.summary()["num_rows_with_interventions"] == 0
    assert not data.dependences


def test_every_label_but_the_most_frequent_one_has_an_indicator():
    data = read(table(["b", "c", "b", "a", "b"]), environment="condition")
    assert data.environment == (Environment("condition", "b", ("a", "c")),)
    assert data.names[2:] == ("condition=a", "condition=c")
    assert set(data.values[:, 2:].sum(axis=1)) == {0.0, 1.0}


@pytest.mark.parametrize(
    "named", ["condition=c", {"condition": "c"}, ("condition=c",), ["condition=c"]]
)
def test_the_reference_can_be_named(named):
    (found,) = read(table(["b", "c", "b"]), environment=named).environment
    assert found == Environment("condition", "c", ("b",))


def test_a_column_whose_name_has_an_equals_sign_is_a_column():
    frame = table(["b", "c"]).rename(columns={"condition": "a=b"})
    assert read(frame, environment="a=b").names[2] == "a=b=c"


def test_several_columns_may_say_where_rows_come_from():
    frame = table(["b", "c"]).assign(day=np.arange(N) // 20)
    data = read(frame, environment=["condition", "day=1"])
    assert data.names == ("x", "y", "condition=c", "day=0", "day=2")
    assert data.num_contexts == 3


def test_labels_may_come_beside_the_table():
    labels = np.arange(N) % 2
    frame = table(["b"]).drop(columns="condition")
    by_row = read(frame, environment=labels)
    direct = Dataset(ROWS, ("x", "y"), environment=labels)
    named = Dataset(ROWS, ("x", "y"), environment={"site": labels})
    assert by_row.names == direct.names == ("x", "y", "environment=1")
    assert by_row.hash == direct.hash != named.hash
    assert named.names[-1] == "site=1"
    assert read(frame, environment=pd.Series(labels, name="site")).hash == named.hash


def test_a_variable_of_a_dataset_can_become_its_environment():
    plain = Dataset(np.column_stack([ROWS, np.arange(N) % 2]), ("x", "y", "z"))
    data = read(plain, environment="z")
    assert data.names == ("x", "y", "z=1")
    with pytest.raises(InputError, match="environments already"):
        read(data, environment="x")


def test_a_dataset_keeps_its_environments_when_something_else_is_replaced():
    data = read(table(["a", "b"]), environment="condition")
    again = dataclasses.replace(data, scaling=Scaling.of(data.values, "centre"))
    assert again.environment == data.environment
    assert again.hash == data.hash
    assert again.names == data.names
    half = dataclasses.replace(data, values=data.values[:9], interventions=data.interventions[:9])
    assert half.num_contexts == 1


def test_a_given_scaling_is_kept_and_indicators_get_their_own():
    own = Scaling(np.ones(2), np.full(2, 3.0))
    data = Dataset(ROWS, ("x", "y"), scaling=own, environment=np.arange(N) % 2)
    np.testing.assert_allclose(data.scaling.shift, [1, 1, 0.5])
    np.testing.assert_allclose(data.scaling.scale, [3, 3, 0.5])


def test_cells_that_were_set_stay_set_beside_environments():
    frame = table(["a", "b"]).assign(targets=["x", ""] * (N // 2))
    data = read(frame, interventions="targets", environment="condition")
    assert data.has_interventions
    np.testing.assert_array_equal(data.interventions.sum(axis=0), [N // 2, 0, N])
    mask = np.zeros((N, 2), dtype=bool)
    mask[0, 1] = True
    later = read(read(frame.drop(columns="targets"), environment="condition"), interventions=mask)
    np.testing.assert_array_equal(later.interventions.sum(axis=0), [0, 1, N])


REFUSED = {
    "one label": (table(["a"]), "condition", "'a' in every row.*leave it out"),
    "few rows": (table([*"ab" * 14, "c"]), "condition", "'c' of 'condition' has 2 rows.*together"),
    "a measurement": (table(["a"]).assign(condition=ROWS[:, 0] ** 2), "condition", "59 more"),
    "missing": (table(["a", "b", None]), "condition", "missing in row 3"),
    "no such column": (table(["a", "b"]), "conditon", "did you mean 'condition'"),
    "no such columns": (table(["a", "b"]), ("site",), "no column of the data"),
    "no such reference": (table(["a", "b"]), "condition=q", "no row has .*condition=q"),
    "too few labels": (table([1, 2]), np.arange(5), r"shape \(5,\).*60 rows"),
    "a name that is taken": (
        table(["a", "b"]).rename(columns={"y": "condition=b"}),
        "condition",
        "both called 'condition=b'",
    ),
}


@pytest.mark.parametrize(("frame", "environment", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_environments_are_refused_in_words(frame, environment, words):
    with pytest.raises(InputError, match=words):
        read(frame, environment=environment)


def test_text_columns_that_are_no_environment_are_variables_with_levels():
    data = read(table(["a", "b"]))
    assert data.kinds[data.names.index("condition")].levels == ("a", "b")


def test_environments_that_follow_from_one_another_bring_a_warning():
    frame = table(["a", "b"]).assign(site=np.arange(N) % 2)
    with pytest.warns(BayesdagWarning, match="follow from one another"):
        read(frame, environment=["condition", "site"])


def test_a_variable_that_the_environments_determine_brings_a_warning():
    frame = table(["a", "b", "c"]).assign(dose=(np.arange(N) % 3 == 0) * 2.5)
    with pytest.warns(BayesdagWarning, match="'dose' has one value in each environment"):
        read(frame, environment="condition")
