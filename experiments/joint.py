r"""Can the joint engine (the paper's Algorithm 2) be made to win? Slopes, remedies, comparison.

Five parts, each stored in `results/joint.json` when done, with tables in `results/joint.md`:

    slopes    bias and spread of three estimates of ∇ log E[p(D|W)] in the logits, d=5
    remedies  what each remedy for "W̃ cannot follow" is worth, on development seeds
    figure    the paper's figure for d=10, ER and SF, beside the trivial rows
    exact     linear d=5 against the exact posterior of the engine's own model
    time      CPU seconds of a step beside those of SG-MCMC+VI, equal settings, one run

From the root of the repository: `python experiments/joint.py --parts slopes time`, all parts
without an option, or `--table-only` for the tables again. For the linear parts, where compiling
costs more than running, XLA_FLAGS=--xla_backend_optimization_level=0 saves half of the time.
"""

import os

os.environ["XLA_FLAGS"] = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
    + os.environ.get("XLA_FLAGS", "")
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import json
import platform
import subprocess
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import trivial

import bayesdag
from bayesdag import dagspace, loop, metrics
from bayesdag.data import Dataset, Scaling
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.energy import Energy
from bayesdag.knowledge import Constraints
from bayesdag.mechanisms.linear import Linear
from bayesdag.mechanisms.neural import Neural
from bayesdag.methods import _chains, _mask_gradients
from bayesdag.methods._mask_gradients import (
    LeaveOneOut,
    MaskDraws,
    SelfNormalised,
    StraightThrough,
)
from bayesdag.methods._mask_moves import Averaged, Flips
from bayesdag.methods._node_energies import Place
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.exact import Exact
from bayesdag.methods.joint import Joint
from bayesdag.noises.gaussian import Gaussian
from bayesdag.priors import Uniform
from bayesdag.samplers.adam_sghmc import AdamSGHMC
from bayesdag.scores.linear import LinearGaussian

HERE = Path(__file__).parent
SMALL = {"num_chains": 4, "num_warmup": 1000, "num_samples": 10, "thinning": 25, "batch_size": 128}
NUM_ROWS, NUM_TEST, WIDTH = 1000, 500, 32
LINEAR = {
    "num_chains": 8,
    "num_warmup": 1000,
    "num_samples": 10,
    "thinning": 25,
    "batch_size": NUM_ROWS,
    "mechanism": Linear(intercept=False, init_scale=0.1),
}
PRINTED = Averaged(estimate=StraightThrough())
FIGURE = (
    "SG-MCMC+VI",
    "joint as printed",
    "flips, swaps, no order gradient",
    "flips of the mask",
)
COLUMNS = {
    "expected_shd": ("E-SHD", 1),
    "edge_f1": ("F1", 2),
    "expected_num_edges": ("edges", 1),
    "auroc": ("AUROC", 2),
    "nll": ("NLL", 2),
    "log_joint": ("log joint", 0),
    "effective_masks": ("effective masks", 2),
    "seconds": ("CPU s", 0),
}
DISTANCES = {
    "edge": ("largest edge error", 2),
    "mmd": ("MMD", 3),
    "total_variation": ("TV", 2),
    "edges": ("edges", 1),
    "seconds": ("CPU s", 0),
}


def engines(kind: str) -> dict[str, Any]:
    """Both engines of the paper and the remedies, at equal settings."""
    shared = SMALL | {"mechanism": Neural(width=WIDTH)} if kind == "mlp" else LINEAR
    printed = Joint(**shared, masks=PRINTED, num_swaps=0, order_gradient=True)
    averaged = replace(printed, masks=Averaged())
    flips = replace(printed, masks=Flips())
    return {
        "SG-MCMC+VI": BayesDAG(**shared),
        "joint as printed": printed,
        "self-normalised slopes": averaged,
        "+ 4 logit steps a step": replace(averaged, masks=Averaged(num_steps=4)),
        "+ larger adaptive logit steps": replace(
            averaged, logit_sampler=AdamSGHMC(step_size=0.2, num_adapt=None)
        ),
        "flips of the mask": flips,
        "flips and swaps of the order": replace(flips, num_swaps=1),
        "flips, swaps, no order gradient": replace(flips, num_swaps=1, order_gradient=False),
    }


