"""Questions to posteriors of levels, counts and measurements: labels in, labels out."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import bayesdag
from bayesdag.data import read
from bayesdag.errors import InputError
from bayesdag.methods.exact import Exact
from bayesdag.scores.mixed import MixedScore

NUM = 800  # rows of all samples: other numbers would be compiled anew
GRAPH = {
    "required": [["dose", "size"], ["dose", "grade"], ["size", "visits"], ["size", "species"]],
    "forbidden": [],
}
KINDS = {
    "size": "continuous",
    "dose": "binary",
    "grade": ["low", "middle", "high"],
    "species": "categorical",
    "visits": "count",
}


def table(num_rows=300):
    """dose -> size -> visits, size -> species, dose -> grade."""
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 2, num_rows)
    size = 1.5 * dose + rng.normal(size=num_rows)
    score = 1.5 * dose + rng.logistic(size=num_rows)
    logits = np.stack([0 * size, 1.2 * size, -1.2 * size], axis=1)
    species = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return pd.DataFrame(
        {
            "dose": np.where(dose == 1, "yes", "no"),
            "size": 10 + 3 * size,
            "grade": np.array(["low", "middle", "high"])[np.digitize(score, [0.0, 2.0])],
            "species": np.array(["ash", "birch", "cedar"])[species],
            "visits": rng.poisson(np.exp(0.5 + 0.4 * size)),
        }
    )


@pytest.fixture(scope="module")
def posterior():
    return bayesdag.fit(
        read(table(), kinds=KINDS),
        Exact(score=MixedScore(), num_samples=24),
        knowledge=GRAPH,
        progress=False,
    )


def test_samples_have_the_labels_of_the_table(posterior):
    rows, drawn = table(), posterior.sample(NUM)
    for name in ("dose", "grade", "species"):
        assert set(drawn[name]) == set(rows[name])
        shares = [frame[name].value_counts(normalize=True) for frame in (drawn, rows)]
        assert (shares[0] - shares[1]).abs().max() < 0.1
    assert (drawn["visits"] == drawn["visits"].round()).all()
    assert drawn["visits"].min() >= 0
    assert drawn["visits"].mean() == pytest.approx(rows["visits"].mean(), rel=0.2)


def test_setting_a_label_is_what_follows(posterior):
    drawn = posterior.sample(NUM, do={"dose": "yes"})
    assert set(drawn["dose"]) == {"yes"}
    assert drawn["size"].mean() == pytest.approx(14.5, abs=0.8)


def test_effects_are_differences_of_means_and_of_probabilities(posterior):
    on_size = posterior.effect("dose", "size", ("no", "yes"), num_rows=200)
    assert on_size.mean == pytest.approx(4.5, abs=0.8)
    on_species = posterior.effect("size", "species=birch", (7.0, 13.0), num_rows=200)
    assert 0.4 < on_species.mean < 0.95
    on_visits = posterior.effect("size", "visits", (10.0, 13.0), num_rows=200)
    assert on_visits.mean == pytest.approx(np.exp(0.9) - np.exp(0.5), rel=0.4)
    assert posterior.effect("dose", "grade", num_rows=200).mean > 0.3


def test_effects_are_told_in_labels(posterior):
    found = posterior.effect("dose", "species=birch", ("yes", "no"), given={"grade": "low"})
    assert found.values == ("yes", "no")
    assert found.given == {"grade": "low"}
    assert "dose from yes to no" in repr(found)
    assert found.table()["quantity"][0] == "change of P(species = birch)"
    assert posterior.effect("size", "dose").quantity == "P(dose = yes)"
    assert posterior.effect("size", "grade").quantity == "the mean code of grade (0 … 2)"
    assert posterior.effect("size", "visits").quantity == "the mean of visits"


def test_an_effect_through_a_count_or_a_level_is_simulated(posterior):
    through = posterior.effect("dose", "visits", ("no", "yes"), num_rows=200)
    assert 0.5 < through.mean < 4


def test_levels_without_an_order_have_no_mean(posterior):
    with pytest.raises(InputError, match="species=ash"):
        posterior.effect("size", "species")


def test_unknown_labels_are_refused_with_the_known_ones(posterior):
    with pytest.raises(InputError, match="no, yes"):
        posterior.sample(3, do={"dose": "maybe"})


def test_counterfactuals_change_nothing_where_nothing_is_changed(posterior):
    rows = table().iloc[:40]
    same = posterior.counterfactual(rows, {"dose": "yes"})
    kept = (rows["dose"] == "yes").to_numpy()
    codes = read(table(), kinds=KINDS).values[:40]
    np.testing.assert_allclose(
        same.draws[0, :, kept], codes[kept][:, None].repeat(24, 1), atol=1e-3
    )
    values = same.mean()
    assert (values["size"][~kept] > rows["size"][~kept] + 2).all()


def test_counterfactuals_say_which_columns_are_not_identified(posterior):
    found = posterior.counterfactual(table().iloc[:5], {"size": 10.0})
    assert {"species", "visits"} <= set(found.not_identified) <= {"grade", "species", "visits"}
    assert "not identified for single rows, only in the mean over many: " in repr(found)
    nothing = posterior.counterfactual(table().iloc[:5], {})
    assert nothing.not_identified == ()
    assert "identified" not in repr(nothing)


def test_counterfactual_levels_follow_the_distribution_under_the_intervention(posterior):
    """Averaged over units, the tie of a unit to what it was must not show."""
    rows = posterior.sample(NUM, do={"size": 10.0}, seed=1)
    parts = [rows.iloc[k : k + 40] for k in range(0, 200, 40)]
    moved = np.concatenate([posterior.counterfactual(p, {"size": 13.0}).draws for p in parts])
    drawn = posterior.sample(NUM, do={"size": 13.0}, seed=2)
    place = list(posterior.names).index("species")
    share = [(moved[..., place] == k).mean() for k in range(3)]
    wanted = drawn["species"].value_counts(normalize=True)
    np.testing.assert_allclose(share, [wanted[k] for k in ("ash", "birch", "cedar")], atol=0.08)


def test_a_row_is_as_probable_as_its_parts(posterior):
    """Masses of all levels, and of many counts, sum to one in the SCM, too."""
    model, params = posterior.model, jax.tree.map(lambda leaf: leaf[0, 0], posterior.params)
    graph = jnp.asarray(posterior.graphs[0, 0])
    names, row = list(posterior.names), np.array([1.0, 11.0, 0.0, 0.0, 0.0])
    log_terms = jax.jit(model.log_terms)
    for name, number in {"grade": 3, "species": 3, "visits": 200}.items():
        j, rows = names.index(name), np.tile(row, (200, 1))
        rows[:, j] = np.minimum(np.arange(200), number - 1)
        mass = np.exp(np.asarray(log_terms(params, graph, jnp.asarray(rows, jnp.float32))))
        assert mass[:number, j].sum() == pytest.approx(1, abs=1e-3)


def test_files_keep_kinds_and_functions(posterior, tmp_path):
    posterior.save(tmp_path / "kinds.nc")
    again = bayesdag.load(tmp_path / "kinds.nc")
    pd.testing.assert_frame_equal(again.sample(NUM), posterior.sample(NUM))


def test_the_check_of_the_model_takes_every_kind(posterior):
    found = posterior.check(read(table(), kinds=KINDS))
    assert len(found.variables) == 5
    assert found.misfit is None or found.misfit < 0.05


def test_columns_that_have_nothing_to_do_with_one_another_pass_the_check():
    """Residuals of levels are drawn within intervals: independently for every column."""
    rng = np.random.default_rng(3)
    coins = {f"coin {k}": rng.choice(["heads", "tails"], 400, p=[0.15, 0.85]) for k in range(6)}
    rows = pd.DataFrame(coins)
    method = Exact(score=MixedScore(), num_samples=16)
    found = bayesdag.fit(rows, method, progress=False).check(rows)
    assert found.warnings == []
    assert all(one.dependence < 0.01 for one in found.variables)


@pytest.mark.filterwarnings("ignore:.*draws are too few")
def test_an_experiment_can_be_about_the_probability_of_a_level(posterior):
    about = posterior.effect("size", "species=birch", (7.0, 13.0), num_rows=200)
    found = posterior.next_experiment(["size", "dose"], about=about, num_experiments=8)
    assert set(found["set"]) == {"size", "dose", "(only observe)"}
    assert (found["fraction removed"] >= 0).all()


@pytest.fixture(scope="module")
def neural():
    """A level that hangs on a wave across two measurements, which only a network describes."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-np.pi, np.pi, size=(2, 800))
    level = rng.random(800) < 1 / (1 + np.exp(-3 * np.sin(a + b)))
    rows = pd.DataFrame({"a": a, "b": b, "level": np.where(level, "high", "low")})
    knowledge = {"required": [["a", "level"], ["b", "level"]], "forbidden": [["a", "b"]]}
    method = Exact(score=MixedScore(), num_samples=16)
    return bayesdag.fit(read(rows), method, knowledge=knowledge, progress=False)


def test_questions_are_answered_through_networks(neural, tmp_path):
    low, high = (neural.sample(NUM, do={"a": 0.5 * sign, "b": 1.0 * sign}) for sign in (-1, 1))
    assert (low["level"] == "high").mean() < 0.2
    assert (high["level"] == "high").mean() > 0.8
    neural.save(tmp_path / "neural.nc")
    pd.testing.assert_frame_equal(
        bayesdag.load(tmp_path / "neural.nc").sample(NUM), neural.sample(NUM)
    )
