"""The command `bayesdag`. It parses, calls the library, and prints; it decides nothing.

Heavy imports wait inside the commands, so that `--help` answers at once.
"""

from bayesdag.cli import bench, fit, inspect, list, plot, query, report
from bayesdag.cli.app import app, main, run

__all__ = ["app", "bench", "fit", "inspect", "list", "main", "plot", "query", "report", "run"]
