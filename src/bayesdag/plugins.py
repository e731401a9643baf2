"""The folder is the registry: which plug-ins exist, and how each is built.

A plug-in is one file in a family's folder (`scores/bge.py`) that ends in `build = ThatClass`.
Its file name is the name shown to users. An object *is* its configuration: a frozen
dataclass, so it can be written to JSON and built again from it.

In files and results a plug-in is `family/name` ("scores/bge"), never a module path: rooms may
move and results stay readable, and a file, whoever made it, can name nothing but a plug-in.
"""

import ast
import dataclasses
import importlib
import importlib.util
import math
import pkgutil
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bayesdag.errors import BayesdagError, FileFormatError, InputError

# Where the folder of each family is.
FAMILIES = {
    "mechanisms": "model.mechanisms",
    "noises": "model.noises",
    "priors": "model.priors",
    "relaxations": "sgmcmc.relaxations",
    "samplers": "sgmcmc.samplers",
    "edges": "sgmcmc.edges",
    "masks": "sgmcmc.masks",
    "gradients": "sgmcmc.gradients",
    "scores": "scores",
    "methods": "methods",
    "datasets": "datasets",
}

# The family that a field takes, by the protocol it is annotated with. Protocols compare by
# their methods alone, and edge posteriors happen to have all that a noise needs.
_FAMILY_OF_PROTOCOL = {
    "Mechanism": "mechanisms",
    "Noise": "noises",
    "StructurePrior": "priors",
    "Relaxation": "relaxations",
    "Sampler": "samplers",
    "Edges": "edges",
    "MaskGradient": "gradients",
    "Score": "scores",
    "Method": "methods",
}

# More than any method of methods needs; a file that asks for more was made to do harm.
_MAX_DEPTH = 12
_MAX_ITEMS = 1000
_LARGEST = 2**63


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


def declaring(family: str, attribute: str) -> list[str]:
    """Plug-ins of a family whose class says something by this attribute; not imported, too."""
    found = {name: _built(f"bayesdag.{FAMILIES[family]}.{name}") for name in names(family)}
    return [name for name, node in found.items() if node and attribute in _attributes(node)]


def described(family: str, attribute: str) -> dict[str, str]:
    """What the plug-ins of a family say of one of their properties; not imported, too."""
    found = {name: _built(f"bayesdag.{FAMILIES[family]}.{name}") for name in names(family)}
    return {name: _described(node, attribute) for name, node in found.items()}


def _described(node: ast.ClassDef | None, attribute: str) -> str:
    functions = [n for n in (node.body if node else []) if isinstance(n, ast.FunctionDef)]
    named = (ast.get_docstring(one) or "" for one in functions if one.name == attribute)
    return next(named, "").partition("\n")[0]


def _attributes(node: ast.ClassDef) -> set[str]:
    """What the body of a class defines."""
    assigned = (target for n in node.body if isinstance(n, ast.Assign) for target in n.targets)
    annotated = (n.target for n in node.body if isinstance(n, ast.AnnAssign))
    functions = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    return functions | {ast.unparse(target) for target in (*assigned, *annotated)}


def _first_line(module: str) -> str:
    node = _built(module)
    return ((ast.get_docstring(node) if node else "") or "").partition("\n")[0]


def _built(module: str) -> ast.ClassDef | None:
    """The class that a plug-in's file builds; None where it is registered from elsewhere."""
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
    return classes.get(built)


def address(cls: type) -> str:
    """The `family/name` of a plug-in's class; other classes have none and are refused.

    >>> from bayesdag.scores.bge import BGe
    >>> address(BGe)
    'scores/bge'
    """
    for family, name in _where_to_look(cls):
        if load(family, name) is cls:
            return f"{family}/{name}"
    raise InputError(
        f"{cls.__module__}.{cls.__qualname__} is no registered plug-in, so a result could not "
        "name it; put it into a file of its family's folder that ends in "
        f"`build = {cls.__qualname__}`"
    )


def _where_to_look(cls: type) -> Iterator[tuple[str, str]]:
    """First the file a class stands in; a few are registered by a file beside their room."""
    folder, _, name = cls.__module__.removeprefix("bayesdag.").rpartition(".")
    every = [(family, name) for family in FAMILIES for name in names(family)]
    yield from sorted(every, key=lambda at: (FAMILIES[at[0]], at[1]) != (folder, name))


