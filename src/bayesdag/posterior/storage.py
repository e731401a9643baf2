"""Results on disk: a plain document of arrays, and its netCDF file.

A file holds what is needed to answer questions later, and nothing about the machine that
made it (no clock, host or path): equal results give equal bytes. Files are written under
a temporary name and renamed, so a half-written one is never found under the real name.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesdag._version import __version__
from bayesdag.errors import FileFormatError
from bayesdag.runs.files import write_whole

if TYPE_CHECKING:
    import xarray

FORMAT = 1
LIBRARY = "bayesdag"


@dataclass(frozen=True)
class Document:
    """What a result file holds.

    Attributes:
        names: column names.
        graphs: (chain, draw, d, d).
        groups: named groups of arrays; those of `params` and `sample_stats` start with
            the dimensions (chain, draw), `marginals` are (d, d), `scaling` are (d,).
        attributes: plain JSON data.
    """

    names: tuple[str, ...]
    graphs: np.ndarray
    groups: dict[str, dict[str, np.ndarray]]
    attributes: dict[str, Any]


_LEADING = {
    "params": ("chain", "draw"),
    "sample_stats": ("chain", "draw"),
    "marginals": ("source", "target"),
    "scaling": ("target",),
    "state": (),
}


def save(document: Document, path: Path) -> None:
    """Write a document to netCDF: the whole file appears at once or not at all."""
    tree = to_datatree(document)
    encoding = {
        f"/{group.path.strip('/')}": {
            str(name): {"zlib": True, "complevel": 4}
            for name, variable in group.data_vars.items()
            if variable.ndim > 0 and variable.dtype.kind in "fiub"
        }
        for group in tree.subtree
    }
    write_whole(path, lambda to: tree.to_netcdf(to, engine="h5netcdf", encoding=encoding))


def load(path: Path) -> Document:
    """Read a document; anything but a whole file of this or an older format is refused."""
    import xarray

    if not path.is_file():
        raise FileFormatError(f"there is no file {path}")
    try:
        # Foreign files may lack named dimensions; they are refused below, in our own words.
        with xarray.open_datatree(path, engine="h5netcdf", phony_dims="sort") as tree:
            _check_origin(tree.attrs, path)
            return _from_datatree(tree.load())
    except (OSError, KeyError, AttributeError, json.JSONDecodeError, RuntimeError) as error:
        raise FileFormatError(
            f"{path} is not a whole {LIBRARY} result ({error}); it may be truncated or "
            "made by another program. Fit again, or restore it from a copy"
        ) from error


def to_datatree(document: Document) -> "xarray.DataTree":
    """The document as labelled arrays in the ArviZ schema."""
    import xarray

    groups = {"/": xarray.Dataset(attrs=_attributes(document))}
    nodes = {"source": list(document.names), "target": list(document.names)}
    num_chains, num_draws = document.graphs.shape[:2]
    steps = {"chain": np.arange(num_chains), "draw": np.arange(num_draws)}
    groups["posterior"] = xarray.Dataset(
        {"graph": (("chain", "draw", "source", "target"), document.graphs)}, coords=steps | nodes
    )
    for group, arrays in document.groups.items():
        if not arrays:
            continue
        known = steps | nodes
        coords = {dim: known[dim] for dim in _LEADING[group]}
        variables = {
            name: _variable(name, value, _LEADING[group]) for name, value in arrays.items()
        }
        groups[group] = xarray.Dataset(variables, coords=coords)
    return xarray.DataTree.from_dict(groups)


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    """Leaves of nested dictionaries under dotted names, sorted.

    >>> flatten({"b": {"a": 1}})
    {'b.a': array(1)}
    """
    flat: dict[str, np.ndarray] = {}
    for name in sorted(tree):
        value = tree[name]
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = np.asarray(value)
    return flat


def unflatten(flat: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Inverse of `flatten`."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, leaf = name.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return tree


def map_leaves(function: Callable[[Any], Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """`function` applied to every leaf of nested dictionaries."""
    return unflatten({name: function(leaf) for name, leaf in flatten(tree).items()})


def _variable(name: str, value: np.ndarray, leading: tuple[str, ...]) -> tuple:
    rest = tuple(f"{name}_dim_{k}" for k in range(value.ndim - len(leading)))
    return (*leading, *rest), value


def _attributes(document: Document) -> dict[str, Any]:
    return {
        "inference_library": LIBRARY,
        "inference_library_version": __version__,
        "format": FORMAT,
        "sample_dims": ["chain", "draw"],
        **{k: json.dumps(v, sort_keys=True) for k, v in sorted(document.attributes.items())},
    }


def _check_origin(attributes: Mapping[Any, Any], path: Path) -> None:
    if attributes.get("inference_library") != LIBRARY:
        raise FileFormatError(f"{path} was not written by {LIBRARY}; it has no result to show")
    if int(attributes["format"]) > FORMAT:
        raise FileFormatError(
            f"{path} has format {attributes['format']}, written by {LIBRARY} "
            f"{attributes['inference_library_version']}; this is {__version__}, which reads up to "
            f"format {FORMAT}. Upgrade with: pip install --upgrade {LIBRARY}"
        )


def _from_datatree(tree: "xarray.DataTree") -> Document:
    graph = tree["posterior"].to_dataset()["graph"]
    plain = {"inference_library", "inference_library_version", "format", "sample_dims"}
    return Document(
        names=tuple(str(name) for name in graph["source"].values),
        graphs=graph.values,
        groups={
            name: {str(k): v.values for k, v in tree[name].data_vars.items()}
            for name in _LEADING
            if name in tree.children
        },
        attributes={str(k): json.loads(v) for k, v in tree.attrs.items() if k not in plain},
    )
