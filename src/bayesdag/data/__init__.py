"""Data: from any table to an immutable Dataset, checked in words at the border."""

from bayesdag.data.dataset import Dataset, check_rows, describe_sortability
from bayesdag.data.kinds import KINDS, Kind
from bayesdag.data.reading import read
from bayesdag.data.scaling import SCALINGS, Scaling

__all__ = [
    "KINDS",
    "SCALINGS",
    "Dataset",
    "Kind",
    "Scaling",
    "check_rows",
    "describe_sortability",
    "read",
]
