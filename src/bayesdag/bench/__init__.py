"""Benchmarks: suites as data, one runner, one store, one writer of tables."""

from bayesdag.bench.cells import Cell, Store
from bayesdag.bench.running import run_suite, run_suites
from bayesdag.bench.suite import Part, Suite, describe_suites, load_suite
from bayesdag.bench.tables import write_page

__all__ = [
    "Cell",
    "Part",
    "Store",
    "Suite",
    "describe_suites",
    "load_suite",
    "run_suite",
    "run_suites",
    "write_page",
]
