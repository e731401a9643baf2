"""Time and size of what is asked of a posterior once it is there."""

import tempfile
from pathlib import Path

import jax
import numpy as np

from bayesdag import metrics, plugins
from bayesdag.bench.runners import Command, timed
from bayesdag.bench.suite import Measures, Trial
from bayesdag.data import Dataset, Scaling
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws, load
from bayesdag.types import Key, Mechanism, Params


def ask_file(seed: int, d: int, num_draws: int, question: str) -> Measures:
    """Save, load or `show` a made-up posterior of `d` variables and four chains."""
    posterior = made_up(seed, Linear(), d, num_draws)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.nc"
        spent = timed(lambda: posterior.save(path))
        if question == "save":
            return spent | {"megabytes": path.stat().st_size / 1e6}
        if question == "show":
            arguments = ("-m", "bayesdag", "show", str(path))
            return Command(arguments).measure([Trial({}, seed, None)])[0]
        load(path)  # the first import is part of `show`, not of `load`
        return timed(lambda: load(path))


def ask_effect(seed: int, d: int, num_draws: int, mechanism: str) -> Measures:
    """The effect between the two variables that most draws connect."""
    posterior = made_up(seed, plugins.load("mechanisms", mechanism)(), d, num_draws)
    paths = posterior.path_probabilities()
    cause, outcome = paths.stack().idxmax()
    spent = timed(lambda: posterior.effect(cause, outcome))
    return spent | {"path_probability": float(paths.loc[cause, outcome])}


def summarise(seed: int, d: int, num_draws: int) -> Measures:
    """All metrics of many draws."""
    rng = np.random.default_rng(seed)
    draws = np.triu(rng.random((num_draws, d, d)) < 4 / d, 1).astype(np.int8)
    return timed(lambda: metrics.summary(draws, draws[0]))


def made_up(seed: int, mechanism: Mechanism, d: int, num_draws: int) -> Posterior:
    """Draws of a graph with two edges per node whose edges come and go."""
    rng, shape = np.random.default_rng(seed), (4, num_draws)
    base = np.triu(rng.random((d, d)) < 4 / d, k=1)
    graphs = base ^ np.triu(rng.random((*shape, d, d)) < 0.2 / d, k=1)
    params = _params(seed, mechanism, d, shape)
    if isinstance(mechanism, Linear):  # what is no edge has no weight, as in real draws
        params["mechanism"]["weights"] *= graphs
    return from_draws(
        graphs.astype(np.int8),
        SCM(mechanism, Gaussian(), Scaling(np.zeros(d), np.ones(d))),
        params,
        Dataset(rng.normal(size=(500, d)), tuple(f"v{j}" for j in range(d))),
        log_joint=rng.normal(size=shape),
        provenance={"model": "made up", "prior": "made up", "temperature": 1.0},
    )


def _params(seed: int, mechanism: Mechanism, d: int, shape: tuple[int, int]) -> Params:
    def init(key: Key) -> Params:
        return {"mechanism": mechanism.init(key, d), "noise": Gaussian().init(key, d)}

    keys = jax.random.split(jax.random.key(seed), shape)
    return jax.tree.map(np.array, jax.vmap(jax.vmap(init))(keys))
