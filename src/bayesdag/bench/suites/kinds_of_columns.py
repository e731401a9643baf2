"""Columns of several kinds: models of levels against codes that are taken for numbers."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesdag.bench.columns import PATIENCE, everyone, fits
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import FIGURES, Part, Size, Suite, Table, Trial
from bayesdag.datasets.discrete_network import DiscreteNetwork
from bayesdag.datasets.discretised import Discretised
from bayesdag.datasets.mixed_network import FUNCTIONS, MixedNetwork
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.scores.bge import BGe
from bayesdag.scores.mixed import MixedScore
from bayesdag.types import Method

# Sets that were looked at while the scores were made are left out.
FIRST_SEED = FIGURES + 20
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
    "calibration error": "unsure calibration",
    "NLL": "nll .3f",
    "CPU s": "cpu .1f",
}
MIXED: dict[str, str | Method] = {
    "mixed": Exact(score=MixedScore()),
    "codes as numbers": Exact(score=BGe()),
}
LEVELS: dict[str, str | Method] = {"collapsed": Collapsed()}
CUT = {"lines, cut": "signed_linear", "networks, cut": "mlp"}  # measurements before they are cut
RIVALS = {
    "GES, BDeu (causal-learn)": Opponent("ges_bdeu", {}),
    "BOSS, BDeu (causal-learn)": Opponent("boss_bdeu", {}),
}
MIXED_RIVALS = {
    "GES, conditional Gaussian BIC (pgmpy)": Opponent("ges_conditional_gaussian", {}),
    "PC, RCIT (causal-learn)": Opponent("pc_rcit", {"alpha": 0.05}),
}
# One graph against one graph: a posterior's mean distance is that of graphs it does not prefer.
OF_LEVELS = {**COLUMNS, "CPDAG-SHD of the best": "best_cpdag_shd .1f"}
# Few pairs of a network are unsure, and some repeat one another: calibration is that of all.
CALIBRATION = {
    "log score": "log_score .4f",
    "true at p < .05": "curve bin0",
    ".05 to .25": "curve bin1",
    ".25 to .5": "curve bin2",
    ".5 to .75": "curve bin3",
    ".75 to .95": "curve bin4",
    "≥ .95": "curve bin5",
    "calibration error": "unsure calibration",
}
OURS: dict[str, Any] = {"parts": ("levels", "opponents")}


def build(size: Size) -> Suite:
    """The suite of this size."""
    mixed, levels, everybody = tuple(_mixed(size)), tuple(_levels(size)), everyone(size)
    parts = (
        Part("mixed", mixed, fits(MIXED), 900.0, interleaved=True),
        Part("mixed opponents", mixed, MIXED_RIVALS, 900.0, fresh=True, interleaved=True),
        Part("levels", levels, fits(LEVELS), 1800.0, interleaved=True),
        Part("opponents", levels, RIVALS, 1800.0, fresh=True, interleaved=True),
        Part("mixed others", mixed, everybody, PATIENCE, interleaved=True),
        Part("levels others", levels, everybody, PATIENCE, interleaved=True),
    )
    return Suite(
        title="Columns of several kinds",
        caption="Random networks, half of whose columns are binary, ordinal or categorical and act "
        "as levels, or are cut into levels after they have acted; and networks of tables of "
        "probabilities. Codes as numbers: BGe of standardised codes, as other packages and engines "
        "without a model of levels see them; their NLL is of densities of codes and is not "
        "comparable. Undirected edges of a class count half in each direction. Networks "
        f"other than asia are read from {FOLDER}/<name>.bif.gz below BAYESDAG_DATA.",
        parts=parts,
        tables=(
            Table(
                "Half levels",
                ("functions", "d", "rows", "method"),
                COLUMNS,
                parts=("mixed", "mixed opponents", "mixed others"),
            ),
            Table(
                "Levels only",
                ("network", "rows", "method"),
                OF_LEVELS,
                parts=("levels", "opponents", "levels others"),
            ),
            Table("Levels only, all networks together", ("rows", "method"), CALIBRATION, **OURS),
            Table("Levels only, all fits together", ("method",), CALIBRATION, **OURS),
        ),
    )


def _mixed(size: Size) -> list[Trial]:
    d = VARIABLES[size]
    made = {name: MixedNetwork(d, functions=name) for name in FUNCTIONS}
    made |= {name: Discretised(d, mechanism=mechanism) for name, mechanism in CUT.items()}
    return [
        Trial({"functions": name, "d": d, "rows": rows}, seed, replace(dataset, num_train=rows))
        for seed in range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
        for rows in NUM_ROWS[size]
        for name, dataset in made.items()
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
