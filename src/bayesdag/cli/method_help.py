"""Settings of a method: its fields with their defaults and meanings."""

import dataclasses
import inspect
import re
from typing import Any, NamedTuple


class MethodHelp(NamedTuple):
    """A method in words.

    Attributes:
        summary: what it does, in a sentence.
        settings: name, default and meaning of each field.
        presets: for each name, what it changes, as name=value.
        kinds: kinds of columns that it has a model for, with its default settings.
    """

    summary: str
    settings: list[dict[str, str]]
    presets: dict[str, list[str]]
    kinds: list[str]


def describe(name: str) -> MethodHelp:
    """The settings and presets of the method with this name."""
    from bayesdag import plugins
    from bayesdag.data import KINDS
    from bayesdag.types import kinds_taken

    method = plugins.load("methods", name)
    default, meaning = method(), meanings(method)
    fields = [field.name for field in dataclasses.fields(method)]
    settings = [
        {
            "setting": field,
            "default": short(getattr(default, field)),
            "meaning": meaning.get(field, ""),
        }
        for field in fields
    ]
    presets = {
        preset: [f"{f}={short(getattr(chosen, f))}" for f in _changed(default, chosen)]
        for preset, chosen in getattr(method, "PRESETS", {}).items()
    }
    summary = (method.__doc__ or "").partition("\n")[0]
    taken = kinds_taken(default)
    return MethodHelp(summary, settings, presets, [kind for kind in KINDS if kind in taken])


def meanings(cls: type) -> dict[str, str]:
    """Meaning of each field, from the sections `Attributes:` of a class and its bases."""
    inherited = [_meanings_in(base) for base in reversed(cls.__mro__)]
    return {name: words for one in inherited for name, words in one.items()}


def _meanings_in(cls: type) -> dict[str, str]:
    _, _, section = inspect.cleandoc(cls.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    last = ""
    for line in section.splitlines():
        if line.strip() and not line.startswith("    "):
            break  # the next section
        entry = re.match(r"    (\w+): (.*)", line)
        if entry:
            last, found[entry[1]] = entry[1], entry[2]
        elif line.strip():
            found[last] += f" {line.strip()}"
    return found


def short(value: object) -> str:
    """A value as one would type it; a plug-in with what differs from its own defaults."""
    if isinstance(value, tuple | list):
        return f"({', '.join(short(item) for item in value)})"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value if isinstance(value, str) else repr(value)
    changed = _changed(type(value)(), value)
    inside = ", ".join(f"{name}={short(getattr(value, name))}" for name in changed)
    own = type(value).__module__.rpartition(".")[2]
    return f"{own}({inside})" if inside else own


def _changed(default: Any, chosen: Any) -> list[str]:
    names = [field.name for field in dataclasses.fields(default)]
    return [name for name in names if getattr(default, name) != getattr(chosen, name)]
