"""The folder is the registry: which plug-ins exist, and how each is built.

A plug-in is one file in a family's folder (`scores/bge.py`) that ends in `build = ThatClass`.
Its file name is the name shown to users. An object *is* its configuration: a frozen
dataclass, so it can be written to JSON and built again from it.
"""

import ast
import dataclasses
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from typing import Any

from bayesdag.errors import InputError

# Where the folder of each family is.
FAMILIES = {
    "mechanisms": "model.mechanisms",
    "noises": "model.noises",
    "priors": "model.priors",
    "relaxations": "sgmcmc.relaxations",
    "samplers": "sgmcmc.samplers",
    "edges": "sgmcmc.edges",
    "scores": "scores",
    "methods": "methods",
    "datasets": "datasets",
}


def names(family: str) -> list[str]:
    """Names of all plug-ins of a family, sorted.

    >>> "bge" in names("scores")
    True
    """
    package = importlib.import_module(f"bayesdag.{FAMILIES[family]}")
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def load(family: str, name: str) -> Any:
    """The class behind a plug-in's name; call it with settings to get the object."""
    if name not in names(family):
        raise InputError(
            f"no {family[:-1]} is called {name!r}; there are: {', '.join(names(family))}"
        )
    return importlib.import_module(f"bayesdag.{FAMILIES[family]}.{name}").build


def first_lines(family: str) -> dict[str, str]:
    """Every plug-in of a family with the first line of its description.

    Read from the source, not imported: a list of methods must not wait for JAX.
    """
    return {name: _first_line(f"bayesdag.{FAMILIES[family]}.{name}") for name in names(family)}


def _first_line(module: str) -> str:
    spec = importlib.util.find_spec(module)
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))  # pyright: ignore
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    built = next(
        node.value.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name)
        and ast.unparse(node.targets[0]) == "build"
    )
    return (ast.get_docstring(classes[built]) or "").partition("\n")[0]


def configuration(value: Any) -> Any:
    """`value` as plain JSON data; plug-ins keep their family, name and every setting."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: configuration(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"plugin": _address(type(value)), **fields}
    if isinstance(value, dict):
        return {str(key): configuration(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [configuration(item) for item in value]
    return value


def from_configuration(config: Any) -> Any:
    """Inverse of `configuration`; lists come back as tuples, the immutable form."""
    if isinstance(config, dict) and "plugin" in config:
        module, name = config["plugin"].rsplit(":", 1)
        cls = getattr(importlib.import_module(f"bayesdag.{module}"), name)
        return cls(**{k: from_configuration(v) for k, v in config.items() if k != "plugin"})
    if isinstance(config, dict):
        return {key: from_configuration(item) for key, item in config.items()}
    if isinstance(config, list):
        return tuple(from_configuration(item) for item in config)
    return config


def _address(cls: type) -> str:
    return f"{cls.__module__.removeprefix('bayesdag.')}:{cls.__qualname__}"
