"""Posteriors from files, and from what a method has drawn."""

from pathlib import Path

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import BayesdagError, FileFormatError
from bayesdag.model.scm import SCM
from bayesdag.posterior import storage
from bayesdag.posterior.documents import EVIDENCE
from bayesdag.posterior.posterior import Posterior
from bayesdag.types import Array, Params, PlainData


def load(path: str | Path) -> Posterior:
    """The posterior in a file that `Posterior.save` wrote."""
    document = storage.load(Path(path))
    try:
        found = _from_document(document)
        _ = found.checked, found.contexts  # what is damaged in them shows here
        return found
    except (BayesdagError, KeyError, TypeError, AttributeError) as error:
        version = document.attributes["provenance"].get("version", "another version")
        raise FileFormatError(
            f"{path} is damaged, or needs a plug-in that is not installed here ({error}); it was "
            f"written by version {version}"
        ) from error


def from_draws(
    graphs: Array,
    model: SCM,
    params: Params,
    data: Dataset,
    *,
    log_joint: Array,
    provenance: PlainData,
    weights: Array | None = None,
    marginals: dict[str, np.ndarray] | None = None,
    state: dict[str, np.ndarray] | None = None,
    stats: dict[str, Array] | None = None,
) -> Posterior:
    """A Posterior from what a method has drawn; equal weights unless some are given.

    Args:
        graphs: (chain, draw, d, d).
        params: every leaf with leading dimensions (chain, draw).
        log_joint: (chain, draw), up to a constant that all draws share.
        provenance: at least `model`, `prior` and `temperature`, in words; `independent` where
            no Markov chain was needed; `members` (`diagnostics.member`) where the draws
            belong to several posteriors.
    """
    graphs = np.asarray(graphs, dtype=np.int8)
    shape = graphs.shape[:2]
    weights = np.ones(shape) if weights is None else np.asarray(weights, dtype=float)
    more = {name: np.asarray(value, dtype=float) for name, value in (stats or {}).items()}
    return Posterior(
        graphs=graphs,
        weights=weights / weights.sum(),
        model=model,
        params=storage.map_leaves(np.asarray, params),
        names=data.names,
        stats={
            "log_joint": np.asarray(log_joint, dtype=float),
            "num_edges": graphs.sum(axis=(2, 3)).astype(float),
            **more,
        },
        summary=data.summary(),
        provenance=provenance,
        marginals=marginals,
        state=state,
    )


def _from_document(document: storage.Document) -> Posterior:
    groups, attributes = document.groups, document.attributes
    stats = dict(groups["sample_stats"])
    return Posterior(
        graphs=document.graphs,
        weights=stats.pop("weight"),
        model=SCM(
            mechanism=plugins.from_configuration(attributes["mechanism"], "mechanisms"),
            noise=plugins.from_configuration(attributes["noise"], "noises"),
            scaling=Scaling(**groups["scaling"]),
        ),
        params=storage.unflatten(groups.get("params", {})),
        names=document.names,
        stats=stats,
        summary=attributes["summary"],
        provenance=attributes["provenance"],
        marginals=groups.get("marginals") or None,
        state=groups.get("state") or None,
        evidence=groups.get("evidence", {}).get(EVIDENCE),
    )
