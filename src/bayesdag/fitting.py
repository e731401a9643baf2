"""From data to a Posterior: check the input, build the method, run it, stamp the result."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bayesdag import plugins, priors
from bayesdag._version import __version__
from bayesdag.data import Dataset, check_rows, read
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.monitors import Checkpoint, Together
from bayesdag.posterior import Posterior
from bayesdag.types import InputError, KnowledgeError, Method, Monitor

DEFAULT_METHOD = "exact"

# A field of a method with one of these names takes a plug-in, by object or by name.
_FAMILY_OF_FIELD = {
    "relaxation": "relaxations",
    "mechanism": "mechanisms",
    "noise": "noises",
    "sampler": "samplers",
    "edges": "edges",
    "score": "scores",
}


def fit(
    data: Any,
    method: str | Method = DEFAULT_METHOD,
    *,
    knowledge: Any = None,
    seed: int = 0,
    preset: str | None = None,
    checkpoint: str | Path | None = None,
    monitor: Monitor | None = None,
    **settings: Any,
) -> Posterior:
    """The posterior over causal graphs and functions, given `data`.

    Args:
        data: a DataFrame, an array, the path of a CSV or Parquet file, or a `Dataset`
            (`bayesdag.read` makes one, with an intervention mask or another scaling).
        method: a name from `bayesdag.methods()`, or a method object.
        knowledge: a `Knowledge`, a mapping, or the path of a YAML file.
        seed: same seed, data, version and kind of device: same answer.
        preset: named defaults of the method; `settings` still override them.
        checkpoint: file that a long run keeps, and resumes from when it is there; remove
            it once the result is saved.
        monitor: watches the run; by default nothing is shown.
        settings: fields of the method; unknown ones are refused.
    """
    dataset = read(data)
    chosen = build_method(method, preset=preset, **settings)
    said = Knowledge.read(knowledge)
    constraints = said.bind(dataset.names)
    check(chosen, dataset, constraints)
    stamp = {
        "version": __version__,
        "method": plugins.configuration(chosen),
        "seed": seed,
        "data_hash": dataset.hash,
        "scaling": {k: v.tolist() for k, v in dataclasses.asdict(dataset.scaling).items()},
        "knowledge": said.to_dict(),
    }
    watch = _watch(checkpoint, stamp, monitor)
    posterior = chosen(jax.random.key(seed), dataset, constraints, watch)
    return dataclasses.replace(posterior, provenance=stamp | posterior.provenance)


def methods() -> dict[str, str]:
    """Every method with the first line of its description."""
    return {
        name: (plugins.load("methods", name).__doc__ or "").partition("\n")[0]
        for name in plugins.names("methods")
    }


def build_method(method: str | Method, *, preset: str | None = None, **settings: Any) -> Method:
    """The method object: a name or an object, its preset, then single settings."""
    if not isinstance(method, str):
        chosen = method
    elif preset is None:
        chosen = plugins.load("methods", method)()
    else:
        chosen = _preset(plugins.load("methods", method), method, preset)
    known = {field.name: field for field in dataclasses.fields(chosen)}  # pyright: ignore
    for name in settings:
        if name not in known:
            raise InputError(
                f"method {name_of(chosen)!r} has no setting {name!r}; it has: "
                f"{', '.join(known) or 'none'}"
            )
    values = {k: _resolve(k, v, getattr(chosen, k)) for k, v in settings.items()}
    return dataclasses.replace(chosen, **values)  # pyright: ignore


def name_of(method: Method) -> str:
    """The name a method has in its folder."""
    return type(method).__module__.rpartition(".")[2]


def check(method: Method, data: Dataset, knowledge: Constraints) -> None:
    """Refuse, before anything runs, what the method cannot honour."""
    name = name_of(method)
    refused = sorted(knowledge.kinds - method.honours)
    if refused:
        able = [n for n in plugins.names("methods") if knowledge.kinds <= _honours(n)]
        raise KnowledgeError(
            f"method {name!r} cannot honour {' and '.join(refused)} edges; "
            f"drop them or use one of: {', '.join(able)}"
        )
    if data.interventions is not None and data.interventions.any() and not method.interventions:
        raise InputError(
            f"method {name!r} cannot use interventional data; drop those rows or choose a "
            "method that can (bayesdag methods)"
        )
    check_rows(data, method.min_rows(data.num_variables), name)


def _watch(
    checkpoint: str | Path | None, stamp: dict[str, Any], monitor: Monitor | None
) -> Monitor | None:
    if checkpoint is None:
        return monitor
    keeper = Checkpoint(Path(checkpoint), stamp)
    return keeper if monitor is None else Together((keeper, monitor))


def _honours(name: str) -> frozenset[str]:
    return plugins.load("methods", name).honours


def _preset(method: Any, name: str, preset: str) -> Method:
    presets = getattr(method, "PRESETS", {})
    if preset not in presets:
        raise InputError(
            f"method {name!r} has no preset {preset!r}; it has: {', '.join(presets) or 'none'}"
        )
    return presets[preset]


def _resolve(field: str, value: Any, current: Any) -> Any:
    """Strings end here: names become plug-ins and text becomes the field's own type."""
    if not isinstance(value, str):
        return value
    if field in _FAMILY_OF_FIELD:
        return plugins.load(_FAMILY_OF_FIELD[field], value)()
    if field == "prior":
        return priors.by_name(value)
    return _parse(field, value, current)


def _parse(field: str, text: str, current: Any) -> Any:
    if isinstance(current, bool):
        if text.lower() not in {"true", "false"}:
            raise InputError(f"setting {field} is true or false, not {text!r}")
        return text.lower() == "true"
    if isinstance(current, int | float) and not isinstance(current, np.bool_):
        try:
            return type(current)(text)
        except ValueError:
            kind = "a whole number" if isinstance(current, int) else "a number"
            raise InputError(f"setting {field} is {kind}, not {text!r}") from None
    return text
