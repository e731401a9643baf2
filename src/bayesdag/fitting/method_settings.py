"""Methods from names, presets and settings; settings may be given as text."""

import dataclasses
import types
import typing
from typing import Any

import numpy as np

from bayesdag import plugins
from bayesdag.errors import InputError
from bayesdag.types import Method

# A field of a method with one of these names takes a plug-in, by object or by name.
_FAMILY_OF_FIELD = {
    "relaxation": "relaxations",
    "mechanism": "mechanisms",
    "noise": "noises",
    "sampler": "samplers",
    "edges": "edges",
    "score": "scores",
    "prior": "priors",
}


def list_methods() -> dict[str, str]:
    """Every method with the first line of its description."""
    return plugins.first_lines("methods")


def build_method(method: str | Method, /, *, preset: str | None = None, **settings: Any) -> Method:
    """The method object: a name or an object, its preset, then single settings."""
    if not isinstance(method, str):
        chosen = method
    elif preset is None:
        chosen = plugins.load("methods", method)()
    else:
        chosen = _preset(method, preset)
    known = {field.name: field for field in dataclasses.fields(chosen)}  # pyright: ignore
    for name in settings:
        if name not in known:
            raise InputError(
                f"method {name_of(chosen)!r} has no setting {name!r}; it has: "
                f"{', '.join(known) or 'none'}"
            )
    kinds = typing.get_type_hints(type(chosen))
    values = {k: _checked(k, _resolve(k, v, kinds[k])) for k, v in settings.items()}
    return dataclasses.replace(chosen, **values)  # pyright: ignore


def name_of(method: Method) -> str:
    """The name a method has in its folder."""
    return type(method).__module__.rpartition(".")[2]


def _preset(name: str, preset: str) -> Method:
    presets = getattr(plugins.load("methods", name), "PRESETS", {})
    if preset not in presets:
        raise InputError(
            f"method {name!r} has no preset {preset!r}; it has: {', '.join(presets) or 'none'}"
        )
    return presets[preset]


def _resolve(field: str, value: object, kind: object) -> object:
    """Strings end here: names become plug-ins and text becomes the field's own type."""
    if not isinstance(value, str):
        return value
    if field in _FAMILY_OF_FIELD:
        return plugins.load(_FAMILY_OF_FIELD[field], value)()
    return _parse(field, value, kind)


def _checked(field: str, value: object) -> object:
    """The value of a setting; numbers that no computation could hold are refused."""
    if isinstance(value, float) and not np.isfinite(value):
        raise InputError(f"setting {field} is {value}; it must be a finite number")
    if isinstance(value, int) and not -(2**31) <= value < 2**31:
        raise InputError(f"setting {field} is {value}, which is too large; take less than 2**31")
    if isinstance(value, int) and field.startswith("num_") and value < 0:
        raise InputError(f"setting {field} is {value}; it must be 0 or more")
    return value


def _parse(field: str, text: str, kind: object) -> int | float | str | None:
    """Text as a value of the field's annotation, which may allow several types and None."""
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    allowed = typing.get_args(kind) if union else (kind,)
    if type(None) in allowed and text.lower() == "none":
        return None
    if bool in allowed:
        if text.lower() not in {"true", "false"}:
            raise InputError(f"setting {field} is true or false, not {text!r}")
        return text.lower() == "true"
    for number, words in ((int, "a whole number"), (float, "a number")):
        if number in allowed:
            return _number(field, text, number, words, or_none=type(None) in allowed)
    if str not in allowed:
        raise InputError(f"setting {field} cannot be given as text ({text!r}); set it in Python")
    return text


def _number(
    field: str, text: str, kind: type[int] | type[float], words: str, *, or_none: bool
) -> int | float:
    try:
        return kind(text)
    except ValueError:
        words += ", or none" * or_none
        raise InputError(f"setting {field} is {words}, not {text!r}") from None