def slopes(num_datasets: int) -> Iterator[list[dict[str, Any]]]:
    """Bias and spread of each estimate, by rows and masks; the true slope by enumeration."""
    del num_datasets  # one is enough
    yield [
        _slope_cell(name, estimate, num_rows, num_masks)
        for num_rows in (20, 200)
        for num_masks in (4, 16, 64)
        for name, estimate in {
            "straight-through": StraightThrough(),
            "leave-one-out": LeaveOneOut(),
            "self-normalised": SelfNormalised(),
        }.items()
    ]


def _slope_cell(name: str, estimate: Any, num_rows: int, num_masks: int) -> dict[str, Any]:
    d, energy = 5, Energy(Linear(intercept=False), Gaussian(), Uniform())
    source = Synthetic(num_variables=d, mechanism="linear", num_train=num_rows)(1)
    context = _chains.context([source.train], Constraints.free(source.train.names))
    context = context._replace(x=context.x[0], counted=context.counted[0])
    key_logits, key_weights, key = jax.random.split(jax.random.key(0), 3)
    logits = jax.random.normal(key_logits, (d, d))
    weights = 0.5 * jax.random.normal(key_weights, (d, d))
    params = {"mechanism": {"weights": weights}, "noise": {"log_scale": jnp.full(d, -0.2)}}
    batch = _chains.tiled(context, jnp.arange(num_rows), 1, correct=False)
    order = dagspace.order(jnp.arange(d, 0.0, -1.0))
    place = Place(energy, order, params, jnp.asarray(0), context.support, batch, 1.0)

    def estimated(key: Any) -> Any:
        key_masks, key_choice = jax.random.split(key)
        noise, masks = _mask_gradients.draw(key_masks, logits, num_masks)
        log_terms = -place.evaluate(place.graphs(masks)).total
        chosen = _mask_gradients.choose(key_choice, log_terms)
        graph = _mask_gradients.columns(masks, chosen) * order
        slope = -place.slope(graph) * order
        return estimate(logits, MaskDraws(noise, masks, log_terms, chosen, slope))

    found = np.asarray(jax.lax.map(estimated, jax.random.split(key, 2000), batch_size=100))
    exact = np.asarray(_exact_slope(logits, place))
    where = np.asarray(order) > 0
    return {
        "rows": num_rows,
        "masks": num_masks,
        "estimate": name,
        "true slope": float(np.abs(exact[where]).mean()),
        "bias": float(np.abs(found.mean(axis=0) - exact)[where].mean()),
        "deviation": float(found.std(axis=0)[where].mean()),
    }


def _exact_slope(logits: Any, place: Place) -> Any:
    """∇ Σ_j log E[p(x_j|W)]; all 2^d columns, the same one for every node at once."""
    d = len(logits)
    sets = jnp.asarray((np.arange(2**d)[:, None] >> np.arange(d)) & 1, jnp.float32)
    masks = jnp.broadcast_to(sets[:, :, None], (2**d, d, d))
    log_terms = -place.evaluate(place.graphs(masks)).total

    def objective(logits: Any) -> Any:
        up, down = jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)
        log_prob = (masks * up[None] + (1 - masks) * down[None]).sum(axis=1)
        return jax.nn.logsumexp(log_prob + log_terms, axis=0).sum()

    return jax.grad(objective)(logits)


def remedies(num_datasets: int) -> Iterator[list[dict[str, Any]]]:
    """Every engine on development seeds; linear functions, which leave time for all."""
    for name, method in engines("linear").items():
        yield _cells(name, method, "linear", range(1, 1 + num_datasets))


def figure(num_datasets: int) -> Iterator[list[dict[str, Any]]]:
    """The paper's comparison, beside what needs no learning."""
    seeds = range(trivial.FIRST_SEED, trivial.FIRST_SEED + num_datasets)
    for name in trivial.METHODS:
        fits = [(s, bayesdag.fit(_raw(s.train), name, seed=0)) for s in _sources("mlp", seeds)]
        yield [_measures(name, source, posterior, 0.0) for source, posterior in fits]
    for name in FIGURE:
        yield _cells(name, engines("mlp")[name], "mlp", seeds)


