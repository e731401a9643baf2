"""The densities and directions of DiBS are those of its authors' package (values in a file)."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import read
from bayesdag.baselines import dibs, embeddings
from bayesdag.baselines.evidence import evidence_tables, log_evidence
from bayesdag.baselines.likelihood import gradient_context, log_likelihood
from bayesdag.baselines.stein import stein_directions
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.parameter_priors import noise_energy, structure_energy
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.scores.bge import BGe

GOLDEN = json.loads((Path(__file__).parent / "dibs_package.json").read_text())
VARIANCE = 0.3
DATA = read(np.array(GOLDEN["rows"]), scaling="none")
LINEAR = Linear(intercept=False)


def array(name: str) -> np.ndarray:
    return np.array(GOLDEN[name], dtype=np.float32)


@pytest.mark.parametrize("number", range(4))
def test_the_joint_density_is_that_of_the_package(number):
    graph, weights = jnp.asarray(array("graphs")[number]), jnp.asarray(array("weights")[number])
    noise = {"log_scale": jnp.full(4, 0.5 * np.log(VARIANCE), jnp.float32)}
    params = {"mechanism": {"weights": weights}, "noise": noise}
    context = gradient_context(DATA, Constraints.free(DATA.names), LINEAR)
    found = log_likelihood(LINEAR, params, graph, context)
    found += dibs.log_param_prior(LINEAR, params, graph)
    found += noise_energy(noise, dibs.NOISE_SHAPE, dibs.NOISE_RATE)  # the package has no such prior
    assert found == pytest.approx(GOLDEN["log_joint"][number], rel=1e-5)


def test_the_evidence_is_that_of_the_package():
    stats, graphs = BGe().prepare(DATA), array("graphs")
    local = [BGe().log_evidence(stats, j, graphs[:, :, j] != 0) for j in range(4)]
    whole = np.sum(local, axis=0)
    np.testing.assert_allclose(whole, GOLDEN["log_evidence"], rtol=1e-5)
    # That on the device leaves out a constant.
    tables = evidence_tables(BGe(), stats)
    found = np.array([log_evidence(tables, jnp.asarray(graph)) for graph in graphs])
    np.testing.assert_allclose(found - found[0], whole - whole[0], atol=1e-3)


def test_the_prior_of_graphs_is_that_of_the_package():
    prior, probability = ErdosRenyi(probability=2 / 3), jnp.asarray(array("probabilities"))
    found = structure_energy(jnp.zeros((4, 4)), prior) - structure_energy(probability, prior)
    expected = GOLDEN["log_prior"] - GOLDEN["log_prior_empty"]
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_count_of_cycles_is_that_of_the_package():
    found = embeddings.cyclicity(jnp.asarray(array("probabilities")))
    assert found == pytest.approx(GOLDEN["cyclicity"], rel=1e-5)


def test_the_directions_of_particles_are_those_of_the_package():
    flat = {name: array(name).reshape(3, -1) for name in GOLDEN if name.startswith(("lat", "fun"))}
    positions, slopes = (
        tuple(jnp.asarray(flat[name]) for name in names)
        for names in (("latent", "functions"), ("latent_slope", "function_slope"))
    )
    latent, functions = stein_directions(positions, slopes, (5.0, 500.0))
    np.testing.assert_allclose(latent, flat["latent_direction"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(functions, flat["function_direction"], rtol=1e-4, atol=1e-5)
