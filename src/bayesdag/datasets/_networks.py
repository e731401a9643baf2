"""Networks of tables of probabilities: one that is built in, and files in the BIF format."""

import gzip
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int8

from bayesdag.errors import FileFormatError

_VARIABLE = re.compile(r"variable\s+(\S+)\s*\{[^{]*\{([^}]*)\}")
_TABLE = re.compile(r"probability\s*\(\s*([^)]*?)\s*\)\s*\{(.*?)\n\s*\}", re.DOTALL)
_ROW = re.compile(r"\(([^)]*)\)\s*([^;]*);")


class TableNetwork(NamedTuple):
    """A graph of columns with levels, and the probabilities of each given its parents.

    Attributes:
        levels: labels by column.
        parents: columns by column.
        tables: by column; the last dimension is that of its own levels.
    """

    levels: dict[str, tuple[str, ...]]
    parents: dict[str, tuple[str, ...]]
    tables: dict[str, np.ndarray]

    @property
    def graph(self) -> Int8[np.ndarray, "d d"]:
        """Entry [i, j] is 1 where column i is a parent of column j."""
        names = list(self.levels)
        graph = np.zeros((len(names), len(names)), dtype=np.int8)
        for j, name in enumerate(names):
            graph[[names.index(parent) for parent in self.parents[name]], j] = 1
        return graph

    def sample(self, rng: np.random.Generator, num_rows: int) -> Float[np.ndarray, "n d"]:
        """Codes of rows, parents before children."""
        codes: dict[str, np.ndarray] = {}
        while len(codes) < len(self.levels):
            for name, parents in self.parents.items():
                if name not in codes and all(parent in codes for parent in parents):
                    given = tuple(codes[parent] for parent in parents)
                    up_to = np.cumsum(self.tables[name][given], axis=-1)
                    drawn = rng.random((num_rows, 1)) * up_to[..., -1:]
                    codes[name] = (drawn > up_to).sum(axis=1)
        return np.stack([codes[name] for name in self.levels], axis=1).astype(float)


def _two(**probability_of_yes: object) -> TableNetwork:
    """A network of columns with the levels no and yes; keys name a column and its parents."""
    parents, tables = {}, {}
    for said, numbers in probability_of_yes.items():
        name, *given = said.split("__")
        yes = np.array(numbers, dtype=float)
        parents[name], tables[name] = tuple(given), np.stack([1 - yes, yes], axis=-1)
    return TableNetwork(dict.fromkeys(parents, ("no", "yes")), parents, tables)


# Lauritzen & Spiegelhalter (1988), Local computations with probabilities on graphical structures
# and their application to expert systems, Journal of the Royal Statistical Society B.
ASIA = _two(
    asia=0.01,
    smoke=0.5,
    tub__asia=[0.01, 0.05],
    lung__smoke=[0.01, 0.1],
    bronc__smoke=[0.3, 0.6],
    either__lung__tub=[[0.0, 1.0], [1.0, 1.0]],
    xray__either=[0.05, 0.98],
    dysp__bronc__either=[[0.1, 0.7], [0.8, 0.9]],
)


def read_bif(path: Path) -> TableNetwork:
    """The network of a file in the BIF format, compressed by gzip or not."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    levels = {name: _words(said) for name, said in _VARIABLE.findall(text)}
    parents: dict[str, tuple[str, ...]] = {}
    tables: dict[str, np.ndarray] = {}
    for head, body in _TABLE.findall(text):
        name, _, given = (part.strip() for part in head.partition("|"))
        parents[name] = _words(given)
        try:
            tables[name] = _table(body, name, parents[name], levels)
        except (KeyError, ValueError) as error:
            raise FileFormatError(f"{path.name}: no table of {name!r} can be read") from error
    if not levels or set(levels) != set(tables):
        raise FileFormatError(f"{path.name} is no network in the BIF format, or not a whole one")
    return TableNetwork(levels, {name: parents[name] for name in levels}, tables)


def _table(
    body: str, name: str, given: tuple[str, ...], levels: dict[str, tuple[str, ...]]
) -> np.ndarray:
    table = np.zeros([len(levels[column]) for column in (*given, name)])
    if not given:
        table[:] = [float(number) for number in _words(body.partition("table")[2].strip(" ;\n"))]
        return table
    for configuration, numbers in _ROW.findall(body):
        pairs = zip(given, _words(configuration), strict=True)
        place = tuple(levels[column].index(label) for column, label in pairs)
        table[place] = [float(number) for number in _words(numbers)]
    return table


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