def _sources(kind: str, seeds: range) -> list[Any]:
    rows = {"num_train": NUM_ROWS, "num_test": NUM_TEST}
    return [
        Synthetic(num_variables=10, graph=graph, mechanism=kind, **rows)(seed)
        for graph in ("er", "sf")
        for seed in seeds
    ]


def _raw(data: Dataset) -> Dataset:
    """In the units of the data, as the paper's runs."""
    return replace(data, scaling=Scaling.of(data.values, "none"))


def _cells(name: str, method: Any, kind: str, seeds: range) -> list[dict[str, Any]]:
    sources = _sources(kind, seeds)
    datasets = [_raw(source.train) for source in sources]
    keys = jax.random.split(jax.random.key(seeds.start), len(datasets))
    started = time.process_time()
    posteriors = method.fit_many(keys, datasets, Constraints.free(datasets[0].names))
    seconds = (time.process_time() - started) / len(datasets)
    print(f"{name}: {seconds:.0f} CPU s a data set", flush=True)
    return [
        _measures(name, source, posterior, seconds)
        for source, posterior in zip(sources, posteriors, strict=True)
    ]


def _measures(name: str, source: Any, posterior: Any, seconds: float) -> dict[str, Any]:
    flat = posterior.graphs.reshape(-1, *source.graph.shape)
    summary = metrics.summary(flat, source.graph, posterior.weights.reshape(-1))
    effective = posterior.stats.get("effective_masks")
    return {
        "graph": source.provenance["dataset"]["graph"].upper(),
        "engine": name,
        **{key: summary[key] for key in COLUMNS if key in summary},
        "nll": trivial.held_out(posterior, source.test),
        "log_joint": float(posterior.stats["log_joint"].mean()),
        "effective_masks": None if effective is None else float(effective.mean()),
        "seconds": seconds,
    }


def exact(num_datasets: int) -> Iterator[list[dict[str, Any]]]:
    """Linear data of five columns: distance to the exact posterior of the same model."""
    sources = [
        Synthetic(num_variables=5, mechanism="linear", num_train=100, graph=graph)(seed)
        for graph in ("er", "sf")
        for seed in range(trivial.FIRST_SEED, trivial.FIRST_SEED + num_datasets)
    ]
    datasets = [source.train for source in sources]
    free = Constraints.free(datasets[0].names)
    shared = {"num_chains": 16, "num_warmup": 1000, "num_samples": 20, "thinning": 25}
    shared |= {"mechanism": Linear(intercept=False, init_scale=0.1)}
    printed = {"masks": PRINTED, "num_swaps": 0, "order_gradient": True}
    rows = {
        "SG-MCMC+VI": BayesDAG(**shared, share_edges=False),
        "joint as printed": Joint(**shared, **printed),
        "flips of the mask": Joint(**shared, num_swaps=0, order_gradient=True),
        "flips, swaps, no order gradient": Joint(**shared, num_swaps=1, order_gradient=False),
    }
    for name, method in rows.items():
        started = time.process_time()
        keys = jax.random.split(jax.random.key(0), len(datasets))
        posteriors = method.fit_many(keys, datasets, free)
        seconds = (time.process_time() - started) / len(datasets)
        print(f"{name}: {seconds:.0f} CPU s a data set", flush=True)
        yield [
            {"engine": name, **_distance(data, posterior), "seconds": seconds}
            for data, posterior in zip(datasets, posteriors, strict=True)
        ]


def _distance(data: Dataset, posterior: Any) -> dict[str, float]:
    dags, log_prob = Exact(LinearGaussian()).log_posterior_of_all_dags(
        data, Constraints.free(data.names)
    )
    place = {dag.tobytes(): index for index, dag in enumerate(dags)}
    drawn = posterior.graphs.reshape(-1, *dags[0].shape)
    weights = posterior.weights.reshape(-1)
    share = np.bincount([place[g.tobytes()] for g in drawn], weights, minlength=len(dags))
    edge = np.tensordot(share - np.exp(log_prob), dags, 1)
    return {
        "edge": float(np.abs(edge).max()),
        "mmd": float(np.sqrt(2) * np.linalg.norm(edge) / len(edge)),
        "total_variation": float(np.abs(share - np.exp(log_prob)).sum() / 2),
        "edges": float(np.tensordot(share, dags, 1).sum()),
    }


