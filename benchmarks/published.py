"""The published code of the paper, run and timed beside ours: its curve, or its step.

    python benchmarks/published.py --source DIR --anchors DIR --data sf10_seed5 --epochs 96
    python benchmarks/published.py --source DIR --variables 10 20 30 50

The source is github.com/microsoft/Project-BayesDAG with two changed imports
(`functorch._src.make_functional` becomes `torch._functorch.make_functional`); it needs torch.
Packages that its training step never calls are replaced by empty ones where they are absent.
One thread; times are CPU seconds. Evaluation draws ten graphs a chain at the present state and
does not move the chains, as in `parity.py`, unless `--moves 20` is given: its own evaluation
takes ten steps of p and Θ for the graphs and ten more for a likelihood, and goes on from there.
"""

import argparse
import importlib.machinery
import json
import os
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np

# name: λ_s, noise scale of Θ, of p; as in the published configurations.
SETTINGS = {"er10": (300.0, 0.01, 0.01), "sf10": (200.0, 0.1, 0.1), "er20": (300.0, 0.01, 0.01)}
NUM_CHAINS, BATCH, GRAPHS_A_CHAIN = 10, 512, 10
# Imported by the published modules for plots, logs and other models.
NOT_NEEDED = {"graphical_models", "graphviz", "git", "igraph", "matplotlib", "mlflow", "numpyro"}
NOT_NEEDED |= {"pandas", "psutil", "pyro", "seaborn", "sklearn", "tensorboard", "tqdm"}
NOT_NEEDED |= {"distutils", "einops", "google"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--anchors", type=Path, default=os.environ.get("BAYESDAG_ANCHORS"))
    parser.add_argument("--data", default="sf10_seed5")
    parser.add_argument("--epochs", type=int, default=96)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--moves", type=int, default=0, help="steps that an evaluation takes")
    parser.add_argument("--variables", type=int, nargs="*", help="time steps instead")
    options = parser.parse_args()
    load(options.source)
    if options.variables:
        for d in options.variables:
            print(json.dumps({"d": d, "code": "published", "step": time_step(d)}), flush=True)
        return
    for row in curve(options):
        about = {"data": options.data, "code": "published", "seed": options.seed}
        print(json.dumps(about | row), flush=True)


class Nothing(type):
    """An empty class that has every attribute."""

    def __getattr__(cls, name):
        """Another empty class."""
        return nothing(name)


def nothing(name: str) -> type:
    """An empty class that takes any argument; names of Python's own have no value."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing(name, (), {"__init__": lambda self, *_, **__: None})


class Absent:
    """Finds the modules that are not needed and not installed, and leaves them empty."""

    def find_spec(self, name, path=None, target=None):
        """A module whose every attribute is an empty class."""
        if name.split(".")[0] not in NOT_NEEDED:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        """Empty, and a package, so that anything may be imported from it."""
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__version__ = "99.0"
        module.__getattr__ = nothing
        return module

    def exec_module(self, module):
        """Nothing to run."""


def load(source: Path) -> None:
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(source / "src"))
    sys.meta_path.append(Absent())


def model(d: int, sparsity: float, noise: float, potential_noise: float, seed: int):
    import causica.models.model
    import torch
    from causica.datasets.variables import Variable, Variables
    from causica.models.bayesdag.bayesdag_nonlinear import BayesDAGNonLinear

    causica.models.model.write_git_info = lambda folder: None  # it writes into the folder
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the published code draws from both
    columns = [Variable(f"x{i}", True, "continuous", -1e3, 1e3) for i in range(d)]
    return BayesDAGNonLinear(
        "model",
        Variables(columns),
        tempfile.mkdtemp(),
        torch.device("cpu"),
        lambda_sparse=sparsity,
        norm_layers=True,
        res_connection=True,
        num_chains=NUM_CHAINS,
        scale_noise=noise,
        scale_noise_p=potential_noise,
        input_perm=True,
        VI_norm=True,
    )


def prepare(found, rows: np.ndarray) -> None:
    found.dataset_size = len(rows)
    found.p_opt.update_dataset_size(len(rows))
    found.weights_opt.update_dataset_size(len(rows))


def step(found, rows) -> None:
    found._posterior_p_sample(data=rows, dataset_size=found.dataset_size, num_samples=1)
    found._train_helper_network(data=rows, dataset_size=found.dataset_size, num_iters=1)
    found._posterior_weights_sample(data=rows, dataset_size=found.dataset_size, num_samples=1)


def time_step(d: int, repeats: int = 3) -> float:
    """Least CPU seconds of a step, after two that also set up."""
    import torch

    rows = 3 * np.random.default_rng(0).normal(size=(5000, d)).astype(np.float32)
    found = model(d, 300.0, 0.01, 0.01, seed=0)
    prepare(found, rows)
    batch, best = torch.tensor(rows[:BATCH]), float("inf")
    for repeat in range(repeats + 1):
        started = time.process_time()
        step(found, batch)
        if repeat:
            best = min(best, time.process_time() - started)
    return round(best, 4)


def curve(options):
    import torch

    with np.load(options.anchors / f"{options.data}.npz") as file:
        train, test = (np.asarray(file[k], np.float32) for k in ("X_train", "X_test"))
        truth = np.asarray(file["adj"])
    found = model(train.shape[1], *SETTINGS[options.data.split("_")[0]], options.seed)
    prepare(found, train)
    started = time.process_time()
    shuffle = np.random.default_rng(options.seed)
    for epoch in range(options.epochs + 1):
        order = shuffle.permutation(len(train))
        for first in range(0, len(train), BATCH):
            step(found, torch.tensor(train[order[first : first + BATCH]]))
        seconds = time.process_time() - started
        if epoch % options.every == 0:
            move(found, train, options.moves, shuffle)
            yield {"epoch": epoch, "seconds": round(seconds, 1), **evaluate(found, test, truth)}
        if seconds > options.seconds:
            return


def move(found, train: np.ndarray, moves: int, shuffle: np.random.Generator) -> None:
    """Steps of p and Θ on 500 rows each, with the network of the edges at rest."""
    import torch

    for _ in range(moves):
        rows = torch.tensor(train[shuffle.permutation(len(train))[:500]])
        found._posterior_p_sample(data=rows, dataset_size=found.dataset_size, num_samples=1)
        found._posterior_weights_sample(data=rows, dataset_size=found.dataset_size, num_samples=1)


def evaluate(found, test: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """E-SHD (a reversal counts 1), F1, edges and held-out NLL of ten graphs a chain."""
    import torch

    graphs, densities = [], []
    with torch.no_grad():
        for _ in range(GRAPHS_A_CHAIN):
            graph = found.transform_adj(found.p)
            graphs.append((graph != 0).numpy())
            dense = found.data_likelihood(
                torch.tensor(test), graph, dataset_size=found.dataset_size, use_param_weights=True
            )
            densities.append(dense.numpy().reshape(len(test), NUM_CHAINS).T)
    graphs, densities = np.concatenate(graphs), np.concatenate(densities).astype(np.float64)
    wrong = graphs != truth
    wrong = wrong | wrong.swapaxes(1, 2)
    hits, num_edges = (graphs & (truth > 0)).sum(axis=(1, 2)), graphs.sum(axis=(1, 2))
    mixed = np.logaddexp.reduce(densities, axis=0) - np.log(len(densities))
    return {
        "shd": round(float(wrong.sum(axis=(1, 2)).mean() / 2), 3),
        "f1": round(float((2 * hits / (num_edges + truth.sum())).mean()), 4),
        "edges": round(float(num_edges.mean()), 2),
        "nll": round(float(-mixed.mean()), 3),
    }


if __name__ == "__main__":
    main()
