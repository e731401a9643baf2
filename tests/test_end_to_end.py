"""From rows to an answer with the method that most tables get: chosen, trained, asked, saved."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import bayesdag
from bayesdag.methods.auto import Auto
from bayesdag.methods.collapsed import Collapsed
from bayesdag.posterior import Posterior
from bayesdag.scores.neural import NeuralScore
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS


def small_auto() -> Auto:
    """The quick preset, with small networks wherever it would train any."""
    quick = Auto.PRESETS["quick"]
    inside = {field.name: getattr(quick, field.name) for field in dataclasses.fields(quick)}
    neural = {
        name: dataclasses.replace(method, score=SMALL_NETWORKS, num_samples=50)
        for name, method in inside.items()
        if isinstance(method, Collapsed) and isinstance(method.score, NeuralScore)
    }
    assert neural, "auto has no neural method to choose"
    return dataclasses.replace(quick, **neural)


def nonlinear_rows() -> pd.DataFrame:
    """dose -> response along a parabola, which no function of the response explains."""
    rng = np.random.default_rng(0)
    dose = rng.uniform(-2, 2, NETWORK_ROWS)
    response = dose**2 + 0.2 * rng.normal(size=NETWORK_ROWS)
    return pd.DataFrame(
        {"response": response, "dose": dose, "other": rng.normal(size=NETWORK_ROWS)}
    )


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return bayesdag.fit(nonlinear_rows(), small_auto(), seed=0)


def test_auto_chooses_networks_for_nonlinear_data_and_says_so(posterior):
    assert "neural" in str(posterior.provenance["chosen"])
    assert posterior.provenance["notes"][0].startswith("chosen:")
    assert posterior.provenance["function_weights"]["response"]["linear"] < 0.1


def test_the_nonlinear_pair_is_found_with_its_direction(posterior):
    edges = posterior.edge_probabilities()
    assert edges.loc["dose", "response"] > 0.9
    assert edges.loc["response", "dose"] < 0.1
    assert edges.loc["other"].max() < 0.5
    assert edges["other"].max() < 0.5


def test_the_effect_follows_the_parabola_before_and_after_saving(posterior, tmp_path):
    posterior.save(tmp_path / "result.nc")
    loaded = bayesdag.load(tmp_path / "result.nc")
    found = [
        p.effect("dose", "response", values=(0.0, 1.5), num_rows=200) for p in (posterior, loaded)
    ]
    assert found[0].mean == pytest.approx(1.5**2, abs=0.6)
    np.testing.assert_array_equal(found[0].draws, found[1].draws)