def step_time(num_datasets: int) -> Iterator[list[dict[str, Any]]]:
    """CPU seconds of a step: 10 chains, a batch of 512, the paper's networks, d=10."""
    del num_datasets
    shared = {"num_warmup": 10**6, "num_samples": 1, "thinning": 1}
    rows = {
        "SG-MCMC+VI": BayesDAG(**shared),
        "flips of the mask": Joint(**shared, num_swaps=0, order_gradient=True),
        "flips, swaps, no order gradient": Joint(**shared, num_swaps=1, order_gradient=False),
    }
    found = [{"engine": name, "seconds a step": _seconds(method)} for name, method in rows.items()]
    for row in found:
        row["ratio"] = row["seconds a step"] / found[0]["seconds a step"]
    yield found


def _seconds(method: Any, d: int = 10, repeats: int = 5) -> float:
    data = Dataset(np.random.default_rng(0).normal(size=(5000, d)), tuple(map(str, range(d))))
    context = _chains.context([data], Constraints.free(data.names))
    keys = jax.random.key(0)[None]
    state = jax.jit(jax.vmap(lambda key: method.start(key, 5000, d)))(keys)
    schedule, kernel = loop.Schedule(10**6, 1, 1), _chains.Together(method)
    progress = loop._begin(keys, kernel, state, context, schedule)
    best = float("inf")
    for stop in range(2, 2 + 3 * (repeats + 1), 3):
        started, first = time.process_time(), int(progress.step)
        progress = loop.advance(keys, kernel, progress, context, schedule, stop)
        jax.block_until_ready(progress)
        best = min(best, (time.process_time() - started) / (stop - first))
    return best


def markdown(stored: dict[str, Any]) -> str:
    pieces = [
        "# The joint engine",
        "Generated by `experiments/joint.py`; do not edit. Mean over data sets ± half of the "
        "95 % interval (Student's t). A reversal counts 1 in SHD; NLL is of held-out rows in "
        "the units of the data; effective masks: of those weighed for each draw. Settings of "
        f"the neural engines: {SMALL}, {NUM_ROWS} rows, {WIDTH} hidden units, raw units.",
    ]
    for part, entry in stored.items():
        pieces.append(f"## {part}")
        pieces.append("\n".join(f"- {key}: {value}" for key, value in entry["stamp"].items()))
        cells = entry["cells"]
        if part in ("remedies", "figure"):
            cells = sorted(cells, key=lambda cell: cell["graph"])
            pieces.append(trivial.table(cells, ("graph", "engine"), COLUMNS))
        elif part == "exact":
            pieces.append(trivial.table(cells, ("engine",), DISTANCES))
        else:
            rows = [list(cells[0]), ["---"] * len(cells[0])]
            rows += [[_short(value) for value in cell.values()] for cell in cells]
            pieces.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return "\n\n".join(pieces) + "\n"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main() -> None:
    parts = {
        "slopes": slopes,
        "remedies": remedies,
        "figure": figure,
        "exact": exact,
        "time": step_time,
    }
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    parser.add_argument("--num-datasets", type=int, default=10, help="of each kind of graph")
    parser.add_argument("--table-only", action="store_true", help="no runs")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bayesdag.BayesdagWarning)
    store = HERE / "results" / "joint.json"
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=HERE, text=True).strip()
    for part in [] if options.table_only else options.parts:
        started, cells = time.process_time(), []
        for some in parts[part](options.num_datasets):
            cells += some
            stamp = {
                "commit": commit,
                "device": f"{platform.machine()}, one CPU thread",
                "CPU seconds": round(time.process_time() - started),
            }
            stored = json.loads(store.read_text()) if store.exists() else {}
            stored[part] = {"stamp": stamp, "cells": cells}
            store.write_text(json.dumps(stored, indent=1))
    (HERE / "results" / "joint.md").write_text(markdown(json.loads(store.read_text())))


if __name__ == "__main__":
    main()
