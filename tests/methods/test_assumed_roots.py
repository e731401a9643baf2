"""Roots assumed by names: said before the fit, kept in the result, never against what is known."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bayesdag import Knowledge, fit, fitting, read
from bayesdag.errors import BayesdagWarning
from bayesdag.methods import _assumed_roots


def table(seed: int = 0) -> pd.DataFrame:
    """Blood pressure and weight that act on age, as far as the rows say."""
    rng = np.random.default_rng(seed)
    pressure, weight = rng.laplace(size=(2, 300))
    return pd.DataFrame(
        {
            "pressure": pressure,
            "weight": weight,
            "age": pressure + weight + 0.3 * rng.laplace(size=300),
        }
    )


def fitted(**given):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", BayesdagWarning)
        found = fit(table(), "exact", num_samples=20, progress=False, **given)
    return found, [str(one.message) for one in said]


def test_no_arrow_leads_into_a_column_called_age_and_this_is_said():
    found, said = fitted()
    assert (found.edge_probabilities()["age"] == 0).all()
    assert any(line.startswith("age: taken to have no causes") for line in said)
    assert found.provenance["knowledge"] == {"assumed_roots": ["age"]}
    assert any("--no-assumed-roots" in note for note in found.describe())


def test_the_data_decide_where_that_is_wanted():
    found, said = fitted(assumed_roots=False)
    assert found.edge_probabilities()["age"].max() > 0.9
    assert not any("no causes" in line for line in said)
    assert found.provenance["knowledge"] == {}


@pytest.mark.parametrize(
    "known",
    [
        {"required": ["weight -> age"]},
        {"beliefs": {"weight -> age": 0.9}},
        {"tiers": [["pressure"], ["age", "weight"]]},
        {"roots": ["age"]},
    ],
)
def test_what_the_user_has_said_is_not_overruled(known):
    assert Knowledge.read(known).assuming(["age"]).assumed_roots == ()


def test_a_first_tier_leaves_age_a_root():
    known = Knowledge(tiers=[["age"], ["weight"]], forbidden=["weight -> age"])
    assert known.assuming(["age"]).assumed_roots == ("age",)


def test_assumed_roots_bind_as_roots_do_and_come_back_from_plain_data():
    known = Knowledge().assuming(["age"])
    names = ("age", "weight")
    bound = known.bind(names)
    np.testing.assert_array_equal(bound.forbidden, Knowledge(roots=["age"]).bind(names).forbidden)
    assert bound.kinds == {"forbidden"}
    assert Knowledge.read(known.to_dict()) == known


def test_a_method_that_cannot_forbid_edges_says_so_and_gets_none():
    method, data = fitting.build_method("bcd"), read(table())
    said = fitting.known(Knowledge(), method, data, True)
    assert said == Knowledge()
    with pytest.warns(BayesdagWarning, match="'bcd' cannot forbid edges"):
        _assumed_roots.warn(said, method, "bcd", data)


def test_roots_that_determine_one_another_are_not_assumed():
    rng = np.random.default_rng(0)
    birth, year = rng.integers(1930, 2000, 300), rng.integers(1980, 2015, 300)
    frame = table().assign(age=year - birth, birth_year=birth, year=year)
    frame["sex"] = rng.integers(1, 3, 300)
    with pytest.warns(BayesdagWarning, match="determine one another"):
        data = read(frame)
    said = fitting.known(Knowledge(), fitting.build_method("auto"), data, True)
    assert said.assumed_roots == ("sex",)
