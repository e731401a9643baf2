"""Columns taken to have no causes, by their names: said before a fit, and in its result."""

import warnings
from collections.abc import Sequence

from bayesdag.data import Dataset, root_names
from bayesdag.errors import BayesdagWarning
from bayesdag.knowledge import Knowledge
from bayesdag.methods import _derivations
from bayesdag.types import Method


def assuming(said: Knowledge, method: Method, data: Dataset) -> Knowledge:
    """Knowledge with the roots that names of columns suggest, where the method obeys it.

    Where columns determine one another, one of them has to be computed from the others: roots
    that would leave none are not assumed.
    """
    if not _obeys(method):
        return said
    roots = _called_roots(data)
    whole = said.assuming(roots)
    if not roots or not _derivations.contradicts(data, whole.bind(data.names, data.contexts)):
        return whole
    tied = {data.names[j] for group in data.dependences.groups for j in group}
    return said.assuming(name for name in roots if name not in tied)


def warn(said: Knowledge, method: Method, name: str, data: Dataset) -> None:
    """Says before the fit what is assumed, or that the method cannot keep to it."""
    if said.assumed_roots:
        warnings.warn(words(said.assumed_roots), BayesdagWarning, stacklevel=3)
    elif not _obeys(method) and (roots := _called_roots(data)):
        warnings.warn(
            f"{', '.join(roots)}: nothing in this table acts on a column called so, but method "
            f"{name!r} cannot forbid edges; arrows into it mean nothing (method 'auto' can)",
            BayesdagWarning,
            stacklevel=3,
        )


def words(roots: Sequence[str]) -> str:
    """What is assumed, and how not to."""
    whose = "their names" if len(roots) > 1 else "its name"
    return (
        f"{', '.join(roots)}: taken to have no causes in this table, by {whose}; "
        "--no-assumed-roots (assumed_roots=False) lets the data decide"
    )


def _obeys(method: Method) -> bool:
    return "forbidden" in method.supported_constraints


def _called_roots(data: Dataset) -> tuple[str, ...]:
    """Variables whose names say that nothing acts on them."""
    own = [j for j, context in enumerate(data.contexts.tolist()) if not context]
    return root_names.assumed_roots([data.names[j] for j in own], [data.kinds[j] for j in own])
