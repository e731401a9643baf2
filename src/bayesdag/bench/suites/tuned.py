"""Hyperparameters selected as in the paper, beside settings that nobody tuned."""

from dataclasses import replace
from itertools import product
from typing import Any

from bayesdag.bench.columns import ACCURACY, HOURS, LINEAR, NEURAL, PUBLISHED, fits, trivial
from bayesdag.bench.datasets import five_linear
from bayesdag.bench.suite import FIGURES, Part, Runner, Size, Suite, Table, trials
from bayesdag.bench.tuning import TunedFit
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.types import Method, PlainData

# Variables; with five, functions are lines, which two cores can tune.
VARIABLES = {"quick": (5,), "paper": (5, 20, 30)}
NUM_SETS = {"quick": 1, "paper": 10}
FEW: PlainData = {"num_warmup": 2, "num_samples": 1, "num_chains": 2}
# What the paper's table of hyperparameters varies, and the values that occur in it.
# Of the engine: λ, and the scales of noise on p and on the functions; of lines, and of networks.
LINES = (50.0, 200.0, 500.0), (0.001, 0.01, 0.1), (0.001, 0.01)
NETWORKS = (200.0, 300.0, 500.0), (0.01, 0.1, 1.0), (0.01, 0.1)
SHARPNESS, BANDWIDTHS = (0.02, 0.2), (500.0, 1500.0)
COLUMNS = {**ACCURACY, "chosen": "chosen listed", "s": "seconds .0f"}


def build(size: Size) -> Suite:
    """The suite of this size."""
    parts = (
        Part(f"{graph}{d}", _sets(size, graph, d), _runners(size, graph, d), HOURS)
        for d in VARIABLES[size]
        for graph in ("er", "sf")
    )
    return Suite(
        title="Selected hyperparameters",
        caption="The paper's data: linear functions, one edge per node and 500 rows with five "
        "variables, else networks, two edges per node and 5000 rows. `tuned`: every combination of "
        "the values in the paper's table is fitted to five tuning sets, and the one with the least "
        "E-SHD to their truth is kept, as the paper did; `published`: the paper's own choice; all "
        "others know nothing of any truth.",
        parts=tuple(parts),
        tables=(Table("", ("graph", "d", "method"), COLUMNS),),
    )


def _made(graph: str, d: int) -> Synthetic:
    if d > 5:
        return Synthetic(num_variables=d, graph=graph, num_train=5000, num_test=100)
    return five_linear(graph)


def _sets(size: Size, graph: str, d: int) -> tuple:
    seeds = range(FIGURES, FIGURES + NUM_SETS[size])
    return tuple(trials({"graph": graph.upper(), "d": d}, _made(graph, d), seeds))


def _runners(size: Size, graph: str, d: int) -> dict[str, Runner]:
    made = _made(graph, d)
    linear = "linear-" if d == 5 else ""
    published = BayesDAG.PRESETS[f"paper-{linear}{graph}{d}"]
    if size == "quick":
        published = replace(published, **FEW)
        few = {name: m for name, m in list(_engine_grid(published).items())[:2]}
        tuned: dict[str, Runner] = {"bayesdag, tuned": TunedFit(few, made, (500,))}
        return {**tuned, **fits({PUBLISHED: published}), **trivial()}
    dibs = DiBS.PRESETS[f"paper-{linear or 'nonlinear-'}{graph}{d}"]
    return {
        "bayesdag, tuned": TunedFit(_engine_grid(published), made),
        "dibs, tuned": TunedFit(_dibs_grid(dibs), made),
        **fits({PUBLISHED: published, "dibs, published": dibs, **_untuned(d)}),
        **trivial(),
    }


def _untuned(d: int) -> dict[str, Method]:
    """Engines with their defaults."""
    if d == 5:
        return {"bayesdag": BayesDAG(mechanism=Linear()), LINEAR: Collapsed()}
    return {"bayesdag": BayesDAG(), NEURAL: Collapsed.PRESETS["neural"]}


def _engine_grid(base: Any) -> dict[str, Method]:
    values = LINES if isinstance(base.mechanism, Linear) else NETWORKS
    return {
        f"λ {sparsity:g}, s(p) {of_p:g}, s(Θ) {noise:g}": replace(
            base,
            sparsity=sparsity,
            potential_sampler=replace(base.potential_sampler, noise_scale=of_p),
            sampler=replace(base.sampler, noise_scale=noise),
        )
        for sparsity, of_p, noise in product(*values)
    }


def _dibs_grid(base: DiBS) -> dict[str, Method]:
    return {
        f"α {alpha:g}, h(θ) {width:g}": replace(base, alpha=alpha, param_bandwidth=width)
        for alpha, width in product(SHARPNESS, BANDWIDTHS)
    }
