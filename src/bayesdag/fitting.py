"""From data to a Posterior: check the input, build the method, run it, stamp the result."""

import dataclasses
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayesdag import plugins
from bayesdag._version import __version__
from bayesdag.data import Dataset, Scaling, check_rows, preparing, read
from bayesdag.errors import InputError, KnowledgeError
from bayesdag.graphs import is_acyclic
from bayesdag.knowledge import Constraints, Knowledge
from bayesdag.methods import _assumed_roots, _derivations, _kinds
from bayesdag.methods.imputed import Imputed
from bayesdag.posterior import Posterior
from bayesdag.posterior.arguments import check_count
from bayesdag.posterior.predictive_checks import refuse_other_data
from bayesdag.random import key_of
from bayesdag.runs import compilation_cache, durations
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.runs.memory_journal import MemoryJournal
from bayesdag.runs.processes import one_blas_thread
from bayesdag.runs.progress import progress_report
from bayesdag.runs.recording import MonitorGroup
from bayesdag.types import Method, Monitor, PlainData, SamplingMethod

DEFAULT_METHOD = "auto"

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


def fit(
    data: object,
    method: str | Method = DEFAULT_METHOD,
    *,
    environment: object = None,
    kinds: object = None,
    knowledge: object = None,
    assumed_roots: bool = True,
    seed: int = 0,
    preset: str | None = None,
    checkpoint: str | Path | None = None,
    monitor: Monitor | None = None,
    keep_state: bool = False,
    progress: bool | None = None,
    **settings: Any,
) -> Posterior:
    """The posterior over causal graphs and functions, given `data`.

    Args:
        data: a DataFrame, an array, the path of a CSV or Parquet file, or a `Dataset`
            (`bayesdag.read` makes one, with an intervention mask or another scaling).
        method: a name from `bayesdag.list_methods()`, or a method object.
        environment: the column that says where a row comes from, or several; see `read`. What
            each environment acts on is then part of the answer (`environment_targets`).
        kinds: what columns hold (continuous, count, ordinal, binary, categorical) or their
            levels in order, where looking at them would not tell; see `read`.
        knowledge: a `Knowledge`, a mapping, or the path of a YAML file.
        assumed_roots: take columns called age, sex, year of birth and the like to have no causes
            in the table, unless `knowledge` says otherwise; a warning and the result name them.
        seed: same seed, data, version and kind of device: same answer.
        preset: named defaults of the method; `settings` still override them.
        checkpoint: file that a long run keeps, and resumes from when it is there; remove
            it once the result is saved.
        monitor: watches the run.
        keep_state: keep what `extend` needs to go on; the result's file grows by it.
        progress: show on stderr how far a fit of more than seconds is, and the time left; by
            default where no monitor is given.
        settings: steps that prepare the table (`drop`, `only`, `na_values`, `log`, `decimal`; see
            `read`), and fields of the method; unknown ones are refused.
    """
    key_of(seed)  # a bad one is refused now, not after the data are read
    steps, fields = preparing.split(settings)
    chosen = build_method(method, preset=preset, **fields)
    journal = MemoryJournal() if keep_state else None
    given, said = (
        read(data, environment=environment, kinds=kinds, **steps),
        Knowledge.read(knowledge),
    )
    inside, (chosen, dataset) = chosen, suited(chosen, given)
    _kinds.warn(inside, name_of(inside), given)
    said = known(said, inside, given, assumed_roots)
    if assumed_roots:
        _assumed_roots.warn(said, inside, name_of(inside), given)
    with _watched(monitor, progress) as watch:
        return _run(chosen, dataset, said, seed, checkpoint, watch, journal)


def known(said: Knowledge, method: Method, data: Dataset, assumed_roots: bool) -> Knowledge:
    """What has been said, and what is assumed by the names of columns if that is wanted."""
    return _assumed_roots.assuming(said, method, data) if assumed_roots else said


