"""Additive noise, functions of several kinds, sparse and dense: who finds the graph."""

from itertools import product

from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.bench.suites.broken_worlds import METHODS, runners
from bayesdag.methods.cam import CAM

# First seed of each part: figures come from data that nobody has looked at.
FIRST_SEEDS = {"kinds": 1000, "development": 0}
NUM_SETS = {"quick": 1, "paper": 10}
NUM_BOOTSTRAPS = 20  # CAM is compared by its estimate from all rows above all
NUM_ROWS = {"quick": 200, "paper": 1000}
SETTING = ("functions", "edges per node", "d", "rows")
KINDS = {"GP": "gp", "additive GP": "additive", "sigmoid": "sigmoid"}
DENSITIES = {"quick": (1,), "paper": (1, 4)}
VARIABLES = {"quick": (5,), "paper": (10, 20)}
COLUMNS = {
    "E-SHD": "expected_shd .2f",
    "SHD of its estimate": "estimate_shd .2f",
    "F1": "edge_f1 .3f",
    "true at p ≥ .95": "curve bin5",
    "log score": "log_score .4f",
    "base rate's": "base_rate_log_score .4f",
    "misfit": "misfit .3f",
    "s": "seconds .1f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    methods = runners({**METHODS[size], "cam": CAM(num_samples=NUM_BOOTSTRAPS)})
    return Suite(
        title="Functions of several kinds with additive noise",
        caption="Erdős–Rényi graphs, standardised columns, Gaussian noise. A reversal counts 1 in "
        "SHD.",
        parts=tuple(
            Part(name, tuple(_trials(size, first)), methods, 1800.0, interleaved=True)
            for name, first in FIRST_SEEDS.items()
        ),
        tables=(
            Table("Figures", (*SETTING, "method"), COLUMNS, parts=("kinds",)),
            Table("Development", (*SETTING, "method"), COLUMNS, parts=("development",)),
        ),
    )


def _trials(size: Size, first: int) -> list[Trial]:
    num_rows = NUM_ROWS[size]
    return [
        Trial(
            dict(zip(SETTING, (kind, density, d, num_rows), strict=True)),
            seed,
            standardised_columns(d, num_rows, KINDS[kind], edges_per_node=density),
        )
        for seed in range(first, first + NUM_SETS[size])
        for d, density in product(VARIABLES[size], DENSITIES[size])
        for kind in KINDS
    ]
