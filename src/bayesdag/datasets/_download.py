"""Published files: found in a folder or a cache, or downloaded once, always checked.

The files are those of the repository kurowasan/GraN-DAG (MIT licence). The variable
BAYESDAG_DATA names a folder that already holds them, for machines without a network; then
nothing is ever downloaded.
"""

import hashlib
import io
import logging
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesdag.errors import FileFormatError, InputError

BASE = "https://raw.githubusercontent.com/kurowasan/GraN-DAG/master/data/"
FOLDER = "BAYESDAG_DATA"


@dataclass(frozen=True)
class Archive:
    """A published zip file and the checksum it must have."""

    name: str
    sha256: str

    def arrays(self, *members: str) -> list[np.ndarray]:
        """Arrays stored in the archive; pickled objects are refused."""
        with zipfile.ZipFile(self.path()) as archive:
            files = [io.BytesIO(archive.read(member)) for member in members]
        return [np.load(file, allow_pickle=False) for file in files]

    def path(self) -> Path:
        """Path of the checked file on this machine, downloaded if need be."""
        folder = os.environ.get(FOLDER)
        return self._in_folder(Path(folder)) if folder else self._in_cache()

    def provenance(self) -> dict[str, str]:
        """Origin of the file, as plain data."""
        return {"source": BASE + self.name, "sha256": self.sha256}

    def _in_folder(self, folder: Path) -> Path:
        path = folder / self.name
        if not path.is_file():
            raise InputError(
                f"{FOLDER} names {folder}, and there is no {self.name} in it; put the file "
                f"there (from {BASE}{self.name}) or unset {FOLDER} to have it downloaded"
            )
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != self.sha256:
            raise FileFormatError(
                f"{path} is not the published file: its SHA-256 is {found}, expected "
                f"{self.sha256}; replace it by {BASE}{self.name}"
            )
        return path

    def _in_cache(self) -> Path:
        import pooch
        from requests import RequestException

        url = BASE + self.name
        try:
            with _quiet(pooch.get_logger()):
                path = pooch.retrieve(
                    url,
                    known_hash=f"sha256:{self.sha256}",
                    fname=self.name,
                    path=pooch.os_cache("bayesdag"),
                )
        # A broken connection is an OSError and some are ValueErrors as well; a ValueError
        # of any other kind is the checksum that differs.
        except (RequestException, OSError) as error:
            raise InputError(
                f"{self.name} could not be downloaded from {url} ({error}); check the network, "
                f"or put the file into a folder and name that folder in {FOLDER}"
            ) from error
        except ValueError as error:
            raise FileFormatError(
                f"what came from {url} is not the published file: its checksum differs from "
                f"{self.sha256}; nothing was kept. Try again, or put the right file into a "
                f"folder and name that folder in {FOLDER}"
            ) from error
        return Path(path)


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """No progress lines on the screen: only the command line speaks to people."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
