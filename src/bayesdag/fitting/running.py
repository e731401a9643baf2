"""Fits: check the input, run the method, stamp the result."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesdag import plugins
from bayesdag._version import __version__
from bayesdag.data import Dataset, preparing, read
from bayesdag.errors import InputError
from bayesdag.fitting.graph_scores import as_fitted
from bayesdag.fitting.method_settings import build_method, name_of
from bayesdag.fitting.support import check, known, suited
from bayesdag.knowledge import Knowledge
from bayesdag.methods import _assumed_roots, _derivations, _kinds
from bayesdag.posterior import Posterior
from bayesdag.posterior.arguments import check_count
from bayesdag.random import key_of
from bayesdag.runs import compilation_cache, durations
from bayesdag.runs.checkpoint import Checkpoint
from bayesdag.runs.memory_journal import MemoryJournal
from bayesdag.runs.processes import one_blas_thread
from bayesdag.runs.progress import progress_report
from bayesdag.runs.recording import MonitorGroup
from bayesdag.types import Method, Monitor, PlainData, SamplingMethod

DEFAULT_METHOD = "auto"


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
    dataset = as_fitted(posterior, data)
    longer = _longer(posterior, _extendable(posterior, method), num_samples)
    said, journal = Knowledge.read(stated["knowledge"]), MemoryJournal(posterior.state)
    with _watched(monitor, progress) as watch:
        return _run(longer, dataset, said, stated["seed"], checkpoint, watch, journal)


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
