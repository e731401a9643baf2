"""Stein's gradient, the count of cycles and the annealing of DiBS, against their definitions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import fit, graphs, read
from bayesdag.baselines import dibs, embeddings
from bayesdag.baselines.evidence import evidence_tables, log_evidence
from bayesdag.baselines.likelihood import gradient_context
from bayesdag.errors import DivergenceError, InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.mechanisms.networks import Networks
from bayesdag.scores.bge import BGe
from tests.toys import toy_frame

QUICK = DiBS.PRESETS["quick"]


def test_only_dags_have_no_cycles():
    dags = graphs.all_dags(4)[::7]
    found = jax.jit(jax.vmap(embeddings.cyclicity))(jnp.asarray(dags, jnp.float32))
    np.testing.assert_allclose(found, 0, atol=1e-5)
    cycle = jnp.zeros((4, 4)).at[jnp.array([0, 1, 2]), jnp.array([1, 2, 0])].set(1.0)
    matrix = np.eye(4) + np.asarray(cycle) / 4
    expected = np.trace(np.linalg.matrix_power(matrix, 4)) - 4
    np.testing.assert_allclose(embeddings.cyclicity(cycle), expected, rtol=1e-5)
    assert expected > 0


def test_the_direction_is_that_of_stein_variational_gradient_descent(seed):
    rng = np.random.default_rng(seed)
    method = dataclasses.replace(QUICK, num_particles=3)
    kernel = method._kernel(method._embedding(method.prior))
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
    latent, params = jax.jit(kernel._stein)(*trees[0], *trees[1])
    np.testing.assert_allclose(latent.reshape(3, -1), expected["latent"], rtol=1e-4)
    found = params["mechanism"]["weights"].reshape(3, -1)
    np.testing.assert_allclose(found, expected["weights"], rtol=1e-4)
    np.testing.assert_allclose(params["noise"]["log_scale"], expected["log_scale"], rtol=1e-4)


def test_known_noise_neither_moves_nor_ties_particles(seed):
    rng = np.random.default_rng(seed)
    method = dataclasses.replace(QUICK, num_particles=3, noise_variance=0.25)
    kernel = method._kernel(method._embedding(method.prior))
    state = kernel.start(jax.random.key(seed), 2)
    np.testing.assert_allclose(state.params["noise"]["log_scale"], np.log(0.5), rtol=1e-6)
    assert not state.params["noise"]["log_scale"].weak_type  # or the second chunk compiles anew
    far = {"weights": jnp.asarray([[[0.0] * 2] * 2, [[1e2] * 2] * 2, [[-1e2] * 2] * 2])}
    params = {"mechanism": far, "noise": state.params["noise"]}
    latent = 30 * state.latent
    slopes = [
        jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32), tree)
        for tree in (latent, params)
    ]
    moved, functions = jax.jit(kernel._stein)(latent, params, *slopes)
    # Each particle is alone: both of its own kernels are one, and a third of a mean of three.
    np.testing.assert_allclose(moved, 2 * slopes[0] / 3, rtol=1e-2)
    weights = 2 * slopes[1]["mechanism"]["weights"] / 3
    np.testing.assert_allclose(functions["mechanism"]["weights"], weights, rtol=1e-2)
    assert not np.any(functions["noise"]["log_scale"])


def test_known_noise_is_that_of_every_draw_and_is_said():
    posterior = fit(toy_frame(), dataclasses.replace(QUICK, num_steps=60, noise_variance=0.25))
    np.testing.assert_allclose(posterior.params["noise"]["log_scale"], np.log(0.5), rtol=1e-6)
    assert "σ² = 0.25" in posterior.provenance["model"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"noise_variance": 0.0}, "above 0"), ({"noise_variance": 1.0, "score": BGe()}, "integrates")],
)
def test_known_noise_that_means_nothing_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        DiBS(**settings)


def test_weights_off_the_edges_have_no_prior():
    params = {"mechanism": {"weights": jnp.ones((2, 2))}, "noise": {"log_scale": jnp.zeros(2)}}
    none, one = jnp.zeros((2, 2)), jnp.zeros((2, 2)).at[0, 1].set(1.0)
    log_prior = jax.jit(dibs.log_param_prior, static_argnums=0)
    first, second = (log_prior(Linear(False), params, g) for g in (none, one))
    assert second - first == pytest.approx(-0.5 - 0.5 * np.log(2 * np.pi), rel=1e-4)
    neural = {"mechanism": MLP(2).init(jax.random.key(0), 2), "noise": params["noise"]}
    assert log_prior(MLP(2), neural, one) != log_prior(MLP(2), neural, none)


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


def test_a_row_of_a_batch_stands_for_several():
    method = dataclasses.replace(QUICK, mechanism=MLP(3), batch_size=60)
    data = read(toy_frame())
    context = gradient_context(data, Constraints.free(data.names), method.mechanism)
    kernel = method._kernel(method._embedding(method.prior))
    seen, rows_per_row = kernel._batch(jax.random.key(0), context)
    assert seen.x.shape == (60, 4)
    assert len(np.unique(np.asarray(seen.x)[:, 0])) == 60
    assert rows_per_row == 5
    whole = dataclasses.replace(kernel, batch_size=300)
    assert whole._batch(jax.random.key(0), context)[1] == 1
    with pytest.raises(InputError, match="batch_size is 0"):
        DiBS(batch_size=0)


def test_networks_are_moved_too():
    few = dataclasses.replace(QUICK, mechanism=MLP(3), num_steps=5, num_particles=8, batch_size=30)
    posterior = fit(toy_frame(60), few, seed=1)
    assert np.isfinite(posterior.effect("rain", "crop", num_rows=20).draws).all()


def test_the_evidence_on_the_device_is_that_of_the_score(seed):
    """Of DAGs and of graphs with cycles, where some cells were set, in any units."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((300, 4), dtype=bool)
    mask[200:, 2] = True
    data = read(toy_frame() * [1, 10, 1, 0.1], interventions=mask, scaling="centre")
    score = BGe()
    stats = score.prepare(data)
    drawn = (rng.random((20, 4, 4)) < 0.5) & ~np.eye(4, dtype=bool)
    local = [score.log_evidence(stats, j, drawn[:, :, j]) for j in range(4)]
    empty = sum(score.log_evidence(stats, j, np.zeros((1, 4), dtype=bool)) for j in range(4))
    tables = evidence_tables(score, stats)
    found = jax.jit(jax.vmap(lambda g: log_evidence(tables, g)))(jnp.asarray(drawn, jnp.float32))
    np.testing.assert_allclose(found, np.sum(local, axis=0) - empty, rtol=1e-4, atol=0.02)


