"""Data: from any table to an immutable Dataset, checked in words at the border."""

from bayesdag.data.dataset import SCALINGS, Dataset, Scaling, check_rows, describe_sortability, read

__all__ = ["SCALINGS", "Dataset", "Scaling", "check_rows", "describe_sortability", "read"]
