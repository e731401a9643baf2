"""The paper's engine: its presets, joint draws, several data sets at once, and resuming."""

import dataclasses
import hashlib
import math
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import fit, read
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.runs import loop
from bayesdag.sgmcmc import chains, dagspace, joint_draws
from bayesdag.sgmcmc.relaxations.logistic import Logistic
from tests.toys import NAMES, toy_frame

# The least that is an engine: tests share what is compiled for it.
TINY = BayesDAG(
    mechanism=Linear(intercept=False, init_scale=0.1),
    relaxation=Logistic(),
    num_chains=3,
    num_warmup=4,
    num_samples=5,
    thinning=2,
    batch_size=64,
)
FREE = Constraints.free(NAMES)


@pytest.fixture(scope="module")
def fitted():
    """One run on two data sets of one shape, each with its own key."""
    datasets = [read(toy_frame(seed=seed)) for seed in (0, 1)]
    keys = jax.random.split(jax.random.key(5))
    return TINY.fit_many(keys, datasets, FREE)


def test_draws_are_joint_and_of_the_shape_asked_for(fitted):
    for posterior in fitted:
        assert posterior.graphs.shape == (3, 5, 4, 4)
        params = posterior.params
        assert params["mechanism"]["weights"].shape == (3, 5, 4, 4)
        assert params["noise"]["log_scale"].shape == (3, 5, 4)
        order = jax.vmap(jax.vmap(dagspace.order))(jnp.asarray(params["potentials"]))
        np.testing.assert_array_equal(posterior.graphs, params["mask"] * np.asarray(order))


def test_the_log_joint_is_that_of_the_draw(fitted):
    """Against the energy written out for one draw: likelihood, weights, scales, p and graph."""
    posterior, x = fitted[0], read(toy_frame()).scaled
    graph = posterior.graphs[1, 2].astype(float)
    weights = posterior.params["mechanism"]["weights"][1, 2]
    log_scale = posterior.params["noise"]["log_scale"][1, 2]
    potentials = posterior.params["potentials"][1, 2]
    residual = (x - x @ (weights * graph)) / np.exp(log_scale)
    likelihood = -(0.5 * residual**2 + log_scale + 0.5 * math.log(2 * math.pi)).sum()
    prior = -0.5 * (weights**2).sum() - 0.5 * (potentials**2).sum() / TINY.potential_scale**2
    prior -= (3 * log_scale + np.exp(-2 * log_scale)).sum()
    structure = TINY.energy.structure(jnp.asarray(graph, jnp.float32), jnp.zeros((4, 4)))
    wanted = likelihood + prior - float(structure)
    assert posterior.stats["log_joint"][1, 2] == pytest.approx(wanted, rel=1e-4)


def test_data_sets_fitted_together_must_have_one_shape():
    datasets = [read(toy_frame(300)), read(toy_frame(200))]
    with pytest.raises(InputError, match="one shape"):
        TINY.fit_many(jax.random.split(jax.random.key(0)), datasets, FREE)


def test_data_sets_fitted_together_have_answers_of_their_own(fitted):
    assert not np.array_equal(fitted[0].graphs, fitted[1].graphs)
    assert fitted[0].provenance["temperature"] == 1.0


@pytest.mark.parametrize("name", sorted(BayesDAG.PRESETS))
def test_presets_do_what_the_published_code_did(name):
    method = BayesDAG.PRESETS[name]
    if name == "quick":
        assert method.temperatures == (1.0, 1.0)
        return
    assert method.raw
    assert method.point_noise
    assert method.follow_mask
    assert method.passes == 3
    assert not method.correct_noise
    assert method.relaxation.spacing == 10.0  # pyright: ignore
    of_potentials, of_params = method.temperatures
    scales = (method.potential_sampler.noise_scale, method.sampler.noise_scale)  # pyright: ignore
    assert of_potentials == pytest.approx(method.num_chains * scales[0] ** 2)
    assert of_params == pytest.approx(method.num_chains * scales[1] ** 2)


def test_the_rows_of_an_epoch_are_all_rows_once(key):
    rows = jnp.arange(10)
    seen = []
    for step in range(5):
        chosen, rows = chains.next_rows(key, jnp.asarray(step), rows, 2)
        seen.extend(np.asarray(chosen).tolist())
    assert sorted(seen) == list(range(10))


def test_temperature_does_not_depend_on_the_number_of_chains():
    assert dataclasses.replace(TINY, num_chains=40).temperatures == TINY.temperatures
    assert dataclasses.replace(TINY, temperature=0.25).temperatures == (0.25, 0.25)


def test_the_step_is_compiled_once(fitted):
    """A further run on other data finds everything compiled."""
    before = loop.advance.compiled._cache_size()  # pyright: ignore[reportFunctionMemberAccess]
    keys = jax.random.split(jax.random.key(6))
    TINY.fit_many(keys, [read(toy_frame(seed=seed)) for seed in (2, 3)], FREE)
    assert loop.advance.compiled._cache_size() == before  # pyright: ignore[reportFunctionMemberAccess]


@pytest.mark.slow
@pytest.mark.parametrize("passes", [1, 2, 3])
def test_nonlinear_data_are_fitted_with_networks(passes):
    """Smoke: the default functions, mini-batches, every number of passes, finite answers."""
    short = {"num_warmup": 20, "num_samples": 3, "thinning": 2, "num_chains": 2}
    posterior = fit(toy_frame(), "bayesdag", passes=passes, batch_size=64, **short)
    assert posterior.graphs.shape == (2, 3, 4, 4)
    assert np.isfinite(posterior.stats["log_joint"]).all()
    assert "Neural" in posterior.provenance["model"]


def test_too_many_edges_are_said_to_be_suspicious(fitted):
    """Three edges per variable are not possible with four variables; notes are plain words."""
    assert not any("no good order" in note for note in fitted[0].provenance["notes"])
    notes = joint_draws._provenance(TINY, 0.0, edges_per_variable=4.2)["notes"]
    assert any("4.2 edges per variable" in note for note in notes)


FIT = """
import functools, pathlib, sys
import bayesdag.fitting
from bayesdag import fit
from bayesdag.runs.checkpoint import Checkpoint
from tests.methods.test_bayesdag import TINY
from tests.toys import toy_frame
import dataclasses

bayesdag.fitting.running.Checkpoint = functools.partial(Checkpoint, every=0.0)
folder = pathlib.Path(sys.argv[1])

class Began:
    def resume(self, template):
        return None
    def chunk(self, step, total, state, stats):
        (folder / "began").touch()

method = dataclasses.replace(TINY, num_warmup=3000, num_samples=50, thinning=20)
done = fit(toy_frame(), method, seed=1, checkpoint=folder / "partial", monitor=Began())
done.save(folder / "result.nc")
"""


@pytest.mark.slow
def test_five_kills_do_not_change_the_file(tmp_path, seed):
    """Kill -9 at five random moments; the file is that of an undisturbed run."""
    rng = np.random.default_rng(seed)

    def start(folder):
        folder.mkdir(exist_ok=True)
        return subprocess.Popen([sys.executable, "-c", FIT, str(folder)])

    assert start(tmp_path / "whole").wait() == 0
    folder = tmp_path / "killed"
    for _ in range(5):
        (folder / "began").unlink(missing_ok=True)
        process = start(folder)
        while not (folder / "began").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 1.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(folder).wait() == 0
    hashes = {
        hashlib.sha256((tmp_path / name / "result.nc").read_bytes()).hexdigest()
        for name in ("whole", "killed")
    }
    assert len(hashes) == 1
