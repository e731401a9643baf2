"""Data sets: generators and published measurements, each with its truth."""

from bayesdag.datasets._benchmark import Benchmark, Interventional
from bayesdag.datasets._catalogue import Entry, catalogue

__all__ = ["Benchmark", "Entry", "Interventional", "catalogue"]
