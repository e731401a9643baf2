"""Stein's gradient, the count of cycles and the annealing of DiBS, against their definitions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import fit, graphs
from bayesdag.baselines import dibs
from bayesdag.errors import DivergenceError, InputError
from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.mechanisms.networks import Networks
from tests.toys import toy_frame

QUICK = DiBS.PRESETS["quick"]


def test_only_dags_have_no_cycles():
    dags = graphs.all_dags(4)[::7]
    found = jax.jit(jax.vmap(dibs.cyclicity))(jnp.asarray(dags, jnp.float32))
    np.testing.assert_allclose(found, 0, atol=1e-5)
    cycle = jnp.zeros((4, 4)).at[jnp.array([0, 1, 2]), jnp.array([1, 2, 0])].set(1.0)
    matrix = np.eye(4) + np.asarray(cycle) / 4
    expected = np.trace(np.linalg.matrix_power(matrix, 4)) - 4
    np.testing.assert_allclose(dibs.cyclicity(cycle), expected, rtol=1e-5)
    assert expected > 0


def test_the_direction_is_that_of_stein_variational_gradient_descent(seed):
    rng = np.random.default_rng(seed)
    kernel = dataclasses.replace(QUICK, num_particles=3)._kernel
    shapes = {"latent": (3, 2, 2, 2), "weights": (3, 2, 2), "log_scale": (3, 2)}
    drawn = [{k: rng.normal(size=s) for k, s in shapes.items()} for _ in range(2)]
    position, slope = ({k: v.reshape(3, -1) for k, v in part.items()} for part in drawn)
    widths = {"latent": 5.0, "weights": 500.0, "log_scale": 1.0}

    def k(name, a, b):
        return np.exp(-((position[name][a] - position[name][b]) ** 2).sum() / widths[name])

    expected = {name: np.zeros_like(value) for name, value in position.items()}
    for m in range(3):
        for other in range(3):
            total = sum(k(name, other, m) for name in shapes)
            for name in shapes:
                away = position[name][m] - position[name][other]
                push = 2 / widths[name] * k(name, other, m) * away
                expected[name][m] += (total * slope[name][other] + push) / 3
    trees = [
        (
            jnp.asarray(part["latent"], jnp.float32),
            {
                "mechanism": {"weights": jnp.asarray(part["weights"], jnp.float32)},
                "noise": {"log_scale": jnp.asarray(part["log_scale"], jnp.float32)},
            },
        )
        for part in drawn
    ]
    latent, params = kernel._stein(*trees[0], *trees[1])
    np.testing.assert_allclose(latent.reshape(3, -1), expected["latent"], rtol=1e-4)
    found = params["mechanism"]["weights"].reshape(3, -1)
    np.testing.assert_allclose(found, expected["weights"], rtol=1e-4)
    np.testing.assert_allclose(params["noise"]["log_scale"], expected["log_scale"], rtol=1e-4)


def test_weights_off_the_edges_have_no_prior():
    params = {"mechanism": {"weights": jnp.ones((2, 2))}, "noise": {"log_scale": jnp.zeros(2)}}
    none, one = jnp.zeros((2, 2)), jnp.zeros((2, 2)).at[0, 1].set(1.0)
    first, second = (dibs.log_param_prior(Linear(False), params, g) for g in (none, one))
    assert second - first == pytest.approx(-0.5 - 0.5 * np.log(2 * np.pi), rel=1e-4)
    neural = {"mechanism": MLP(2).init(jax.random.key(0), 2), "noise": params["noise"]}
    assert dibs.log_param_prior(MLP(2), neural, one) != dibs.log_param_prior(MLP(2), neural, none)


def test_particles_with_cycles_are_counted_and_left_out(monkeypatch):
    early = dataclasses.replace(QUICK, num_steps=2)
    posterior = fit(toy_frame(), early, seed=1)
    lost = posterior.provenance["num_cyclic"]
    assert 0 < lost < 20
    assert posterior.num_draws == 20 - lost
    assert f"{lost} of 20 particles" in posterior.provenance["notes"][0]
    monkeypatch.setattr("bayesdag.methods.dibs.is_acyclic", lambda graphs: np.zeros(len(graphs)))
    with pytest.raises(DivergenceError, match="all of the 20 .* with cycles; use more steps"):
        fit(toy_frame(), early, seed=1)


def test_weights_are_joint_densities_if_wanted():
    few = dataclasses.replace(QUICK, num_steps=20, weighted=True)
    posterior = fit(toy_frame(), few, seed=1)
    log_joint = posterior.stats["log_joint"]
    expected = np.exp(log_joint - np.logaddexp.reduce(log_joint.ravel()))
    np.testing.assert_allclose(posterior.weights, expected, rtol=1e-6)


def test_a_run_that_was_stopped_goes_on_to_the_same_particles(tmp_path):
    class Stop:
        def resume(self, template):
            return None

        def chunk(self, step, total, state, stats):
            if step > 3:
                raise KeyboardInterrupt

    few, path = dataclasses.replace(QUICK, num_steps=20), tmp_path / "partial"
    with pytest.raises(KeyboardInterrupt):
        fit(toy_frame(), few, seed=1, checkpoint=path, monitor=Stop())
    resumed = fit(toy_frame(), few, seed=1, checkpoint=path)
    whole = fit(toy_frame(), few, seed=1)
    np.testing.assert_array_equal(resumed.graphs, whole.graphs)
    np.testing.assert_array_equal(resumed.stats["log_joint"], whole.stats["log_joint"])


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(InputError, match="num_particles is 0"):
        DiBS(num_particles=0)
    with pytest.raises(InputError, match="'linear' and 'mlp'"):
        DiBS(mechanism=Networks())


def test_networks_are_moved_too():
    few = dataclasses.replace(QUICK, mechanism=MLP(3), num_steps=5, num_particles=8)
    posterior = fit(toy_frame(60), few, seed=1)
    assert np.isfinite(posterior.effect("rain", "crop", num_rows=20).draws).all()
