"""A journal of named results: the format of checkpoints, in files and in memory.

A file is a header and then records, appended one after the other. The header holds the settings
of the run, and every part its own checksum. A process that is killed while it appends leaves a
torn last record, which is dropped; any other damage is refused. Of records with the same name
the last one counts. Nothing here is pickled: arrays are stored in NumPy's own format.
"""

import io
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from bayesdag.errors import FileFormatError
from bayesdag.types import Facts, PlainData

Arrays = Mapping[str, np.ndarray]

MAGIC = b"bayesdag journal\n"
FORMAT = 1
_HEADER = struct.Struct("<IQI")  # format, length of the settings, checksum
_RECORD = struct.Struct("<4sQII")  # mark, length of the body, its checksum, that of this line
_MARK = b"RECD"


class Located(NamedTuple):
    """Position of a record in a file: its name, its first byte, and its length."""

    name: str
    start: int
    length: int


def header(settings: Facts) -> bytes:
    """First bytes of a file, by the settings of its run."""
    body = json.dumps(settings, sort_keys=True).encode()
    return MAGIC + _HEADER.pack(FORMAT, len(body), zlib.crc32(body)) + body


def read_header(file: io.BufferedIOBase, name: str) -> PlainData:
    """Settings of the run that a file belongs to; other files are refused."""
    start = file.read(len(MAGIC))
    if not start:
        raise refusal(name, "is empty")
    if start != MAGIC:
        raise refusal(name, "is not a checkpoint of bayesdag")
    fixed = file.read(_HEADER.size)
    if len(fixed) < _HEADER.size:
        raise refusal(name, "is cut off in its header")
    version, length, checksum = _HEADER.unpack(fixed)
    if version != FORMAT:
        raise refusal(name, f"has format {version}, and this version reads format {FORMAT}")
    body = _exactly(file, length)
    if body is None or zlib.crc32(body) != checksum:
        raise refusal(name, "has a damaged header")
    return json.loads(body)


def record(name: str, arrays: Arrays) -> bytes:
    """One record: a line with lengths and checksums, the names, and the arrays."""
    body = io.BytesIO()
    names = json.dumps([name, *arrays]).encode()
    body.write(struct.pack("<I", len(names)) + names)
    for value in arrays.values():
        np.lib.format.write_array(body, np.asanyarray(value), allow_pickle=False)
    content = body.getvalue()
    line = struct.pack("<4sQI", _MARK, len(content), zlib.crc32(content))
    return line + struct.pack("<I", zlib.crc32(line)) + content


def scan(file: io.BufferedIOBase, name: str) -> Iterator[Located]:
    """All whole records from the current position; a torn last one ends the list.

    The body of every record is read and checked, so that what is found can be trusted.
    """
    while True:
        start = file.tell()
        line = file.read(_RECORD.size)
        if len(line) < _RECORD.size:
            return
        mark, length, checksum, own = _RECORD.unpack(line)
        if mark != _MARK or own != zlib.crc32(line[:-4]):
            raise refusal(name, f"is damaged at byte {start}")
        body = _exactly(file, length)
        if body is None:
            return
        if zlib.crc32(body) != checksum:
            raise refusal(name, f"is damaged in the record at byte {start}")
        yield Located(_names(body)[0], start, _RECORD.size + length)


def arrays_of(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of one record that `scan` has found."""
    body = content[_RECORD.size :]
    _, *names = _names(body)
    stream = io.BytesIO(body)
    (length,) = struct.unpack("<I", stream.read(4))
    stream.seek(length, io.SEEK_CUR)
    return {name: np.lib.format.read_array(stream, allow_pickle=False) for name in names}


def refusal(name: str, what: str) -> FileFormatError:
    """The error of a file that cannot be resumed from."""
    return FileFormatError(f"{name} {what}; remove it to start afresh")


def _names(body: bytes) -> list[str]:
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length])


def _exactly(file: io.BufferedIOBase, length: int) -> bytes | None:
    """The next bytes, or None where the file ends before them.

    A length beyond the end of the file is never asked for: it may be damage.
    """
    here = file.tell()
    left = file.seek(0, io.SEEK_END) - here
    file.seek(here)
    return file.read(length) if length <= left else None
