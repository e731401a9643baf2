"""Tables with gaps: every row counts, and what gaps leave open stays open."""

import warnings

import jax
import numpy as np
import pytest

from bayesdag import fit, load, read
from bayesdag.data import Dataset
from bayesdag.errors import BayesdagWarning, InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.exact import Exact
from bayesdag.methods.imputed import Imputed
from bayesdag.posterior import imputation
from tests.toys import toy_frame

pytestmark = pytest.mark.filterwarnings("ignore:.* cells are missing")
SMALL = Imputed(Exact(num_samples=50), num_completions=2)


def masked(fraction, num_rows=300, seed=3):
    frame = toy_frame(num_rows)
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < fraction)


def entropy(probability) -> float:
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).sum())


def test_any_method_imputes_where_cells_are_missing(tmp_path):
    found = fit(masked(0.1), Exact(num_samples=50))
    assert found.provenance["method"]["plugin"] == "methods/imputed"
    assert found.provenance["imputation"]["num_completions"] == 10  # a fit takes no time
    assert found.graphs.shape[:2] == (10, 50)
    assert found.summary["columns"]["rain"]["missing_fraction"] == pytest.approx(0.1, abs=0.05)
    assert any("missing at random" in note for note in found.provenance["notes"])
    found.save(tmp_path / "r.nc")
    again = load(tmp_path / "r.nc")
    assert again.check(masked(0.1)).summary() == found.checked.summary()
    assert len(again.sample(20)) == 20
    assert again.effect("rain", "crop").draws.size == 500
    with pytest.raises(InputError, match="not the data of this posterior"):
        again.check(masked(0.1, seed=4))


def test_uncertainty_grows_with_the_gaps_and_edges_stay_where_they_were():
    frames = [masked(fraction, num_rows=600) for fraction in (0.0, 0.1, 0.3)]
    complete, some, many = (fit(frame, Imputed(Exact(), 8)).edge_matrix() for frame in frames)
    assert np.abs(some - complete).max() < 0.25
    assert entropy(complete) < entropy(many)
    rows = frames[2].dropna()
    assert entropy(many) < entropy(fit(rows, "exact").edge_matrix())  # fewer rows know less


def test_with_many_gaps_edges_stay_near_those_of_the_complete_table():
    complete, many = (fit(masked(f, 600), Imputed(Exact(), 8)).edge_matrix() for f in (0.0, 0.3))
    assert np.abs(many - complete).max() < 0.3


def test_the_same_seed_gives_the_same_answer_and_another_one_other_completions():
    first, again, other = (fit(masked(0.3), SMALL, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.graphs, again.graphs)
    assert np.abs(first.edge_matrix() - other.edge_matrix()).max() > 0


def test_a_table_without_gaps_is_fitted_as_by_the_method_itself():
    alone, inside = fit(toy_frame(), Exact()), fit(toy_frame(), Imputed(Exact()))
    np.testing.assert_array_equal(alone.edge_matrix(), inside.edge_matrix())


def test_knowledge_holds_in_every_completion():
    found = fit(masked(0.2), SMALL, knowledge={"forbidden": [("rain", "soil")]})
    assert found.edge_probabilities().loc["rain", "soil"] == 0


def test_cells_follow_the_model_given_the_rest_of_their_rows():
    """Two variables: the gaps of each have the mean and the spread of its regression."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    table = np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=4000)])
    data = Dataset(table, ("x", "y"))
    model = Exact(num_samples=5)(jax.random.key(0), data, Constraints.free(("x", "y")), None)
    missing = np.zeros(table.shape, bool)
    missing[:1500, 0] = missing[1500:3000, 1] = True
    start = np.where(missing, 0.0, table)
    gappy = Dataset(
        np.where(missing, 9.0, table), ("x", "y"), scaling=data.scaling, missing=missing
    )
    start = Dataset(start, ("x", "y"), scaling=data.scaling)
    whole, acceptance = imputation.complete(jax.random.key(1), model, gappy, start)
    np.testing.assert_array_equal(whole.values[~missing], table[~missing])
    assert acceptance > 0.3
    for gap, given in ((0, 1), (1, 0)):
        rows = missing[:, gap]
        residual = whole.values[rows, gap] - 0.8 * table[rows, given]
        assert abs(residual.mean()) < 4 * 0.6 / 1500**0.5 + 0.05  # functions are drawn, too
        assert residual.std() == pytest.approx(0.6, abs=0.06)
        assert np.corrcoef(residual, table[rows, given])[0, 1] == pytest.approx(0, abs=0.12)


def test_levels_and_counts_stay_levels_and_counts():
    rng = np.random.default_rng(1)
    frame = toy_frame().assign(visits=rng.poisson(1.5, 300), answer=rng.choice(["no", "yes"], 300))
    gaps = rng.random(frame.shape) < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesdagWarning)
        data = read(frame.mask(gaps))
    assert [kind.name for kind in data.kinds][-2:] == ["count", "binary"]
    start = imputation.completed(data, data.values)
    model = Exact(num_samples=3)(jax.random.key(0), start, Constraints.free(data.names), None)
    whole = imputation.complete(jax.random.key(1), model, data, start).data.values
    assert set(whole[:, 5]) == {0.0, 1.0}
    assert (whole[:, 4] >= 0).all()
    np.testing.assert_array_equal(whole[:, 4], np.round(whole[:, 4]))
    assert (whole[gaps] != data.values[gaps]).mean() > 0.5


def test_a_cell_that_was_set_cannot_be_missing():
    mask = np.zeros((300, 4), bool)
    frame = toy_frame()
    mask[7, 2] = True
    frame.iloc[7, 2] = np.nan
    with pytest.raises(InputError, match="'crop' was set in row 8, and its value is missing"):
        read(frame, interventions=mask)


def test_a_column_without_any_value_is_refused():
    with pytest.raises(InputError, match="'soil' has no value in any row"):
        read(toy_frame().assign(soil=np.nan))


def test_imputing_twice_is_refused():
    with pytest.raises(InputError, match="once is enough"):
        Imputed(SMALL)
