"""Predictive checks: silent on data from the model, loud on the classical violations."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest
from scipy.stats import kstest, norm

from bayesdag import plugins
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.scm import SCM
from bayesdag.posterior import check_result, misfit, predictive_checks
from tests.posteriors import linear

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)


def rows(rng, num_rows=500, noise=None, bend=0.0, fan=0.0, hidden=0.0):
    """a -> b -> c, with the named violation in c (hidden: a common cause of a and c)."""
    cause = hidden * rng.normal(size=num_rows)
    a = rng.normal(size=num_rows) + cause
    b = a + rng.normal(size=num_rows)
    e = rng.normal(size=num_rows) if noise is None else noise(num_rows)
    c = b + bend * b**2 + e * (1 + fan * np.abs(b)) + cause
    return Dataset(np.c_[a, 10 + 5 * b, 100 * c], ("a", "b", "c"))


def checked(data, graph=CHAIN):
    return linear(np.broadcast_to(graph, (1, 40, 3, 3)), data).check(data)


def as_if_neural(check):
    """The same findings, had the functions been learned and the noise been flexible."""
    return dataclasses.replace(check, linear=False, fixed_spread=False, gaussian=False)


def test_data_from_the_model_pass(seed):
    rng = np.random.default_rng(seed)
    alarms = [checked(rows(rng)).warnings for _ in range(5)]
    assert sum(map(len, alarms)) == 0


NOISES = {
    "skewed": lambda n: np.random.default_rng(1).exponential(size=n) * 2,
    "heavy": lambda n: np.random.default_rng(1).standard_t(2.2, size=n),
    "bimodal": lambda n: np.random.default_rng(1).choice([-2, 2], n) + NORMAL[:n],
}
NORMAL = np.random.default_rng(2).normal(size=1000)


@pytest.mark.parametrize(
    ("violation", "words"),
    [
        ({"noise": NOISES["skewed"]}, "c: residuals are skewed.*preset 'neural'"),
        ({"noise": NOISES["heavy"]}, "c: residuals .*heavier tails.*outliers"),
        ({"noise": NOISES["bimodal"], "num_rows": 200}, "c: residuals .*two peaks.*mixed groups"),
        ({"bend": 0.5}, "c: residuals depend on b.*not linear"),
        ({"fan": 2.0}, "c: the size of residuals depends on b.*heteroscedastic"),
        (
            {"hidden": 2.0},
            "c: residuals depend on the residuals of b .*a common cause of both is hidden",
        ),
    ],
)
def test_violations_are_named_and_not_to_be_trusted(seed, violation, words):
    found = checked(rows(np.random.default_rng(seed), **violation))
    assert not found.passed
    assert any(re.search(words, w) for w in found.warnings), found.warnings
    assert re.search("does not fit.*do not trust", found.headline)
    assert found.lines()[0] == f"fit: {found.headline}"


@pytest.mark.parametrize("violation", [{"bend": 0.5}, {"noise": NOISES["bimodal"]}])
def test_a_tenth_of_the_draws_with_another_direction_do_not_silence_it(seed, violation):
    data = rows(np.random.default_rng(seed), **violation)
    graphs = np.broadcast_to(CHAIN, (1, 200, 3, 3)).copy()
    graphs[0, :20] = CHAIN.T
    assert any(w.startswith("c: ") for w in linear(graphs, data).check(data).warnings)


def test_the_best_of_several_noise_hypotheses_is_judged(seed):
    """Half of the draws state twice the noise: were they alone, b would be warned of."""
    data = rows(np.random.default_rng(seed))
    posterior = linear(np.broadcast_to(CHAIN, (1, 100, 3, 3)), data)
    params = {k: dict(v) for k, v in posterior.params.items()}
    log_scale = params["noise"]["log_scale"] + np.log(2)
    params["noise"] = {"log_scale": log_scale, "log_skew": np.zeros_like(log_scale)}
    wide = dataclasses.replace(posterior, params=params)
    assert not wide.check(data).passed
    half = np.arange(100)[None, :, None] < 50
    params["noise"] = {
        "log_scale": log_scale - np.log(2) * half,
        "log_skew": np.where(half, 1.0, params["noise"]["log_skew"]),  # Gaussian noise ignores it
    }
    assert dataclasses.replace(posterior, params=params).check(data).passed


def test_a_misfit_is_measured_in_nats_per_row(seed):
    """A Gaussian of twice the deviation loses log 2 - 3/8 nats to the noise of the data."""
    rng = np.random.default_rng(seed)
    draws = np.tile(norm.cdf(rng.normal(size=4000) / 2), (3, 1))
    found = misfit.shape_gain(draws, misfit.folds_of(4000))
    assert found.value == pytest.approx(np.log(2) - 3 / 8, abs=3 * found.error + 0.01)
    uniform = misfit.shape_gain(rng.random((3, 4000)), misfit.folds_of(4000))
    assert -0.01 < uniform.value < 0.002


def test_a_wrong_shape_of_the_noise_does_not_pass_for_dependence(seed):
    """Skewed columns that have nothing to do with one another, under Gaussian noise."""
    rng = np.random.default_rng(seed)
    data = Dataset(rng.lognormal(size=(1000, 3)), ("a", "b", "c"))
    found = linear(np.zeros((1, 50, 3, 3), np.int8), data).check(data)
    assert all(one.shape > 0.2 for one in found.variables)
    assert all(one.dependence < 0.02 for one in found.variables)
    assert not any("depend" in w for w in found.warnings), found.warnings


def test_the_polynomials_are_orthonormal():
    phi = misfit.legendre(misfit.NODES, 6)
    np.testing.assert_allclose((phi * misfit.NODE_WEIGHTS) @ phi.T, np.eye(6), atol=1e-12)


def test_probabilities_of_residuals_are_those_of_the_stated_noise(seed):
    """For every noise model, samples of it have uniform probabilities."""
    for name in plugins.names("noises"):
        noise = plugins.load("noises", name)()
        params = {"noise": noise.init(jax.random.key(0), 2), "mechanism": {"weights": np.eye(2)}}
        x = np.asarray(noise.sample(params["noise"], jax.random.key(seed), (4000, 2)))
        model = SCM(Linear(intercept=False), noise, Scaling(np.zeros(2), np.ones(2)))
        many = jax.tree.map(lambda leaf: np.asarray(leaf)[None], params)
        u = predictive_checks._uniforms(model, many, np.zeros((1, 2, 2), np.int8), x)
        assert min(kstest(u[0, :, j], "uniform").pvalue for j in range(2)) > 1e-3, name


def test_a_missing_edge_is_noticed(seed):
    empty = np.zeros((3, 3), dtype=np.int8)
    found = checked(rows(np.random.default_rng(seed)), empty)
    assert any("an edge is missing" in w for w in found.warnings)


def test_cells_that_were_set_have_no_residual(seed):
    rng = np.random.default_rng(seed)
    data = rows(rng)
    values, mask = data.values.copy(), np.zeros(data.values.shape, dtype=bool)
    # Set by an experimenter, who looked at a: no residual, though it would depend on a.
    values[250:, 2] = 100 * (values[250:, 0] ** 2 + rng.exponential(size=250))
    mask[250:, 2] = True
    assert checked(Dataset(values, data.names, mask)).passed
    assert not checked(Dataset(values, data.names)).passed
    bent = rows(rng, bend=0.5).values.copy()
    bent[250:, 2] = values[250:, 2]
    found = checked(Dataset(bent, data.names, mask))
    assert any(w.startswith("c: residuals depend on b") for w in found.warnings)


def test_the_advice_suits_the_model_that_was_fitted(seed):
    rng = np.random.default_rng(seed)
    for violation in ({"bend": 0.5}, {"fan": 2.0}, {"noise": NOISES["skewed"]}):
        found = checked(rows(rng, **violation))
        assert any("preset 'neural'" in w for w in found.warnings)
        told = as_if_neural(found).warnings
        assert told
        assert not any("neural" in w or "linear" in w for w in told)


def test_what_a_result_keeps_is_the_whole_check(seed):
    found = checked(rows(np.random.default_rng(seed), bend=0.5))
    again = check_result.from_summary(json.loads(json.dumps(found.summary())))
    assert again == found
    assert again.warnings == found.warnings


def test_runs_are_averaged_by_their_chains(seed):
    bent, fine = (checked(rows(np.random.default_rng(seed), bend=b)) for b in (0.5, 0.0))
    both = check_result.averaged([bent, fine], [3, 1])
    expected = 0.75 * bent.variables[2].dependence + 0.25 * fine.variables[2].dependence
    assert both.variables[2].dependence == pytest.approx(expected)
    assert both.variables[2].suspect == "b"
    assert any(w.startswith("c: residuals depend on b") for w in both.warnings)


def test_a_column_with_few_observed_rows_is_not_judged(seed):
    data = rows(np.random.default_rng(seed), bend=0.5)
    mask = np.zeros(data.values.shape, dtype=bool)
    mask[15:, 2] = True
    found = checked(Dataset(data.values, data.names, mask))
    assert found.verdict("c") == "not checked: 15 rows"
    assert "c: too few rows to check" in found.headline


def test_the_answer_has_a_row_for_every_variable_and_is_plain(seed):
    found = checked(rows(np.random.default_rng(seed)))
    assert found.table()["variable"].tolist() == ["a", "b", "c"]
    assert set(found.table()["verdict"]) == {"no misfit found"}
    assert json.loads(json.dumps(found.summary()))["passed"] is True
    assert repr(found) == "<Check of 3 variables: nothing contradicts the model>"


def test_other_data_are_refused(seed):
    data = rows(np.random.default_rng(seed))
    posterior = linear(CHAIN[None, None], data)
    with pytest.raises(InputError, match="pass the data that were fitted"):
        posterior.check(Dataset(data.values, ("x", "y", "z")))
    posterior = linear(CHAIN[None, None], data, provenance={"data_hash": data.hash})
    assert posterior.check(data)
    with pytest.raises(InputError, match="not the data of this posterior; pass the table"):
        posterior.check(Dataset(data.values[::-1], data.names))


def test_the_same_draws_are_checked_once(monkeypatch):
    made, compute = [], predictive_checks._checked
    monkeypatch.setattr(predictive_checks, "_checked", lambda *a: made.append(1) or compute(*a))
    data = rows(np.random.default_rng(0), num_rows=60)
    posterior = linear(np.broadcast_to(CHAIN, (1, 40, 3, 3)).copy(), data)
    first = posterior.check(data)
    assert dataclasses.replace(posterior, provenance={"notes": []}).check(data) == first
    assert len(made) == 1
    assert posterior.check(data, seed=1) != first
    other = linear(np.broadcast_to(CHAIN, (1, 40, 3, 3)).copy(), data)
    other.check(data, seed=1)
    assert len(made) == 3