def extend(
    posterior: Posterior,
    data: object,
    num_samples: int,
    *,
    checkpoint: str | Path | None = None,
    monitor: Monitor | None = None,
    progress: bool | None = None,
) -> Posterior:
    """The same posterior with `num_samples` more draws per chain.

    It is the result that the fit would have given had it been asked for all draws at once.
    Chains go on from the state that `fit(..., keep_state=True)` kept; methods that draw
    independently start again, which costs them nothing.

    Args:
        data: what was fitted, interventions included; anything else is refused. Columns that
            say where rows come from are known from the posterior.
        num_samples: draws to add to each chain.
        monitor: watches the run.
        progress: show on stderr how far it is, and the time left; as in `fit`.
    """
    check_count("num_samples", num_samples)
    stated = posterior.provenance
    method = plugins.from_configuration(stated["method"], "methods")
    dataset = _as_fitted(posterior, data)
    longer = _longer(posterior, _extendable(posterior, method), num_samples)
    said, journal = Knowledge.read(stated["knowledge"]), MemoryJournal(posterior.state)
    with _watched(monitor, progress) as watch:
        return _run(longer, dataset, said, stated["seed"], checkpoint, watch, journal)


def log_scores(posterior: Posterior, data: object, graph: np.ndarray) -> dict[str, float]:
    """Log score of `graph`, say the true one, beside the best of each stage of the run.

    A best below the true graph's score is a shortfall of the search. A best above it is none:
    with so many rows, the score prefers another graph.

    Args:
        data: what was fitted, interventions included; anything else is refused.
        graph: a DAG; `graph[i, j] = 1` means i -> j, in the order of the columns. Where it says
            nothing of what environments act on, that is what is more probable than not.
    """
    stated = posterior.provenance
    method = plugins.from_configuration(stated.get("chosen", stated["method"]), "methods")
    if not hasattr(method, "log_score_of"):
        raise InputError(f"method {name_of(method)!r} gives graphs no score to compare")
    dataset = _as_fitted(posterior, data)
    graph = with_targets(np.asarray(graph), posterior)
    if graph.shape != (dataset.num_variables,) * 2 or not is_acyclic(graph != 0):
        raise InputError(
            f"the graph to score is no DAG of {dataset.num_variables} variables; pass a square "
            "matrix without cycles, in the order of the columns"
        )
    knowledge = Knowledge.read(stated["knowledge"]).bind(dataset.names, dataset.contexts)
    drawn = {"stage": "draws", "best": float(posterior.stats["log_joint"].max())}
    stages = stated.get("search", {}).get("stages", [drawn])
    asked = method.log_score_of(dataset, knowledge, graph)
    return {"given graph": asked} | {stage["stage"]: stage["best"] for stage in stages}


def with_targets(graph: np.ndarray, posterior: Posterior) -> np.ndarray:
    """A graph that says nothing of environments, with their targets as the posterior has them."""
    contexts = posterior.contexts.mask
    num = int(contexts.sum())
    if not num or graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        return graph
    alone = np.pad(graph, (0, num)) if len(graph) == len(contexts) - num else graph
    if len(alone) != len(contexts) or alone[contexts].any():
        return graph
    return np.where(contexts[:, None], posterior.edge_matrix() > 0.5, alone)


def _as_fitted(posterior: Posterior, data: object) -> Dataset:
    """The data of a posterior, on the scale on which they were fitted."""
    stated, dataset = posterior.provenance, posterior.read(data)
    refuse_other_data(stated, posterior.summary, dataset)
    scaling = Scaling(**{k: np.array(v, dtype=float) for k, v in stated["scaling"].items()})
    return dataclasses.replace(dataset, scaling=scaling)


def settings_of(method: Method, data: Dataset, said: Knowledge, seed: int) -> PlainData:
    """Everything that decides a result; equal settings, equal results."""
    return {
        "version": __version__,
        "method": plugins.configuration(method),
        "seed": seed,
        "data_hash": data.hash,
        "scaling": {k: v.tolist() for k, v in dataclasses.asdict(data.scaling).items()},
        "knowledge": said.to_dict(),
        **_environments_of(data),
    }


def _environments_of(data: Dataset) -> PlainData:
    """What is assumed of where rows come from; nothing where nobody said it."""
    if not data.environment:
        return {}
    columns = [{"column": one.column, "reference": one.reference} for one in data.environment]
    return {
        "environments": columns,
        "environment_model": "context variables: each environment is a soft intervention with "
        "unknown targets, compared with the reference; how many rows come from where is not "
        "modelled",
    }


