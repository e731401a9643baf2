"""Runs of the same question as one result: chains from several machines and seeds.

Only runs that differ in nothing but their seed may be put together. Anything else would mix
answers to different questions, and is refused with the difference named.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from bayesdag.errors import InputError
from bayesdag.posterior import Posterior, check_result
from bayesdag.runs.processes import one_blas_thread
from bayesdag.runs.trees import map_leaves
from bayesdag.types import PlainData

# What decides the answer, besides the seed.
_SAME = ("data_hash", "method", "knowledge", "scaling", "model", "prior", "temperature")


def merge(posteriors: Sequence[Posterior]) -> Posterior:
    """All chains in one posterior; every run counts by its number of chains.

    Runs of another version are merged with a note. The result cannot be extended: the
    states of the samplers are left behind.
    """
    if len(posteriors) < 2:
        raise InputError(f"merge takes two or more results, not {len(posteriors)}")
    first = posteriors[0]
    for other in posteriors[1:]:
        _refuse_different(first, other)
    seeds = [seed for posterior in posteriors for seed in _seeds(posterior)]
    _refuse_repeated(seeds)
    merged = dataclasses.replace(chained(posteriors), provenance=_provenance(posteriors, seeds))
    with one_blas_thread():
        return merged.with_evidence()


def chained(posteriors: Sequence[Posterior]) -> Posterior:
    """All chains one after the other; every run counts by its number of chains.

    The rest is taken from the first run; no question is asked about whether they agree.
    """
    num_chains = np.array([posterior.num_chains for posterior in posteriors])
    share = num_chains / num_chains.sum()
    return dataclasses.replace(
        posteriors[0],
        graphs=np.concatenate([p.graphs for p in posteriors]),
        weights=np.concatenate([w * p.weights for w, p in zip(share, posteriors, strict=True)]),
        params=map_leaves(_stacked, *(p.params for p in posteriors)),
        stats={k: np.concatenate([p.stats[k] for p in posteriors]) for k in posteriors[0].stats},
        marginals=_marginals(posteriors, share),
        state=None,
        evidence=None,
    )


def _stacked(*leaves: np.ndarray) -> np.ndarray:
    """Along the chains; where runs left room for fewer parents, zeros fill it up."""
    widest = np.max([leaf.shape[1:] for leaf in leaves], axis=0)
    filled: list[np.ndarray] = []
    for leaf in leaves:
        missing = [(0, 0), *((0, int(w - s)) for w, s in zip(widest, leaf.shape[1:], strict=True))]
        filled.append(np.pad(leaf, missing))
    return np.concatenate(filled)


def _refuse_different(first: Posterior, other: Posterior) -> None:
    if first.names != other.names:
        raise InputError(
            f"the results are about different columns: {', '.join(first.names)} and "
            f"{', '.join(other.names)}"
        )
    for name in _SAME:
        mine, its = (_plain(p.provenance.get(name)) for p in (first, other))
        if mine != its:
            raise InputError(
                f"the results differ in {_words(name, mine, its)}; only runs that differ in "
                "nothing but their seed can be merged"
            )
    if first.num_draws != other.num_draws:
        raise InputError(
            f"the results have {first.num_draws} and {other.num_draws} draws per chain; fit "
            "both with the same num_samples, or extend the shorter one"
        )


def _refuse_repeated(seeds: list[int]) -> None:
    repeated = sorted({seed for seed in seeds if seeds.count(seed) > 1})
    if repeated:
        raise InputError(
            f"seed {repeated[0]} occurs in two of the results: they hold the same draws, and "
            "counting them twice would feign certainty; fit one of them with another seed"
        )


def _words(name: str, mine: object, its: object) -> str:
    if name == "data_hash":
        return "their data"
    if isinstance(mine, dict) and isinstance(its, dict):
        one, other = cast(PlainData, mine), cast(PlainData, its)
        keys = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
        return f"{name}: " + ", ".join(f"{k} ({one.get(k)!r}, {other.get(k)!r})" for k in keys)
    return f"{name} ({mine!r}, {its!r})"


def _seeds(posterior: Posterior) -> list[int]:
    seed: Any = posterior.provenance.get("seed", 0)
    return [*seed] if isinstance(seed, list | tuple) else [seed]


def _provenance(posteriors: Sequence[Posterior], seeds: list[int]) -> PlainData:
    first = posteriors[0].provenance
    notes = list(dict.fromkeys(n for p in posteriors for n in p.provenance.get("notes", [])))
    versions = sorted({str(p.provenance.get("version")) for p in posteriors})
    if len(versions) > 1:
        notes.append(f"merged from runs of versions {', '.join(versions)}")
    kept = {*_SAME, "version", "independent", "environments", "environment_model", "imputation"}
    merged = {key: value for key, value in first.items() if key in kept}
    merged |= {"seed": seeds, "merged": len(posteriors), "notes": notes}
    if all("members" in p.provenance for p in posteriors):
        merged["members"] = [member for p in posteriors for member in p.provenance["members"]]
    checks = [p.checked for p in posteriors if p.checked]
    if len(checks) == len(posteriors):
        sizes = [p.num_chains for p in posteriors]
        merged["check"] = check_result.averaged(checks, sizes).summary()
    return merged


def _marginals(posteriors: Sequence[Posterior], share: np.ndarray) -> dict[str, np.ndarray] | None:
    """Averages of what all runs know; an exact number is the same in each of them."""
    known = [posterior.marginals or {} for posterior in posteriors]
    common = sorted(k for k in known[0] if all(k in marginals for marginals in known))
    average = {k: np.average([m[k] for m in known], axis=0, weights=share) for k in common}
    return average or None


def _plain(value: object) -> object:
    """As it would be read from a file: a result in memory may be merged with a loaded one."""
    return json.loads(json.dumps(value))
