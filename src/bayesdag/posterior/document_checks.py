"""Checks of documents from untrusted files: can this be a posterior at all.

A checksum detects damage, not intent: whoever writes the file writes the checksum, too. So
everything that questions rely on is looked at once, before the first of them is asked.
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from bayesdag.errors import FileFormatError
from bayesdag.graphs import is_acyclic
from bayesdag.types import Facts, PlainData

# How deep results nest: methods of methods with their scores come to ten.
_MAX_DEPTH = 40
_MAX_NAME = 10_000

# What of the provenance is read again, and its type; the rest is kept as it is.
_PROVENANCE = {
    "version": str,
    "model": str,
    "prior": str,
    "data_hash": str,
    "temperature": (int, float),
    "repetition": (int, float),
    "seed": (int, list),
    "method": dict,
    "chosen": dict,
    "knowledge": dict,
    "scaling": dict,
    "search": dict,
    "notes": list,
    "independent": bool,
}


def check_names(names: object) -> tuple[str, ...]:
    """Column names: some, different, and text."""
    listed = _list_of(names)
    texts = [n for n in listed if isinstance(n, str)]
    if not texts or len(set(texts)) != len(listed):
        raise FileFormatError("its columns have no names, or two have the same")
    if max(map(len, texts)) > _MAX_NAME:
        raise FileFormatError(f"a column's name is longer than {_MAX_NAME} letters")
    return tuple(texts)


def check_attributes(attributes: object) -> PlainData:
    """Plain data about the fit: mappings that are not too deep, of the types that are used."""
    wanted = ("provenance", "summary", "mechanism", "noise")
    found = cast(PlainData, attributes) if isinstance(attributes, dict) else {}
    if found.keys() != set(wanted):
        raise FileFormatError("it does not say what was fitted, and how")
    if not all(isinstance(found[name], dict) for name in wanted):
        raise FileFormatError("what it says of the fit is not a mapping")
    _refuse_depth(found)
    provenance: PlainData = found["provenance"]
    for name, kind in _PROVENANCE.items():
        if name in provenance and not isinstance(provenance[name], kind):
            raise FileFormatError(f"its provenance has a {name} of another type")
    _refuse_lists(provenance)
    return found


def check_graphs(graphs: np.ndarray, d: int) -> None:
    """Draws of DAGs: (chain, draw, d, d), 0 or 1, without cycles."""
    if graphs.ndim != 4 or graphs.dtype != np.int8 or graphs.shape[2:] != (d, d):
        raise FileFormatError(f"its graphs are not matrices of {d} by {d}")
    if 0 in graphs.shape:
        raise FileFormatError("it holds no draw")
    if not ((graphs == 0) | (graphs == 1)).all():
        raise FileFormatError("a graph has entries other than 0 and 1")
    if not is_acyclic(graphs).all():
        raise FileFormatError("a graph has a cycle")


def check_groups(groups: Mapping[str, Mapping[str, np.ndarray]], shape: tuple[int, ...]) -> None:
    """Arrays beside the graphs, whose shape is given: as many chains, draws and variables."""
    chain, draw, d, _ = shape
    for name, array in groups.get("params", {}).items():
        _refuse_shape(f"params {name}", array.shape[:2], (chain, draw))
    for name, array in groups.get("sample_stats", {}).items():
        _refuse_shape(name, array.shape, (chain, draw))
        _refuse_kind(name, array, "f")
    for name, array in groups.get("marginals", {}).items():
        _refuse_shape(f"marginals {name}", array.shape, (d, d))
        _refuse_kind(name, array, "f")
        # NaN is in no interval; sums of many weights exceed 1 by their rounding.
        if not ((array >= -1e-9) & (array <= 1 + 1e-9)).all():
            raise FileFormatError(f"its {_short(name)} probabilities are not between 0 and 1")
    for name, array in groups.get("evidence", {}).items():
        _refuse_shape(f"evidence {name}", array.shape, (d, d))
        _refuse_kind(name, array, "f")
    _check_scaling(groups.get("scaling", {}), d)
    _check_weights(groups.get("sample_stats", {}).get("weight"))


def _check_scaling(scaling: Mapping[str, np.ndarray], d: int) -> None:
    if set(scaling) != {"shift", "scale"}:
        raise FileFormatError("it does not say in which units it was fitted")
    for name, array in scaling.items():
        _refuse_shape(name, array.shape, (d,))
        _refuse_kind(name, array, "f")
        if not np.isfinite(array).all():
            raise FileFormatError(f"the {name} of a column is not finite")
    if not (scaling["scale"] > 0).all():
        raise FileFormatError("the scale of a column is not positive")


def _check_weights(weights: np.ndarray | None) -> None:
    if weights is None:
        raise FileFormatError("its draws have no weights")
    finite = np.isfinite(weights).all() and (weights >= 0).all()
    if not finite or abs(weights.sum() - 1) > 1e-6:
        raise FileFormatError("the weights of its draws are not probabilities that sum to 1")


def _refuse_lists(provenance: Facts) -> None:
    if not all(isinstance(note, str) for note in provenance.get("notes", [])):
        raise FileFormatError("its notes are not text")
    seed: object = provenance.get("seed", [])
    listed = _list_of(seed)
    if not all(type(s) is int for s in (listed if isinstance(seed, list) else [seed])):
        raise FileFormatError("its seed is not a whole number")


def _list_of(value: object) -> list[object]:
    """A list as it is, and nothing of anything else."""
    return cast(list[object], value) if isinstance(value, list) else []


def _refuse_depth(value: object) -> None:
    """Walked level by level: a recursion would end in the depth it is meant to find."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = [item.values() if isinstance(item, dict) else item for item in level]
        level = [x for items in inner for x in items if isinstance(x, dict | list)]
        if not level:
            return
    raise FileFormatError(f"what it says of the fit is nested more than {_MAX_DEPTH} deep")


def _refuse_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if tuple(shape) != wanted:
        raise FileFormatError(f"its {_short(name)} has shape {shape} where {wanted} belongs")


def _refuse_kind(name: str, array: np.ndarray, kind: str) -> None:
    if array.dtype.kind != kind:
        raise FileFormatError(f"its {_short(name)} has entries of type {array.dtype}")


def _short(name: str) -> str:
    return ascii(name)[1:-1][:60]
