"""Columns of several kinds: models of levels against codes that are taken for numbers."""

import os
from pathlib import Path

from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.datasets.discrete_network import DiscreteNetwork
from bayesdag.datasets.mixed_network import FUNCTIONS, MixedNetwork
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.scores.bge import BGe
from bayesdag.scores.mixed import MixedScore
from bayesdag.types import Method

FIRST_SEED = 1000  # smaller seeds are for development
NUM_SETS = {"quick": 1, "paper": 5}
NUM_ROWS = {"quick": (300,), "paper": (1000,)}
VARIABLES = {"quick": 5, "paper": 8}
NETWORKS = ("child", "insurance", "alarm")
FOLDER = "networks"  # below BAYESDAG_DATA: files <name>.bif.gz that other packages distribute
COLUMNS = {
    "E-SHD": "expected_shd .2f",
    "E-CPDAG-SHD": "expected_cpdag_shd .2f",
    "log score": "log_score .4f",
    "true at p ≥ .95": "curve bin5",
    "NLL": "nll .3f",
    "CPU s": "cpu .1f",
}
MIXED: dict[str, str | Method] = {
    "mixed": Exact(score=MixedScore()),
    "codes as numbers": Exact(score=BGe()),
}
LEVELS: dict[str, str | Method] = {"collapsed": Collapsed()}


def build(size: Size) -> Suite:
    """The suite of this size."""
    parts = (
        Part("mixed", tuple(_mixed(size)), _fits(MIXED), 900.0),
        Part("levels", tuple(_levels(size)), _fits(LEVELS), 1800.0),
    )
    return Suite(
        title="Columns of several kinds",
        caption="Random networks, half of whose columns are binary, ordinal or categorical and act "
        "as levels; and networks of tables of probabilities. Codes as numbers: BGe of "
        "standardised codes; its NLL is of densities of codes and is not comparable. Networks "
        f"other than asia are read from {FOLDER}/<name>.bif.gz below BAYESDAG_DATA.",
        parts=parts,
        tables=(
            Table("Half levels", ("functions", "d", "rows", "method"), COLUMNS, parts=("mixed",)),
            Table("Levels only", ("network", "rows", "method"), COLUMNS, parts=("levels",)),
        ),
    )


def _fits(methods: dict[str, str | Method]) -> dict[str, FitRunner]:
    return {name: FitRunner(method, score_truth=False) for name, method in methods.items()}


def _mixed(size: Size) -> list[Trial]:
    d = VARIABLES[size]
    return [
        Trial(
            {"functions": functions, "d": d, "rows": rows},
            seed,
            MixedNetwork(d, functions=functions, num_train=rows),
        )
        for seed in range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
        for rows in NUM_ROWS[size]
        for functions in FUNCTIONS
    ]


def _levels(size: Size) -> list[Trial]:
    """Asia, and the networks whose files are there."""
    folder = Path(os.environ.get("BAYESDAG_DATA", ""), FOLDER)
    known = {"asia": ""} | {
        name: str(folder / f"{name}.bif.gz")
        for name in NETWORKS
        if size == "paper" and (folder / f"{name}.bif.gz").exists()
    }
    return [
        Trial({"network": name, "rows": rows}, seed, DiscreteNetwork(path, num_train=rows))
        for seed in range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
        for rows in ((1000,) if size == "quick" else (1000, 5000))
        for name, path in known.items()
    ]
