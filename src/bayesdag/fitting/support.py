"""Whether a method can take these data and this knowledge, and in which form it takes them."""

from bayesdag import plugins
from bayesdag.data import Dataset, check_rows
from bayesdag.errors import InputError, KnowledgeError
from bayesdag.fitting.method_settings import name_of
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods import _assumed_roots, _derivations, _kinds
from bayesdag.methods.imputed import Imputed
from bayesdag.types import Method


def suited(method: Method, data: Dataset) -> tuple[Method, Dataset]:
    """A method for these data, and the data as it takes them.

    Columns that the method has no model for are numbers to it, or refused; where cells are
    missing, it is put into the method that imputes them.
    """
    data = _kinds.as_taken(method, name_of(method), data)
    if data.missing is not None and not isinstance(method, Imputed):
        return Imputed(method), data
    return method, data


def known(said: Knowledge, method: Method, data: Dataset, assumed_roots: bool) -> Knowledge:
    """What has been said, and what is assumed by the names of columns if that is wanted."""
    return _assumed_roots.assuming(said, method, data) if assumed_roots else said


def check(method: Method, data: Dataset, knowledge: Constraints) -> None:
    """Refuse, before anything runs, what the method does not support."""
    name = name_of(method)
    refused = sorted(knowledge.kinds - method.supported_constraints)
    if refused:
        able = [n for n in plugins.names("methods") if knowledge.kinds <= _supported_constraints(n)]
        kinds = " and ".join(k if k == "environments" else f"{k} edges" for k in refused)
        raise KnowledgeError(
            f"method {name!r} does not support {kinds}; drop them or use one of: {', '.join(able)}"
        )
    if data.has_interventions and not method.supports_interventions:
        raise InputError(
            f"method {name!r} cannot use interventional data; drop those rows or choose a "
            "method that can (bayesdag methods)"
        )
    check_rows(data, method.min_rows(data.num_variables), name)
    _derivations.check(method, name, data)


def _supported_constraints(name: str) -> frozenset[str]:
    """Of the method with its default settings: those made of methods ask the ones inside."""
    return plugins.load("methods", name)().supported_constraints
