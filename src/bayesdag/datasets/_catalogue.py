"""The catalogue of data sets: what each is, and how large."""

from typing import NamedTuple

from bayesdag import plugins


class Entry(NamedTuple):
    """One line of the catalogue; sizes are those of the default settings."""

    name: str
    description: str
    variables: int
    rows: int


def catalogue() -> list[Entry]:
    """Every data set by name; nothing is generated, read or downloaded."""
    entries = []
    for name in plugins.names("datasets"):
        dataset = plugins.load("datasets", name)()
        entries.append(Entry(name, dataset.description, *dataset.size))
    return entries
