"""The command, or the lines of Python, that make a result again."""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesdag import plugins
from bayesdag.data import Kind, root_names
from bayesdag.posterior import Posterior

LONGEST = 88  # of a line
_ASSUMED = "assumed_roots"


def command(posterior: Posterior, table: str = "TABLE.csv", out: str = "RESULT.nc") -> str:
    """What to type to fit the same table again with the same settings and seed."""
    stated = posterior.provenance
    if not isinstance(stated.get("seed"), int):
        return "# a merged result: fit each seed again, then join the files with bayesdag merge"
    if "method" not in stated:
        return "# made by hand, not by bayesdag fit"
    options = _method_options(stated["method"])
    if options is None:
        return _in_python(posterior, table, out)
    words = ["bayesdag", "fit", table, "--out", out, *options, "--seed", str(stated["seed"])]
    if _said(posterior):
        words += ["--knowledge", "knowledge.yaml"]
    if _declines_roots(posterior):
        words += ["--no-assumed-roots"]
    if posterior.summary.get("num_rows_with_interventions"):
        words += ["--interventions", "INTERVENTIONS"]
    for one in posterior.contexts.environments:
        words += ["--environment", f"{one.column}={one.reference}"]
    scaling = _scaling(stated.get("scaling"))
    return _wrapped([*words, *([] if scaling is None else ["--scaling", scaling])])


def knowledge(posterior: Posterior) -> str:
    """What was known beforehand, as the YAML file that the command reads; else empty."""
    import yaml

    said = _said(posterior)
    return yaml.safe_dump(said, sort_keys=True, allow_unicode=True) if said else ""


def _said(posterior: Posterior) -> dict[str, Any]:
    """Knowledge without what is assumed by the names of columns, which a fit does again."""
    known = posterior.provenance.get("knowledge") or {}
    return {part: said for part, said in known.items() if part != _ASSUMED}


def _declines_roots(posterior: Posterior) -> bool:
    """Whether names of columns suggest roots that this result does not assume."""
    if (posterior.provenance.get("knowledge") or {}).get(_ASSUMED):
        return False
    columns = posterior.summary.get("columns", {})
    kinds = {name: Kind(one.get("kind", "continuous")) for name, one in columns.items()}
    return bool(root_names.assumed_roots(tuple(kinds), tuple(kinds.values())))


def _method_options(config: Mapping[str, Any]) -> list[str] | None:
    """Options that give this method; None where the command line cannot say it."""
    name = config["plugin"].partition("/")[2]
    try:
        cls = plugins.load("methods", name)
        bases = {None: cls(), **getattr(cls, "PRESETS", {})}
    except (ImportError, TypeError):
        return None
    found = []
    for preset, base in bases.items():
        settings = _settings(config, base)
        if settings is not None:
            chosen = ["--method", name, *(["--preset", preset] if preset else []), *settings]
            found.append(chosen)
    return min(found, key=len, default=None)


def _settings(config: Mapping[str, Any], base: Any) -> list[str] | None:
    """--set options that turn `base` into the method of `config`, if there are such."""
    default, words = plugins.configuration(base), []
    for field in dataclasses.fields(base):
        value = config.get(field.name)
        if value == default[field.name]:
            continue
        text = _text(value)
        if text is None:
            return None
        words += ["--set", f"{field.name}={text}"]
    return words


def _text(value: object) -> str | None:
    """A setting as the command line takes it; None for plug-ins with settings of their own."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return str(value)
    if isinstance(value, Mapping) and "plugin" in value:
        family, _, name = str(value["plugin"]).partition("/")
        if plugins.configuration(plugins.load(family, name)()) == value:
            return name
    return None


def _scaling(stated: Mapping[str, Any] | None) -> str | None:
    """The scaling as the command line calls it; None for the default."""
    if stated is None:
        return None
    shift, scale = np.asarray(stated["shift"]), np.asarray(stated["scale"])
    if not (scale == 1).all():
        return None
    return "none" if not shift.any() else "centre"


def _in_python(posterior: Posterior, table: str, out: str) -> str:
    stated = posterior.provenance
    known = 'knowledge="knowledge.yaml", ' if _said(posterior) else ""
    known += "assumed_roots=False, " if _declines_roots(posterior) else ""
    method = json.dumps(stated["method"], sort_keys=True)
    return "\n".join(
        [
            "import bayesdag, json",
            "from bayesdag import plugins",
            "",
            f"method = plugins.from_configuration(json.loads({method!r}))",
            f"posterior = bayesdag.fit({table!r}, method, {known}seed={stated['seed']})",
            f"posterior.save({out!r})",
        ]
    )


def _wrapped(words: list[str]) -> str:
    """Words of a command, quoted, on as many lines as needed."""
    lines = [""]
    for word in (shlex.quote(word) for word in words):
        if len(lines[-1]) + len(word) > LONGEST:
            lines.append("   ")
        lines[-1] = f"{lines[-1]} {word}".strip() if len(lines) == 1 else f"{lines[-1]} {word}"
    return " \\\n".join(lines)
