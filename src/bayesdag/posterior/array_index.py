"""Positions of the arrays of a netCDF document in its bytes, and reading them from there.

HDF5 names the place of every chunk, and its deflate filter is plain zlib: with a list of
places no HDF5 library is needed to read (kerchunk reads archives in the cloud that way).
Every number in the list is checked before memory is reserved, because a file may come from
anyone: chunks lie inside the document, and none unpacks to more than zlib can have packed.
"""

import io
import itertools
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np

from bayesdag.errors import FileFormatError, InputError
from bayesdag.posterior.container import refuse_more_than_memory
from bayesdag.types import PlainData

_DTYPES = ("|b1", "|i1", "|u1", *(f"<{k}{n}" for k, n in itertools.product("iu", (2, 4, 8))))
DTYPES = frozenset((*_DTYPES, "<f2", "<f4", "<f8"))
_MAX_DIMENSIONS = 16
_MAX_SIZE = 2**48
# A stream of zlib grows to at most 1032 times its length.
_MAX_RATIO = 1040
_CHUNK_BYTES = 2**24


class ArrayPlace(NamedTuple):
    """One array: its type and shape, and where its chunks are, in row order of the chunks.

    Attributes:
        parts: (offset, stored bytes, 1 where they are packed) of every chunk.
    """

    dtype: str
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    parts: tuple[tuple[int, int, int], ...]

    @property
    def itemsize(self) -> int:
        """Bytes of an entry."""
        return np.dtype(self.dtype).itemsize

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk once it is unpacked."""
        return math.prod(self.chunk) * self.itemsize

    @property
    def corners(self) -> Iterator[tuple[int, ...]]:
        """First entry of every chunk."""
        steps = zip(self.shape, self.chunk, strict=True)
        return itertools.product(*(range(0, size, step) for size, step in steps))


def chunk_shape(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The whole array, or leading axes halved until a chunk takes at most 16 MiB."""
    chunk = list(shape)
    for axis in range(len(chunk)):
        while math.prod(chunk) * itemsize > _CHUNK_BYTES and chunk[axis] > 1:
            chunk[axis] = -(-chunk[axis] // 2)
    return tuple(chunk)


def refuse_other_types(name: str, array: np.ndarray) -> None:
    """Refuses what is no number."""
    if array.dtype.newbyteorder("<").str not in DTYPES:
        raise InputError(f"{name} has entries of type {array.dtype}, which no file holds")


def locate(document: bytes | memoryview, arrays: Mapping[str, np.ndarray]) -> PlainData:
    """Index entries of the arrays that stand in `document` under the names given."""
    import h5py  # pyright: ignore[reportMissingTypeStubs] (it has none)

    file: Any
    with h5py.File(io.BytesIO(document), "r") as file:
        return {name: _located(file[name], array)._asdict() for name, array in arrays.items()}


def read_all(document: memoryview, entries: object) -> dict[str, np.ndarray]:
    """Every array of an index that may be anything at all; a wrong one is refused."""
    if not isinstance(entries, dict):
        raise FileFormatError("its index lists no arrays")
    listed = cast(PlainData, entries)
    places = {name: _checked(name, entry, len(document)) for name, entry in listed.items()}
    stored = sum(size for place in places.values() for _, size, _ in place.parts)
    if stored > len(document):
        raise FileFormatError("its arrays overlap")
    refuse_more_than_memory(
        sum(math.prod(place.shape) * place.itemsize for place in places.values())
    )
    return {name: _read(name, document, place) for name, place in places.items()}


def _located(dataset: Any, array: np.ndarray) -> ArrayPlace:
    # netCDF has no truth values: they stand there as small integers.
    dtype = "|b1" if array.dtype == bool else dataset.dtype.str
    whole = tuple(max(size, 1) for size in array.shape)
    if array.size == 0:
        return ArrayPlace(dtype, array.shape, whole, ())
    if dataset.chunks is None:
        return ArrayPlace(dtype, array.shape, whole, ((dataset.id.get_offset(), array.nbytes, 0),))
    found = (dataset.id.get_chunk_info(k) for k in range(dataset.id.get_num_chunks()))
    # A set mask says that the filter, here deflate alone, was left out for the chunk.
    parts = {c.chunk_offset: (c.byte_offset, c.size, int(c.filter_mask == 0)) for c in found}
    place = ArrayPlace(dtype, array.shape, dataset.chunks, ())
    return place._replace(parts=tuple(parts[corner] for corner in place.corners))


def _checked(name: str, entry: object, num_bytes: int) -> ArrayPlace:
    """An entry whose numbers fit one another and the document."""
    place = _parsed(entry)
    if place is None or not _fits(place, num_bytes):
        raise FileFormatError(f"the place of its array {ascii(name)[:60]} makes no sense")
    return place


def _parsed(entry: object) -> ArrayPlace | None:
    """The entry with its types checked, or None."""
    if not isinstance(entry, dict):
        return None
    found = cast(PlainData, entry)
    if found.keys() != set(ArrayPlace._fields):
        return None
    dtype, shape, chunk, parts = (found[field] for field in ArrayPlace._fields)
    if not (isinstance(dtype, str) and dtype in DTYPES):
        return None
    if not (_whole_numbers(shape) and _whole_numbers(chunk) and isinstance(parts, list)):
        return None
    listed = cast(list[object], parts)
    triples = [part for part in listed if _whole_numbers(part) and len(part) == 3]
    if len(triples) != len(listed):
        return None
    return ArrayPlace(dtype, tuple(shape), tuple(chunk), tuple((p[0], p[1], p[2]) for p in triples))


def _whole_numbers(values: object) -> TypeGuard[list[int]]:
    if not isinstance(values, list):
        return False
    return all(type(v) is int and 0 <= v < _MAX_SIZE for v in cast(list[object], values))


def _fits(place: ArrayPlace, num_bytes: int) -> bool:
    if len(place.shape) != len(place.chunk) or len(place.shape) > _MAX_DIMENSIONS:
        return False
    sizes = list(zip(place.shape, place.chunk, strict=True))
    if not all(1 <= step <= max(size, 1) for size, step in sizes):
        return False
    if math.prod(-(-size // step) for size, step in sizes) != len(place.parts):
        return False
    return all(_lies_inside(part, place.chunk_bytes, num_bytes) for part in place.parts)


def _lies_inside(part: tuple[int, int, int], chunk_bytes: int, num_bytes: int) -> bool:
    offset, size, packed = part
    enough = chunk_bytes <= _MAX_RATIO * size if packed else chunk_bytes == size
    return offset + size <= num_bytes and enough and packed in (0, 1)


def _read(name: str, document: memoryview, place: ArrayPlace) -> np.ndarray:
    # Truth values are read as numbers: a byte other than 0 and 1 would be none of them.
    dtype = np.dtype("|u1" if place.dtype == "|b1" else place.dtype)
    array = np.empty(place.shape, dtype)
    for corner, (offset, size, packed) in zip(place.corners, place.parts, strict=True):
        raw = document[offset : offset + size]
        raw = _unpacked(name, raw, place.chunk_bytes) if packed else raw
        chunk = np.frombuffer(raw, dtype).reshape(place.chunk)
        inside = (slice(c, c + n) for c, n in zip(corner, place.chunk, strict=True))
        target = array[..., *inside]  # cut off at the end of the array, where chunks stand out
        target[...] = chunk[tuple(map(slice, target.shape))]
    return (
        array.astype(bool)
        if place.dtype == "|b1"
        else array.astype(dtype.newbyteorder("="), copy=False)
    )


def _unpacked(name: str, raw: memoryview, num_bytes: int) -> bytes:
    """Exactly `num_bytes`; a stream that holds more is not unpacked any further."""
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(raw, num_bytes + 1)
    except zlib.error as error:
        raise FileFormatError(f"its array {ascii(name)[:60]} does not unpack") from error
    if len(plain) != num_bytes or not stream.eof or stream.unused_data:
        raise FileFormatError(f"its array {ascii(name)[:60]} unpacks to another size")
    return plain
