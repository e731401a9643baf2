"""Quality of the paper's engine along a run, beside the published code's curve.

    python benchmarks/parity.py --anchors DIR --data er10_seed5 --preset paper-er10 --epochs 352

DIR holds data sets of the published generator (`X_train`, `X_test`, `adj`) and `curves.csv`.
All seeds run in one compiled call. Each evaluation takes ten graphs a chain from q(W|p) at that
epoch, as the published one takes 100 in all, and moves no chain, unless `--moves 10` is given:
the published evaluation first takes so many steps of p and Θ with q at rest, and goes on from
there. One JSON line an evaluation; the last line compares with the published curve.
"""

import argparse
import dataclasses
import json
import os
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag import metrics
from bayesdag.data import Dataset
from bayesdag.knowledge import Constraints
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.model.scm import SCM
from bayesdag.runs import loop
from bayesdag.sgmcmc import chains

GRAPHS_A_CHAIN = 10
CURVES = {
    "er10_seed5": "ER10_mlp_seed5",
    "er20_seed5": "ER20_mlp_seed5",
    "linear_er5_seed5": "ER5_linear_seed5@full",
}


def main() -> None:
    options = read_options()
    anchors = Path(options.anchors)
    with np.load(anchors / f"{options.data}.npz") as file:
        train, test, truth = (np.asarray(file[k]) for k in ("X_train", "X_test", "adj"))
    method = BayesDAG.PRESETS[options.preset]
    if options.passes:
        method = dataclasses.replace(method, passes=options.passes)
    rows = []
    for row in curves(method, train, test, truth, options):
        rows.append({"data": options.data, "passes": method.passes, **row})
        print(json.dumps(rows[-1]), flush=True)
    published = anchors / "curves.csv"
    if published.is_file() and options.data in CURVES:
        print(json.dumps(comparison(rows, published, CURVES[options.data])))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anchors", default=os.environ.get("BAYESDAG_ANCHORS"), required=False)
    parser.add_argument("--data", default="er10_seed5")
    parser.add_argument("--preset", default="paper-er10")
    parser.add_argument("--epochs", type=int, default=352)
    parser.add_argument("--every", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--passes", type=int, default=0, help="instead of the preset's 3")
    parser.add_argument("--moves", type=int, default=0, help="steps that an evaluation takes")
    options = parser.parse_args()
    if not options.anchors:
        parser.error("give --anchors, or set BAYESDAG_ANCHORS")
    return options


def curves(method, train, test, truth, options):
    """Evaluations of all seeds, at the epochs 0, every, 2 every, …, counted as published."""
    names = tuple(f"x{i}" for i in range(train.shape[1]))
    data = chains.in_original_units(Dataset(train.astype(np.float64), names))
    context = chains.context([data] * options.seeds, Constraints.free(names))
    keys = jnp.stack([jax.random.key(seed) for seed in range(options.seeds)])
    state = jax.jit(jax.vmap(lambda key: method.start(key, *train.shape)))(keys)
    a_epoch = -(-len(train) // method.batch_size)
    schedule = loop.Schedule(10**6, 1, 1)
    kernel = chains.StackedDatasets(method)
    progress = loop._begin(keys, kernel, state, context, schedule)
    started = time.perf_counter()
    for epoch in range(0, options.epochs + 1, options.every):
        until = (epoch + 1) * a_epoch
        progress = loop.advance(keys, kernel, progress, context, schedule, until)
        if options.moves:
            progress = moved(method, keys, progress, context, options.moves)
        loop._refuse_broken(progress)
        seconds = round(time.perf_counter() - started, 1)
        for seed in range(options.seeds):
            own = jax.tree.map(lambda x, seed=seed: x[seed], progress.state)
            found = evaluate(method, own, context, data, test, truth)
            iterations = float(np.max(progress.stats["iterations"][seed]))
            about = {"seed": seed, "epoch": epoch, "seconds": seconds, "iterations": iterations}
            yield about | found


def moved(method, keys, progress, context, moves):
    """Chains after some steps of p and Θ on batches of 500 rows, with φ and σ at rest."""
    resting = dataclasses.replace(method, learning_rate=0.0, batch_size=500)
    kernel, schedule = chains.StackedDatasets(resting), loop.Schedule(10**6, 1, 1)
    own = jax.vmap(lambda key: jax.random.fold_in(key, progress.step))(keys)
    before = jax.tree.map(jnp.copy, progress.state)
    begun = loop._begin(own, kernel, before, context, schedule)
    after = loop.advance(own, kernel, begun, context, schedule, moves).state
    kept = {name: getattr(before, name) for name in ("learned", "optimiser", "rows")}
    return progress._replace(state=after._replace(**kept))


def evaluate(method, state, context, data, test, truth):
    """E-SHD, F1, edges and held-out NLL of 10 graphs a chain."""
    draws = _draws(method, state, context)
    d = truth.shape[0]
    graphs = np.asarray(draws.pop("graph")).reshape(-1, d, d)
    params = jax.tree.map(lambda x: x.reshape(len(graphs), *x.shape[2:]), draws)
    densities = _log_prob(SCM(method.mechanism, method.noise, data.scaling), params, graphs, test)
    return {
        "shd": metrics.expected_shd(graphs, truth.astype(np.int8)),
        "f1": metrics.expected_f1(graphs, truth.astype(np.int8)),
        "edges": float(graphs.sum(axis=(1, 2)).mean()),
        "nll": float(-np.mean(np.logaddexp.reduce(densities, axis=0) - np.log(len(graphs)))),
    }


def _draws(method, state, context):
    own = context._replace(x=context.x[0], counted=context.counted[0])
    return _keep(method, jax.random.split(jax.random.key(0), GRAPHS_A_CHAIN), state, own)


@partial(jax.jit, static_argnums=0)
def _keep(method, keys, state, context):
    return jax.vmap(lambda key: method.keep(key, state, context))(keys)


def _log_prob(scm, params, graphs, test):
    rows = jnp.asarray(test, jnp.float32)
    return np.asarray(_densities(_Hashable(scm), params, graphs, rows), np.float64)


@partial(jax.jit, static_argnums=0)
def _densities(held, params, graphs, rows):
    nothing = jnp.zeros(rows.shape, bool)

    def one(draw):
        return held.scm.log_prob(draw[0], draw[1].astype(jnp.float32), rows, nothing)

    return jax.lax.map(one, (params, graphs))


class _Hashable:
    """An SCM as a key of compiled code: data in original units have no scaling to compare."""

    def __init__(self, scm):
        self.scm = scm

    def __hash__(self):
        return hash(self.scm.mechanism)

    def __eq__(self, other):
        return self.scm.mechanism == other.scm.mechanism


def comparison(rows: list[dict], path: Path, run: str) -> dict:
    """Means over seeds and their spread, beside the published value at the same epoch."""
    import pandas as pd

    ours = pd.DataFrame(rows)
    published = pd.read_csv(path)
    published = published[published.run == run].groupby("epoch").first()
    columns = {"shd": "shd", "f1": "orientation_fscore", "nll": "nll_true"}
    found = {}
    for epoch, rows in ours.groupby("epoch"):
        if epoch in published.index:
            found[int(epoch)] = {
                name: {
                    "ours": round(float(rows[name].mean()), 3),
                    "spread": round(float(rows[name].std(ddof=0)), 3),
                    "published": float(published.loc[epoch, theirs]),
                }
                for name, theirs in columns.items()
            }
    return found


if __name__ == "__main__":
    main()
