"""Results on disk: a plain document of arrays, and its netCDF file.

A file holds what is needed to answer questions later, and nothing about the machine that
made it (no clock, host or path): equal results give equal bytes. Files are written under
a temporary name and renamed, so a half-written one is never found under the real name.

Whoever sends a file may mean harm, so reading one trusts nothing in it: `container` checks
that it is whole, `array_index` reads the arrays, `document_checks` looks at what they say.
"""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from bayesdag._version import __version__
from bayesdag.errors import FileFormatError
from bayesdag.posterior import array_index, container, document_checks
from bayesdag.posterior.container import FORMAT, LIBRARY
from bayesdag.runs.files import write_whole
from bayesdag.types import Facts, PlainData

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Document:
    """Contents of a result file.

    Attributes:
        names: column names.
        graphs: (chain, draw, d, d).
        groups: named groups of arrays; those of `params` and `sample_stats` start with
            the dimensions (chain, draw), `marginals` and `evidence` are (d, d), `scaling` are
            (d,).
        attributes: plain JSON data.
    """

    names: tuple[str, ...]
    graphs: np.ndarray
    groups: dict[str, dict[str, np.ndarray]]
    attributes: PlainData


_LEADING = {
    "params": ("chain", "draw"),
    "sample_stats": ("chain", "draw"),
    "marginals": ("source", "target"),
    "scaling": ("target",),
    "state": (),
    "evidence": ("source", "target"),
}
_GRAPHS = "posterior/graph"


def save(document: Document, path: Path) -> None:
    """Write a document to netCDF: the whole file appears at once or not at all."""
    content = to_bytes(document)
    write_whole(path, lambda to: to.write_bytes(content))


def to_bytes(document: Document) -> bytes:
    """The file of a document; made in memory, so that HDF5 never meets a full disk."""
    netcdf = _netcdf(document)
    index = {
        "version": __version__,
        "names": list(document.names),
        "attributes": document.attributes,
        "arrays": array_index.locate(netcdf, _arrays(document)),
    }
    return container.pack(netcdf, index)


def load(path: Path) -> Document:
    """Read a document; anything but a whole file of this format is refused."""
    content = container.read(path)
    try:
        return _from_index(content.document, content.index)
    except FileFormatError as error:
        raise container.refusal(path, error) from error


def to_datatree(document: Document) -> "xarray.DataTree":
    """The document as labelled arrays in the ArviZ schema."""
    import xarray

    groups = {"/": xarray.Dataset(attrs=_attributes(document))}
    for name, group in _labelled(document).items():
        groups[name] = xarray.Dataset(group.variables, coords=group.coordinates)
    return cast(Any, xarray.DataTree).from_dict(groups)


def flatten(tree: Facts, prefix: str = "") -> dict[str, np.ndarray]:
    """Leaves of nested dictionaries under dotted names, sorted.

    >>> flatten({"b": {"a": 1}})
    {'b.a': array(1)}
    """
    flat: dict[str, np.ndarray] = {}
    for name in sorted(tree):
        value = tree[name]
        if isinstance(value, Mapping):
            inner = cast(Facts, value)
            flat |= flatten(inner, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = np.asarray(value)
    return flat


def unflatten(flat: Mapping[str, np.ndarray]) -> PlainData:
    """Inverse of `flatten`."""
    tree: PlainData = {}
    for name, value in flat.items():
        *parents, leaf = name.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return tree


def map_leaves(function: Callable[[Any], Any], tree: Facts) -> PlainData:
    """`function` applied to every leaf of nested dictionaries."""
    return unflatten({name: function(leaf) for name, leaf in flatten(tree).items()})


class _Labelled(NamedTuple):
    """A group of arrays with the names of their dimensions, and the labels along these."""

    coordinates: PlainData
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]]


