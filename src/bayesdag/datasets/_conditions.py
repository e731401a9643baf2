"""Measurements under several experimental conditions, read from the folder BAYESDAG_DATA.

The files (`measured/<name>.npz`) are not published with the package: rows `X` with their
`columns`, the true graph `adj`, the condition `env` of every row, `set_mask` (cells that an
experimenter set or moved), and `unknown` where the truth of an entry is not known.
"""

import hashlib
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._download import FOLDER
from bayesdag.datasets._measured import Split
from bayesdag.errors import FileFormatError, InputError

SUBFOLDER = "measured"
# What a method is given of the experimenters' doings.
NOTHING, TARGETS, ENVIRONMENT = MARKINGS = ("nothing", "targets", "environment")
_NEEDED = ("X", "columns", "adj", "env", "set_mask")


@dataclass(frozen=True)
class MeasuredFile:
    """A file of measurements that is on some machines only."""

    name: str

    def path(self) -> Path:
        """Where the file lies, or an InputError that says where it should."""
        folder = os.environ.get(FOLDER)
        if not folder:
            raise InputError(
                f"{self.name} is not published with bayesdag; put it into {SUBFOLDER}/ of a "
                f"folder and name that folder in {FOLDER}"
            )
        path = Path(folder) / SUBFOLDER / self.name
        if not path.is_file():
            raise InputError(
                f"{FOLDER} names {folder}, and there is no {SUBFOLDER}/{self.name} in it; put the "
                "file there"
            )
        return path

    def arrays(self) -> dict[str, np.ndarray]:
        """Its arrays by name; pickled objects are refused."""
        path = self.path()
        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise FileFormatError(f"{path} is damaged ({error}); copy it again") from error
        missing = [name for name in _NEEDED if name not in found]
        if missing:
            raise FileFormatError(
                f"{path} has no array called {missing[0]}; it needs {', '.join(_NEEDED)}"
            )
        return found

    def provenance(self) -> dict[str, str]:
        """Which file it was."""
        digest = hashlib.sha256(self.path().read_bytes()).hexdigest()
        return {"source": f"{SUBFOLDER}/{self.name}", "sha256": digest}


def check_options(marking: str, num_rows: int | None) -> None:
    """Refuses what no data set of this kind has."""
    if marking not in MARKINGS:
        raise InputError(f"no marking is called {marking!r}; there are: {', '.join(MARKINGS)}")
    if num_rows is not None and num_rows < 2:
        raise InputError(f"num_rows is {num_rows}; it must be 2 or more, or None for all")


def subsample(rng: np.random.Generator, rows: np.ndarray, num_rows: int | None) -> np.ndarray:
    """That many of the rows, at random and in their order; None: all."""
    if num_rows is None:
        return rows
    if num_rows > len(rows):
        raise InputError(f"num_rows is {num_rows}, and there are {len(rows)} rows to learn from")
    return np.sort(rng.choice(rows, num_rows, replace=False))


def benchmark(
    dataset: Any,
    seed: int,
    file: MeasuredFile,
    arrays: Mapping[str, np.ndarray],
    graph: np.ndarray,
    rows: Split,
) -> Benchmark:
    """The measurements with their truth, marked as `dataset.marking` says."""
    names = tuple(str(name) for name in arrays["columns"])
    values, were_set = arrays["X"].astype(np.float64), arrays["set_mask"].astype(bool)

    def table(chosen: np.ndarray, **options: Any) -> Dataset:
        marked = were_set[chosen] if dataset.marking == TARGETS else None
        return Dataset(values[chosen], names, marked, **options)

    train = table(rows.train)
    test = table(rows.test, scaling=train.scaling) if len(rows.test) else None
    return Benchmark(
        train=train,
        graph=graph.astype(np.int8),
        test=test,
        unknown=_unknown(arrays),
        environment=arrays["env"][rows.train] if dataset.marking == ENVIRONMENT else None,
        description=dataset.description,
        provenance={
            "dataset": plugins.configuration(dataset),
            "seed": seed,
            **file.provenance(),
        },
    )


def _unknown(arrays: Mapping[str, np.ndarray]) -> Bool[np.ndarray, "d d"] | None:
    if "unknown" not in arrays or not arrays["unknown"].any():
        return None
    return arrays["unknown"].astype(bool)
