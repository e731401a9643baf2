"""One HTML file that a person opens, offline, to see what is known, what is not, and why."""

from bayesdag.report.page import render, write

__all__ = ["render", "write"]
