r"""Which evidence of learned functions deserves trust, and how much of it?

All parent sets of small data sets are trained once; every kind of evidence is computed from the
same networks, and its posterior is exact (no search, no chains), so that differences are
differences of the evidence. Development seeds: what is chosen here is judged elsewhere.

    python experiments/neural_scores.py                     # everything, an hour of one core
    python experiments/neural_scores.py --only "mlp, 5000"  # one setting
    python experiments/neural_scores.py --table-only

Writes `results/neural_scores.json`, tables in `.md` and reliability curves in `.svg`.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import misfits
import numpy as np
from nonlinear import interval, listed, stamped

from bayesdag import metrics
from bayesdag.data import Dataset
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.graphs.bitsets import members
from bayesdag.methods.exact import Exact, _log_weights
from bayesdag.scores._neural.cache import Trained, log_evidence
from bayesdag.scores._neural.surrogate import AdditiveSurrogate
from bayesdag.scores.bge import BGe
from bayesdag.scores.neural import NeuralScore

HERE = Path(__file__).parent / "results"
NUM_VARIABLES, NUM_DRAWS = 6, 400
SETTINGS: dict[str, dict[str, Any]] = {
    "mlp, 100": {"num_train": 100},
    "mlp, 500": {"num_train": 500},
    "mlp, 5000": {"num_train": 5000},
    "mlp, 5000, dense": {"num_train": 5000, "edges_per_node": 2},
    "gp, 100": {"num_train": 100, "mechanism": "gp"},
    "gp, 500": {"num_train": 500, "mechanism": "gp"},
    "gp, 5000": {"num_train": 5000, "mechanism": "gp"},
    "sigmoid, 500": {"num_train": 500, "mechanism": "sigmoid"},
    "mlp, Laplace noise, 5000": {"num_train": 5000, "noise": "laplace"},
    "mlp, uneven noise, 500": {"num_train": 500, "noise": "uneven"},
}
# What the model does not expect; see `misfits`.
MISFITS = {f"{kind}, 500": kind for kind in misfits.KINDS}
TRUSTED = (np.inf, 8000.0, 2000.0, 500.0)
NEURAL = "Laplace, then predicted"
ONE_SCALE = f"{NEURAL}, one scale of noise"
SKEWED = "noise may be skewed"
HEDGED = "the three, each with the same weight"
EVIDENCE: dict[str, Callable[[Trained], float]] = {
    "predicted": lambda family: float(family.predicted[0]),
    "Laplace": lambda family: _once(family, family.log_marginal[:, 0]),
    "last layer": lambda family: _once(family, _last_layer(family)),
    ONE_SCALE: lambda family: _with(family, 0),
    NEURAL: lambda family: _with(family, 0, 1),
    SKEWED: lambda family: _with(family, 2, 3),
}
COLUMNS = {"shd": 2, "f1": 3, "log_score": 3, "brier_skill": 3, "num_edges": 1, "above_truth": 1}
BINS = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0 + 1e-9)


def _with(family: Trained, *kinds: int) -> float:
    """The evidence with noise of these kinds."""
    return float(log_evidence([family], kinds)[0])


def _once(family: Trained, by_fold: np.ndarray) -> float:
    """Evidence of rows that are counted by all folds but one, as if counted once."""
    return float(by_fold.sum()) / (len(family.spread) - 1)


def _last_layer(family: Trained) -> np.ndarray:
    """Hidden units as they are; only what reads them is integrated out."""
    h, k = family.networks.bias.shape[-1], len(family.members)
    count = max(float(family.used.sum()), 1.0)
    precision = np.concatenate([np.full(h, h), np.full(k, count), [0.01]])
    variance = (family.noise.scale[:, 0] / family.spread).astype(float) ** 2
    volume = np.linalg.slogdet(family.last.astype(float))[1]
    return family.log_posterior - 0.5 * (volume - np.log(variance[:, None] * precision).sum(axis=1))


def trained(data: Dataset, seed: int) -> dict[tuple[int, int], Trained]:
    """Networks of every node with every parent set, smaller sets first."""
    score = NeuralScore(trusted_rows=np.inf, seed=seed)
    stats = score.prepare(data)
    sets = members(NUM_VARIABLES)
    for size in range(NUM_VARIABLES):
        some = sets[sets.sum(axis=1) == size]
        asked = [(node, s) for node in range(NUM_VARIABLES) for s in some if not s[node]]
        nodes, parents = zip(*asked, strict=True)
        score.log_evidence_of_families(stats, np.array(nodes), np.array(parents))
    return stats.known


def tables(known: dict, worth: Callable[[Trained], float]) -> np.ndarray:
    found = np.full((NUM_VARIABLES, 2**NUM_VARIABLES), -np.inf)
    for (node, mask), family in known.items():
        found[node, mask] = worth(family)
    return found


def cheap_tables(score: Any, data: Dataset) -> np.ndarray:
    stats, sets = score.prepare(data), members(NUM_VARIABLES)
    found = np.full((NUM_VARIABLES, 2**NUM_VARIABLES), -np.inf)
    for node in range(NUM_VARIABLES):
        own = np.flatnonzero(~sets[:, node])
        found[node, own] = score.log_evidence(stats, node, sets[own])
    return found


def judged(several: list[np.ndarray], truth: np.ndarray) -> dict[str, Any]:
    """The posteriors of some tables, put together, beside the truth."""
    exact, rng = Exact(num_samples=NUM_DRAWS), np.random.default_rng(0)
    mixtures = [exact._mixture(table) for table in several]
    edge = np.mean([exact._marginals(mixture)["edge"] for mixture in mixtures], axis=0)
    graphs = np.concatenate([exact._draw(rng, mixture) for mixture in mixtures])
    value = exact._log_prior(graphs) + _log_weights(several[0], graphs)
    true = exact._log_prior(truth[None]) + _log_weights(several[0], truth[None])
    pairs = ~np.eye(len(truth), dtype=bool)
    return {
        "shd": metrics.expected_shd(graphs, truth),
        "f1": metrics.expected_f1(graphs, truth),
        "log_score": metrics.log_score(edge, truth),
        "brier_skill": metrics.brier_skill(edge, truth),
        "num_edges": float(edge.sum()),
        "above_truth": float(value.max() - true[0]),
        "said": [round(float(p), 4) for p in edge[pairs]],
        "true": truth[pairs].tolist(),
    }


def rows_of(name: str, seed: int) -> tuple[Dataset, np.ndarray]:
    """The rows of a setting, and their graph."""
    wanted = {"num_variables": NUM_VARIABLES, "edges_per_node": 1, "num_test": 0}
    if name in MISFITS:
        return misfits.misfit(MISFITS[name], Synthetic(**wanted, num_train=500), seed)
    source = Synthetic(**wanted | SETTINGS[name])(seed)
    return source.train, source.graph


def measure(name: str, seed: int, num_bags: int) -> list[dict[str, Any]]:
    """Every kind of evidence on one data set."""
    data, truth = rows_of(name, seed)
    n, known = data.num_rows, trained(data, 0)
    cells = []

    def note(evidence: str, trusted: float, several: list[np.ndarray]) -> None:
        power = 1 / (1 + n / trusted)
        found = judged([table * power for table in several], truth)
        told = None if np.isinf(trusted) else trusted
        cells.append({"setting": name, "seed": seed, "evidence": evidence, "trusted": told} | found)

    for evidence, worth in EVIDENCE.items():
        for trusted in TRUSTED if evidence in (NEURAL, "predicted") else TRUSTED[:1]:
            note(evidence, trusted, [tables(known, worth)])
    views = [tables(known, EVIDENCE[view]) for view in (NEURAL, ONE_SCALE, SKEWED)]
    note("one scale, and skewed, averaged", np.inf, views[1:])
    for trusted in TRUSTED:
        note(HEDGED, trusted, views)
    if name in SETTINGS:
        again = tables(trained(data, 1), EVIDENCE[NEURAL])
        note("two trainings, averaged", np.inf, [tables(known, EVIDENCE[NEURAL]), again])
    if num_bags and name in SETTINGS:
        rng = np.random.default_rng(seed)
        bags = [rng.integers(n, size=n) for _ in range(num_bags)]
        several = [trained(replace(data, values=data.values[rows]), 0) for rows in bags]
        note(f"{num_bags} bags", np.inf, [tables(k, EVIDENCE[NEURAL]) for k in several])
    note("sums of curves", np.inf, [cheap_tables(AdditiveSurrogate(), data)])
    note("linear (BGe)", np.inf, [cheap_tables(BGe(), data)])
    return cells


def markdown(document: dict[str, Any]) -> str:
    """The tables, generated."""
    cells = document["cells"]
    lines = ["# Evidence of learned functions", "", "Generated by `experiments/neural_scores.py`;"]
    lines += [
        f"do not edit. {NUM_VARIABLES} variables, exact posteriors, development seeds (1 and on);",
        "mean ± standard error over data sets. `trusted`: rows after which evidence is coarsened;",
        "`bins`: what was said of edges, how often it was true, and how many, for probabilities in",
        "(.05, .25), (.25, .5), (.5, .75), (.75, .95) and above.",
        "",
    ]
    for setting in dict.fromkeys(cell["setting"] for cell in cells):
        own = [cell for cell in cells if cell["setting"] == setting]
        lines += [f"## {setting} rows", "", f"Commit {listed(own, 'commit')}.", ""]
        lines.append("| evidence | trusted | sets | ")
        lines[-1] += " | ".join(COLUMNS) + " | bins |"
        lines.append("|---" * (len(COLUMNS) + 4) + "|")
        for key in dict.fromkeys((cell["evidence"], cell["trusted"]) for cell in own):
            some = [cell for cell in own if (cell["evidence"], cell["trusted"]) == key]
            numbers = [interval([c[k] for c in some], digits) for k, digits in COLUMNS.items()]
            shown = "all" if key[1] is None else f"{key[1]:g}"
            row = [key[0], shown, str(len(some)), *numbers, _bins(some)]
            lines.append("| " + " | ".join(row) + " |")
        lines.append("")
    return "\n".join(lines)


def reliability(cells: list[dict[str, Any]]) -> list[tuple[float, float, int]]:
    """Mean of what was said, share of what was true, and count, in each bin."""
    said = np.concatenate([cell["said"] for cell in cells])
    true = np.concatenate([cell["true"] for cell in cells])
    found = []
    for low, high in zip(BINS[:-1], BINS[1:], strict=True):
        inside = (said >= low) & (said < high)
        if inside.any():
            found.append((said[inside].mean(), true[inside].mean(), int(inside.sum())))
    return found


def _bins(cells: list[dict[str, Any]]) -> str:
    return ", ".join(f"{said:.2f}→{true:.2f} ({count})" for said, true, count in reliability(cells))


def draw_curves(cells: list[dict[str, Any]], path: Path) -> None:
    """Reliability curves of the neural evidence, all settings of equal rows together."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    shown = ("predicted", NEURAL, HEDGED, "4 bags")
    cells = [cell for cell in cells if cell["setting"] in SETTINGS]
    rows = sorted({SETTINGS[cell["setting"]]["num_train"] for cell in cells})
    figure, axes = plt.subplots(1, len(rows), figsize=(3.2 * len(rows), 3.2), squeeze=False)
    for axis, n in zip(axes[0], rows, strict=True):
        axis.plot([0, 1], [0, 1], color="0.8")
        for evidence in shown:
            for trusted in (None, 2000.0):
                some = [
                    c
                    for c in cells
                    if SETTINGS[c["setting"]]["num_train"] == n
                    and (c["evidence"], c["trusted"]) == (evidence, trusted)
                ]
                if some:
                    said, true, _ = zip(*reliability(some), strict=True)
                    label = evidence + ("" if trusted is None else f", trusted {trusted:g}")
                    axis.plot(said, true, "o-", label=label, markersize=3)
        axis.set(title=f"{n} rows", xlabel="said", ylabel="true", xlim=(0, 1), ylim=(0, 1))
    axes[0][0].legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[*SETTINGS, *MISFITS], help="settings")
    parser.add_argument("--num-datasets", type=int, default=6)
    parser.add_argument("--num-bags", type=int, default=4, help="for the first half of the sets")
    parser.add_argument("--store", type=Path, default=HERE / "neural_scores.json")
    parser.add_argument("--commit", help="where there is no repository to ask")
    parser.add_argument("--table-only", action="store_true")
    options = parser.parse_args()
    store = options.store
    document = json.loads(store.read_text()) if store.is_file() else {"cells": []}
    done = {(cell["setting"], cell["seed"]) for cell in document["cells"]}
    for name in [] if options.table_only else options.only:
        for seed in range(1, options.num_datasets + 1):
            if (name, seed) in done:
                continue
            started = time.process_time()
            bags = options.num_bags if seed <= options.num_datasets // 2 else 0
            stamp = stamped(options.commit)
            document["cells"] += [{**stamp, **cell} for cell in measure(name, seed, bags)]
            store.write_text(json.dumps(document) + "\n")
            print(f"{name}, seed {seed}: {time.process_time() - started:.0f} CPU s", flush=True)
    if document["cells"]:
        store.with_suffix(".md").write_text(markdown(document))
        draw_curves(document["cells"], store.with_suffix(".svg"))


if __name__ == "__main__":
    main()
