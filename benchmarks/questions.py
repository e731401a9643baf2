"""Speed and size of what is asked of a posterior once it is there.

    python benchmarks/questions.py --out questions.json

`show` is timed as its user sees it, in a process of its own: 4 chains of 250 draws of 100
variables that differ in a few edges. Effects: 1000 draws of 50 variables and 1000 rows each,
on the pair that most draws connect, linear and neural. The file records commit and device.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from run import about

import bayesdag
from bayesdag.data import Dataset, Scaling
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.neural import NeuralMechanism
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from bayesdag.types import Mechanism

NUM_CHAINS, NUM_DRAWS, NUM_ROWS = 4, 250, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        rows = [*time_files(Path(folder)), *time_effects()]
    for row in rows:
        print(json.dumps(row))
    if out:
        out.write_text(json.dumps({"about": about(), "rows": rows}, indent=2) + "\n")


def time_files(folder: Path) -> list[dict]:
    """Save, load and `show` a posterior of 100 variables."""
    path, posterior = folder / "result.nc", posterior_of(Linear(), d=100)
    rows = [timed("save", lambda: posterior.save(path))]
    rows[0]["megabytes"] = round(path.stat().st_size / 1e6, 2)
    bayesdag.load(path)  # a user's first import is part of `show`, not of `load`
    rows.append(timed("load", lambda: bayesdag.load(path)))
    command = [sys.executable, "-m", "bayesdag", "show", str(path)]
    show = lambda: subprocess.run(command, check=True, capture_output=True)  # noqa: E731
    return [*rows, timed("show, start-up included", show)]


def time_effects() -> list[dict]:
    """One effect each from linear and neural draws of 50 variables."""
    rows = []
    for name, mechanism in {"linear": Linear(), "neural": NeuralMechanism()}.items():
        posterior = posterior_of(mechanism, d=50)
        paths = posterior.path_probabilities()
        cause, outcome = paths.stack().idxmax()
        task = timed(f"effect, {name}", lambda p=posterior, c=cause, o=outcome: p.effect(c, o))
        rows.append(task | {"share_with_path": round(float(paths.loc[cause, outcome]), 3)})
    return rows


def timed(name: str, task: Callable[[], object]) -> dict:
    """Wall and CPU seconds, those of child processes included."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    task()
    wall, cpu = time.perf_counter() - wall, _cpu_seconds() - cpu
    return {"task": name, "wall": round(wall, 2), "cpu": round(cpu, 2)}


def _cpu_seconds() -> float:
    usage = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


def posterior_of(mechanism: Mechanism, d: int) -> Posterior:
    """Draws of a graph with two edges a node whose edges come and go."""
    rng = np.random.default_rng(0)
    shape = (NUM_CHAINS, NUM_DRAWS)
    base = np.triu(rng.random((d, d)) < 4 / d, k=1)
    flips = np.triu(rng.random((*shape, d, d)) < 0.2 / d, k=1)
    model = SCM(mechanism, Gaussian(), Scaling(np.zeros(d), np.ones(d)))
    keys = jax.random.split(jax.random.key(0), shape)
    init = lambda key: {"mechanism": mechanism.init(key, d), "noise": Gaussian().init(key, d)}  # noqa: E731
    params = jax.tree.map(np.array, jax.vmap(jax.vmap(init))(keys))
    if isinstance(mechanism, Linear):  # what is no edge has no weight, as in real draws
        params["mechanism"]["weights"] *= base ^ flips
    data = Dataset(rng.normal(size=(500, d)), tuple(f"v{j}" for j in range(d)))
    return from_draws(
        (base ^ flips).astype(np.int8),
        model,
        params,
        data,
        log_joint=rng.normal(size=shape),
        provenance={"model": "made up", "prior": "made up", "temperature": 1.0},
    )


if __name__ == "__main__":
    main()