def configuration(value: Any) -> Any:
    """`value` as plain JSON data; plug-ins keep their family, name and every setting."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: configuration(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"plugin": address(type(value)), **fields}
    if isinstance(value, tuple | list):
        return [configuration(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(
        f"a setting of type {type(value).__name__} cannot be written to a file; settings are "
        "numbers, words, true or false, plug-ins, and tuples of these"
    )


def from_configuration(config: Any, family: str | None = None) -> Any:
    """The plug-in that `configuration` described; lists come back as tuples.

    A file may come from anyone: only registered plug-ins are built, only with fields that
    they have and values of the annotated types. Anything else is a `FileFormatError`.

    Args:
        config: what `configuration` returned, or what somebody wrote in its place.
        family: the only family to accept; None accepts all.
    """
    return _plugin(config, None if family is None else {family}, 0)


def _plugin(config: Any, families: set[str] | None, depth: int) -> Any:
    """The plug-in of one of `families` behind untrusted data."""
    if depth > _MAX_DEPTH:
        raise FileFormatError(f"its plug-ins are nested more than {_MAX_DEPTH} deep")
    if not isinstance(config, dict) or not isinstance(config.get("plugin"), str):
        raise FileFormatError(f"{_short(config)} stands where a plug-in belongs")
    cls = _registered(config["plugin"], families)
    hints = typing.get_type_hints(cls)
    fields = {field.name for field in dataclasses.fields(cls) if field.init}
    values = {}
    for name, value in config.items():
        if name == "plugin":
            continue
        if name not in fields:
            raise FileFormatError(f"{config['plugin']} has no field {_short(name)}")
        values[name] = _value(value, hints[name], f"{config['plugin']}, {name}", depth)
    return _constructed(cls, values, config["plugin"])


def _constructed(cls: type, values: dict[str, Any], said: str) -> Any:
    try:
        return cls(**values)
    except (BayesdagError, TypeError) as error:  # an impossible value, or one that is missing
        raise FileFormatError(f"{said} cannot be built: {error}") from error


def _registered(said: str, families: set[str] | None) -> Any:
    """The class of a registered plug-in; nothing else is ever imported."""
    family, _, name = said.partition("/")
    if family not in FAMILIES or name not in names(family):
        raise FileFormatError(
            f"{_short(said)} is no plug-in of this version; plug-ins are called family/name, "
            "such as mechanisms/linear"
        )
    if families is not None and family not in families:
        wanted = " or ".join(sorted(families))
        raise FileFormatError(f"{_short(said)} stands where one of the {wanted} belongs")
    return load(family, name)


def _value(value: Any, hint: Any, where: str, depth: int) -> Any:
    """`value` as a field annotated with `hint` takes it."""
    options = _options(hint)
    if isinstance(value, dict):
        return _nested(value, options, where, depth)
    if isinstance(value, list):
        return _items(value, options, where, depth)
    if not any(_is_plain(value, option) for option in options):
        raise FileFormatError(f"{where} is {_short(value)}, which is not of its type")
    return value


def _nested(config: dict, options: list[Any], where: str, depth: int) -> Any:
    """A plug-in as a field: of the protocol's family, or of the very class that is named."""
    classes: list[Any] = [o for o in options if _is_class(o) and dataclasses.is_dataclass(o)]
    families = {address(option).partition("/")[0] for option in classes}
    families |= {_FAMILY_OF_PROTOCOL[o.__name__] for o in options if _is_protocol(o)}
    if not families:
        raise FileFormatError(f"{where} is {_short(config)}, which is not of its type")
    built = _plugin(config, families, depth + 1)
    if classes and not isinstance(built, tuple(classes)):
        raise FileFormatError(f"{where} is {_short(config['plugin'])}, which does not fit there")
    return built


def _items(values: list, options: list[Any], where: str, depth: int) -> tuple:
    inner = [typing.get_args(o)[0] for o in options if typing.get_origin(o) is tuple]
    if not inner or len(values) > _MAX_ITEMS or depth > _MAX_DEPTH:
        raise FileFormatError(f"{where} is {_short(values)}, which is not of its type")
    return tuple(_value(item, inner[0], where, depth + 1) for item in values)


def _is_plain(value: Any, hint: Any) -> bool:
    if type(value) is int and hint in (int, float):
        return abs(value) < _LARGEST
    if type(value) is float:
        return hint is float and not math.isnan(value)
    return hint in (bool, str, types.NoneType) and type(value) is hint


def _is_class(option: object) -> bool:
    return isinstance(option, type) and option not in (bool, int, float, str, types.NoneType)


def _is_protocol(option: Any) -> bool:
    return _is_class(option) and option.__name__ in _FAMILY_OF_PROTOCOL


def _options(hint: Any) -> list[Any]:
    """The alternatives of an annotation such as `float | None`."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return list(typing.get_args(hint)) if union else [hint]


def _short(value: object) -> str:
    """Untrusted data in a message: on one line, and not for pages."""
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
