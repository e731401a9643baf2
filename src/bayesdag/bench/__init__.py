"""Benchmarks: suites as data, one runner, one store, one writer of tables."""

from bayesdag.bench.cells import Cell
from bayesdag.bench.comparison import write_comparison
from bayesdag.bench.planning import Selection
from bayesdag.bench.running import Processes, RunLimits, run_suite, run_suites
from bayesdag.bench.store import Store, merge, read_pack, write_pack
from bayesdag.bench.suite import (
    Part,
    Suite,
    describe_suites,
    load_suite,
    released,
    suite_names,
)
from bayesdag.bench.tables import write_page

__all__ = [
    "Cell",
    "RunLimits",
    "Part",
    "Processes",
    "Selection",
    "Store",
    "Suite",
    "describe_suites",
    "load_suite",
    "merge",
    "read_pack",
    "released",
    "run_suite",
    "run_suites",
    "suite_names",
    "write_comparison",
    "write_pack",
    "write_page",
]