def test_score_functions_estimate_the_gradient_of_the_expected_evidence(seed):
    """Of two variables all four graphs are known: the expectation is a sum."""
    rng = np.random.default_rng(seed)
    latent = jnp.asarray(rng.normal(size=(2, 2, 2)), jnp.float32)
    embedding = QUICK._embedding(QUICK.prior)
    context = gradient_context(
        read(toy_frame()[["rain", "soil"]]), Constraints.free(("rain", "soil")), Linear(False)
    )
    values, time = jnp.asarray([0.0, 2.0, 1.0, -1.0]), jnp.asarray(7.0)
    graphs = jnp.zeros((4, 2, 2)).at[1, 0, 1].set(1).at[2, 1, 0].set(1)
    graphs = graphs.at[3, 0, 1].set(1).at[3, 1, 0].set(1)

    def expected(latent):
        odds = embedding.logits(latent, time)
        forth, back = jax.nn.sigmoid(odds[0, 1]), jax.nn.sigmoid(odds[1, 0])
        none, both = (1 - forth) * (1 - back), forth * back
        probability = jnp.stack([none, forth * (1 - back), (1 - forth) * back, both])
        return jnp.log((probability * jnp.exp(values)).sum())

    @jax.jit
    def estimate(latent):
        drawn = embeddings.hard_graphs(jax.random.key(0), embedding.logits(latent, time), 40_000)
        which = (drawn[:, 0, 1] + 2 * drawn[:, 1, 0]).astype(int)
        return embedding.score_function(latent, time, graphs[which], values[which], context)

    exact = jax.jit(jax.grad(expected))(latent)
    np.testing.assert_allclose(estimate(latent), exact, atol=0.02)


def test_marginal_particles_are_near_the_exact_posterior():
    """Of a table whose graph is known but for directions that no observation tells."""
    marginal = dataclasses.replace(DiBS.PRESETS["marginal"], num_steps=200, num_graphs=32)
    marginal = dataclasses.replace(marginal, learning_rate=0.02, weighted=True)
    posterior, exact = fit(toy_frame(), marginal, seed=1), fit(toy_frame(), "exact")
    adjacent, known = (p.edge_matrix() + p.edge_matrix().T for p in (posterior, exact))
    np.testing.assert_allclose(adjacent, known, atol=0.25)
    assert "integrated out: BGe" in posterior.provenance["model"]
    assert np.isfinite(posterior.effect("rain", "crop").draws).all()


def test_score_functions_move_joint_particles_too():
    few = dataclasses.replace(QUICK, score_function=True, num_particles=8)
    edge = fit(toy_frame(), few, seed=1).edge_matrix()
    assert (edge + edge.T)[0, 1] > 0.5


def test_a_score_with_networks_is_refused():
    with pytest.raises(InputError, match="linear functions"):
        DiBS(score=BGe(), mechanism=MLP())
