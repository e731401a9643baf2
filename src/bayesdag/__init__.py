"""Bayesian causal discovery: a posterior over causal graphs and the functions on their edges.

>>> import bayesdag
>>> "exact" in bayesdag.list_methods()
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from bayesdag._version import __version__

if TYPE_CHECKING:
    from bayesdag.data import Dataset, read
    from bayesdag.errors import (
        BayesdagError,
        BayesdagWarning,
        DivergenceError,
        FileFormatError,
        InputError,
        KnowledgeError,
    )
    from bayesdag.fitting import extend, fit, list_methods, log_scores
    from bayesdag.knowledge import Knowledge
    from bayesdag.posterior import Posterior, load
    from bayesdag.posterior.merge import merge

__all__ = [
    "BayesdagError",
    "BayesdagWarning",
    "Dataset",
    "DivergenceError",
    "FileFormatError",
    "InputError",
    "Knowledge",
    "KnowledgeError",
    "Posterior",
    "__version__",
    "extend",
    "fit",
    "list_methods",
    "load",
    "log_scores",
    "merge",
    "read",
]

_HOMES = {
    "data": ("Dataset", "read"),
    "fitting": ("extend", "fit", "list_methods", "log_scores"),
    "posterior.merge": ("merge",),
    "knowledge": ("Knowledge",),
    "posterior": ("Posterior", "load"),
    "errors": (
        "BayesdagError",
        "BayesdagWarning",
        "DivergenceError",
        "FileFormatError",
        "InputError",
        "KnowledgeError",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import on first use: `bayesdag --help` must not wait for JAX."""
    if name in _HOME:
        return getattr(importlib.import_module(f"bayesdag.{_HOME[name]}"), name)
    raise AttributeError(f"module 'bayesdag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