def _labelled(document: Document) -> dict[str, _Labelled]:
    """All groups that hold something."""
    num_chains, num_draws = document.graphs.shape[:2]
    nodes = np.array(document.names, dtype=object)
    known: PlainData = {"chain": np.arange(num_chains), "draw": np.arange(num_draws)}
    known |= {"source": nodes, "target": nodes}
    graphs = (("chain", "draw", "source", "target"), document.graphs)
    found = {"posterior": _Labelled(known, {"graph": graphs})}
    for name, arrays in document.groups.items():
        if arrays:
            leading = _LEADING[name]
            variables = {key: (_dims(key, one, leading), one) for key, one in arrays.items()}
            found[name] = _Labelled({dim: known[dim] for dim in leading}, variables)
    return found


def _dims(name: str, value: np.ndarray, leading: tuple[str, ...]) -> tuple[str, ...]:
    return (*leading, *(f"{name}_dim_{k}" for k in range(value.ndim - len(leading))))


def _netcdf(document: Document) -> bytes:
    """The netCDF document, as xarray would write it; importing xarray takes longer than writing."""
    import h5netcdf  # pyright: ignore[reportMissingTypeStubs] (it has none)

    buffer = io.BytesIO()
    file: Any
    with cast(Any, h5netcdf).File(buffer, "w") as file:
        file.attrs.update(_attributes(document))
        for name, group in _labelled(document).items():
            _write(file.create_group(name), group)
    return buffer.getvalue()


def _write(group: Any, labelled: _Labelled) -> None:
    """Fill a group of a netCDF file."""
    import h5py  # pyright: ignore[reportMissingTypeStubs] (it has none)

    text = cast(Any, h5py).string_dtype()
    sizes = {dim: len(labels) for dim, labels in labelled.coordinates.items()}
    for dims, array in labelled.variables.values():
        sizes |= dict(zip(dims, array.shape, strict=True))
    group.dimensions = sizes
    for dim, labels in labelled.coordinates.items():
        kind = text if labels.dtype == object else labels.dtype
        group.create_variable(dim, (dim,), kind, data=labels)
    for name, (dims, array) in labelled.variables.items():
        # netCDF has no truth values; xarray reads these as such.
        truth = array.dtype == bool
        stored = array.astype(np.int8) if truth else array
        array_index.refuse_other_types(f"{group.name}/{name}", stored)
        written = group.create_variable(name, dims, data=stored, **_compressed(stored))
        if truth:
            written.attrs["dtype"] = "bool"


def _attributes(document: Document) -> PlainData:
    return {
        "inference_library": LIBRARY,
        "inference_library_version": __version__,
        "format": FORMAT,
        "sample_dims": ["chain", "draw"],
        **{k: json.dumps(v, sort_keys=True) for k, v in sorted(document.attributes.items())},
    }


def _compressed(array: np.ndarray) -> PlainData:
    if array.size == 0 or array.ndim == 0:
        return {}
    chunk = array_index.chunk_shape(array.shape, array.dtype.itemsize)
    return {"compression": "gzip", "compression_opts": 4, "shuffle": False, "chunks": chunk}


def _arrays(document: Document) -> dict[str, np.ndarray]:
    """Every array under its path in the netCDF document."""
    inner = {
        f"{group}/{name}": array
        for group, arrays in document.groups.items()
        for name, array in arrays.items()
    }
    return {_GRAPHS: document.graphs, **inner}


def _from_index(netcdf: memoryview, index: PlainData) -> Document:
    """The document that an index describes, which may be anything, if it is a valid one."""
    names = document_checks.check_names(index.get("names"))
    attributes = document_checks.check_attributes(index.get("attributes"))
    arrays = array_index.read_all(netcdf, index.get("arrays"))
    if _GRAPHS not in arrays:
        raise FileFormatError("it has no graphs")
    graphs = arrays.pop(_GRAPHS)
    document_checks.check_graphs(graphs, len(names))
    groups: dict[str, dict[str, np.ndarray]] = {}
    for path, array in arrays.items():
        group, _, name = path.partition("/")
        if group not in _LEADING or not name:
            raise FileFormatError("it has arrays that belong nowhere")
        groups.setdefault(group, {})[name] = array
    document_checks.check_groups(groups, graphs.shape)
    return Document(names, graphs, groups, attributes)
