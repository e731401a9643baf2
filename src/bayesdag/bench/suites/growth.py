"""Growth of time and memory with variables, rows and chains, with fitted exponents."""

from dataclasses import replace

from bayesdag.bench.columns import (
    ADDITIVE,
    ENGINES,
    NEURAL,
    PATIENCE,
    RIVALS,
    SYSTEMS,
    fits,
)
from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.suite import BASELINES, Part, Runner, Size, Suite, Table, Trial
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.collapsed import Collapsed
from bayesdag.types import PlainData

SEED = 900  # times need no fresh data
VARIABLES = {"quick": (4, 8), "paper": (5, 10, 20, 30, 50, 70, 100)}
ROWS = {"quick": (100, 200), "paper": (200, 500, 1000, 2000, 5000, 10_000)}
CHAINS = {"quick": (2, 4), "paper": (4, 8, 16, 32, 64)}
MIDDLE = {"quick": (4, 100), "paper": (10, 1000)}  # variables and rows where the other varies
FEW: PlainData = {"num_warmup": 2, "num_samples": 1, "thinning": 1}
KEYS = {"variables": "d", "rows": "rows", "chains": "chains"}
CAPTION = (
    "One process per cell, so that times include compilation and memory is that of one fit. "
    "Networks as functions, one edge per node, standardised columns. The exponent is the slope of "
    "the logarithm over the logarithm of the number, with its 95 % interval where there are three "
    f"points or more; constant costs, as compilation, flatten it. Given up after {PATIENCE:.0f} s."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    d, num_rows = MIDDLE[size]
    runners = _everyone(size)
    return Suite(
        title="Growth of time and memory",
        caption=CAPTION,
        parts=(
            _part("variables", [_trial(num, num_rows) for num in VARIABLES[size]], runners),
            _part("rows", [_trial(d, num) for num in ROWS[size]], runners),
            *(
                _part("chains", [_trial(d, num_rows, chains=num)], _with_chains(size, num))
                for num in CHAINS[size]
            ),
        ),
        tables=tuple(table for name in KEYS for table in _tables(name)),
    )


def _part(name: str, made: list[Trial], runners: dict[str, Runner]) -> Part:
    return Part(name, tuple(made), runners, PATIENCE, fresh=True)


def _trial(d: int, num_rows: int, **more: int) -> Trial:
    made = standardised_columns(d, num_rows)
    return Trial({"d": d, "rows": num_rows, **more}, SEED, made)


def _everyone(size: Size) -> dict[str, Runner]:
    if size == "quick":
        return fits({**ADDITIVE[size], "collapsed, BGe": ENGINES[size]["collapsed, BGe"]})
    return {**fits({**ENGINES[size], **SYSTEMS[size], **ADDITIVE[size]}), **RIVALS}


def _with_chains(size: Size, num: int) -> dict[str, Runner]:
    """Engines that move chains; the paper's with few steps, whose number changes nothing."""
    steps: PlainData = FEW if size == "quick" else {"num_warmup": 300, "num_samples": 10}
    engine = BayesDAG(**steps, num_chains=num)
    if size == "quick":
        return fits({"bayesdag": engine})
    neural = Collapsed.PRESETS["neural"]
    return fits({"bayesdag, 400 steps": engine, NEURAL: replace(neural, num_chains=num)})


def _tables(part: str) -> list[Table]:
    key = KEYS[part]
    exponents = {
        f"seconds grow with {part} to the power": f"seconds exponent:{key} .2f",
        "CPU seconds": f"cpu exponent:{key} .2f",
        "memory": f"memory_gb exponent:{key} .2f",
    }
    columns = {"s": "seconds .1f", "CPU s": "cpu .1f", "GB": "memory_gb .2f"}
    return [
        Table(f"Exponents of {part}", ("method", "device"), exponents, parts=(part,)),
        Table("", ("method", key, "device"), columns, parts=(part,), without=BASELINES),
    ]
