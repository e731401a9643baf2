"""The bytes of a result file: a netCDF document, an index of its arrays, and a checksum.

    | netCDF-4 document | index (JSON) | magic, format, two lengths, SHA-256 |

HDF5 ignores what stands after its own end, so every netCDF program opens the file. Here it
is read by the index alone. HDF5's reader is not made for files of strangers: a single bit can
send it round in circles, and a file can ask it for other files. What is checked before any
byte is believed: the size, both signatures, the lengths, the checksum, then the format.
"""

import hashlib
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bayesdag.errors import FileFormatError
from bayesdag.types import PlainData

FORMAT = 2
LIBRARY = "bayesdag"

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MAGIC = b"bayesdag"
# Magic, format, bytes of the document and of the index; the digest of all before it follows.
_FOOTER = struct.Struct(">8sIQQ")
_DIGEST = hashlib.sha256().digest_size
_END = _FOOTER.size + _DIGEST


class _OtherFormatError(FileFormatError):
    """The file is whole; a newer version wrote it."""


@dataclass(frozen=True)
class Content:
    """A whole file, checked: the netCDF document and what the index says of it."""

    document: memoryview
    index: PlainData


def pack(document: bytes | memoryview, index: PlainData) -> bytes:
    """A result file's bytes; equal content gives equal bytes."""
    listing = json.dumps(index, sort_keys=True, separators=(",", ":")).encode()
    footer = _FOOTER.pack(_MAGIC, FORMAT, len(document), len(listing))
    body = b"".join((document, listing, footer))
    return body + hashlib.sha256(body).digest()


def read(path: Path) -> Content:
    """The content of a file, if it is whole, unchanged, and of a format known here."""
    if path.is_dir():
        raise FileFormatError(f"{path} is a folder; name the result (.nc) in it")
    if not path.is_file():
        raise FileFormatError(f"there is no file {path}; check the name and the folder")
    try:
        _refuse_too_large(path.stat().st_size, "the file")
        return unpack(path.read_bytes())
    except _OtherFormatError as error:
        raise FileFormatError(f"{path} has {error}") from error
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from error
    except FileFormatError as error:
        raise refusal(path, error) from error


def unpack(content: bytes) -> Content:
    """The parts of a file's bytes, once everything that can be checked is as it was written."""
    view = memoryview(content)
    form, num_document, num_index = _footer(view)
    if hashlib.sha256(view[:-_DIGEST]).digest() != bytes(view[-_DIGEST:]):
        raise FileFormatError("it was changed after it was written: its checksum is wrong")
    index = _json(view[num_document : num_document + num_index])
    if form != FORMAT:
        raise _other_format(form, str(index.get("version")))
    return Content(view[:num_document], index)


def refusal(path: Path, reason: object) -> FileFormatError:
    """Error about a file that cannot be used."""
    return FileFormatError(
        f"{path} is not a whole {LIBRARY} result ({reason}); fit again, or restore it from a copy"
    )


def refuse_more_than_memory(num_bytes: int) -> None:
    """Refuse to unpack more than half of this machine's memory."""
    _refuse_too_large(num_bytes, "what it holds")


def _footer(view: memoryview) -> tuple[int, int, int]:
    """Format and lengths, once they fit the signatures and the size."""
    if len(view) < len(_SIGNATURE) + _END:
        raise FileFormatError(f"it has only {len(view)} bytes")
    if bytes(view[: len(_SIGNATURE)]) != _SIGNATURE:
        raise FileFormatError("it does not start like a netCDF-4 file; another program made it")
    magic, form, num_document, num_index = _FOOTER.unpack(view[-_END:-_DIGEST])
    if magic != _MAGIC:
        raise FileFormatError(
            "it does not end like one: it is cut short, or was made by another program or by a "
            "development version before 0.1.0"
        )
    if num_document + num_index + _END != len(view):
        raise FileFormatError("its length is not the one that it states")
    return form, num_document, num_index


def _json(text: memoryview) -> PlainData:
    try:
        index = json.loads(str(text, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError("its index cannot be read") from error
    if not isinstance(index, dict):
        raise FileFormatError("its index is not a mapping")
    return cast(PlainData, index)


def _other_format(form: int, version: str) -> FileFormatError:
    if form < FORMAT:
        return FileFormatError(f"it states format {form}, which no released version wrote")
    return _OtherFormatError(
        f"format {form}, written by {LIBRARY} {ascii(version)[1:-1][:20]}; this version reads "
        f"format {FORMAT}. Upgrade with: pip install --upgrade {LIBRARY}"
    )


def _refuse_too_large(num_bytes: int, what: str) -> None:
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if num_bytes > limit:
        raise FileFormatError(
            f"{what} takes {num_bytes / 2**30:.1f} GiB, more than half of this machine's memory"
        )