def _run(
    method: Method,
    data: Dataset,
    said: Knowledge,
    seed: int,
    checkpoint: str | Path | None,
    monitor: Monitor | None,
    journal: MemoryJournal | None,
) -> Posterior:
    """The method's answer, with the stamp that lets it be repeated."""
    compilation_cache.enable()
    constraints = said.bind(data.names, data.contexts)
    check(method, data, constraints)
    stamp = settings_of(method, data, said, seed)
    file = None if checkpoint is None else Checkpoint(Path(checkpoint), stamp)
    recorder = _recorder(file, journal, monitor)
    durations.announce(recorder, method, data.num_rows, data.num_variables)
    try:
        with one_blas_thread():
            posterior = _derivations.fit(method, key_of(seed), data, constraints, recorder)
            posterior = posterior.with_evidence()  # at hand whenever the result is shown
    finally:
        if file is not None:
            file.flush()  # whatever ends the run, what it computed is kept
    state = posterior.state if journal is None else journal.kept()
    stated = stamp | posterior.provenance
    if said.assumed_roots:
        words = _assumed_roots.words(said.assumed_roots)
        stated = stated | {"notes": [words, *stated.get("notes", [])]}
    posterior = dataclasses.replace(posterior, provenance=stated, state=state)
    if data.missing is not None:
        return posterior  # completed rows were checked, where they were at hand
    # The rows are at hand now, and whether the model fits them belongs above the edges.
    found = {"check": posterior.check(data, seed).summary()}
    return dataclasses.replace(posterior, provenance=stated | found)


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


def suited(method: Method, data: Dataset) -> tuple[Method, Dataset]:
    """A method for these data, and the data as it takes them.

    Columns that the method has no model for are numbers to it, or refused; where cells are
    missing, it is put into the method that imputes them.
    """
    data = _kinds.as_taken(method, name_of(method), data)
    if data.missing is not None and not isinstance(method, Imputed):
        return Imputed(method), data
    return method, data


def name_of(method: Method) -> str:
    """The name a method has in its folder."""
    return type(method).__module__.rpartition(".")[2]


def check(method: Method, data: Dataset, knowledge: Constraints) -> None:
    """Refuse, before anything runs, what the method does not support."""
    name = name_of(method)
    refused = sorted(knowledge.kinds - method.supported_constraints)
    if refused:
        able = [n for n in plugins.names("methods") if knowledge.kinds <= _supported_constraints(n)]
        kinds = " and ".join(k if k == "environments" else f"{k} edges" for k in refused)
        raise KnowledgeError(
            f"method {name!r} does not support {kinds}; drop them or use one of: {', '.join(able)}"
        )
    if data.has_interventions and not method.supports_interventions:
        raise InputError(
            f"method {name!r} cannot use interventional data; drop those rows or choose a "
            "method that can (bayesdag methods)"
        )
    check_rows(data, method.min_rows(data.num_variables), name)
    _derivations.check(method, name, data)


def _longer(posterior: Posterior, method: SamplingMethod, num_samples: int) -> Method:
    """The method with that many more draws."""
    now = posterior.num_draws if method.num_samples is None else method.num_samples
    return dataclasses.replace(method, num_samples=now + num_samples)  # pyright: ignore


def _extendable(posterior: Posterior, method: Method) -> SamplingMethod:
    """The method, unless nothing can be added to its draws."""
    name = name_of(method)
    if not isinstance(posterior.provenance["seed"], int):
        raise InputError("a merged result cannot be extended; extend its parts and merge again")
    if not isinstance(method, SamplingMethod):
        raise InputError(f"method {name!r} has no num_samples: there is nothing to add")
    chosen = posterior.provenance.get("chosen")
    chains = plugins.from_configuration(chosen, "methods") if chosen else method
    if posterior.state is None and hasattr(chains, "num_warmup"):
        raise InputError(
            f"this result of {name!r} kept no state to go on from; fit again with "
            "keep_state=True, or with another seed and merge the two"
        )
    return method


@contextmanager
def _watched(monitor: Monitor | None, progress: bool | None) -> Iterator[Monitor | None]:
    """The caller's monitor and a progress report, as far as they are wanted."""
    with progress_report(monitor is None if progress is None else progress) as report:
        watching = tuple(m for m in (report, monitor) if m is not None)
        yield MonitorGroup(watching) if len(watching) > 1 else next(iter(watching), None)


def _recorder(
    file: Checkpoint | None, journal: MemoryJournal | None, monitor: Monitor | None
) -> MonitorGroup:
    """All that watch the run; a file is further on than what a shorter run kept."""
    if file is not None:
        file.open()  # refuse a foreign file now, not after the first hour
    return MonitorGroup(tuple(m for m in (file, journal, monitor) if m is not None))


def _supported_constraints(name: str) -> frozenset[str]:
    """Of the method with its default settings: those made of methods ask the ones inside."""
    return plugins.load("methods", name)().supported_constraints


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
