"""Scores of a given graph, beside those that a search has found."""

import dataclasses

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset, Scaling
from bayesdag.errors import InputError
from bayesdag.fitting.method_settings import name_of
from bayesdag.graphs import is_acyclic
from bayesdag.knowledge import Knowledge
from bayesdag.posterior import Posterior
from bayesdag.posterior.predictive_checks import refuse_other_data


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
    dataset = as_fitted(posterior, data)
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


def as_fitted(posterior: Posterior, data: object) -> Dataset:
    """The data of a posterior, on the scale on which they were fitted."""
    stated, dataset = posterior.provenance, posterior.read(data)
    refuse_other_data(stated, posterior.summary, dataset)
    scaling = Scaling(**{k: np.array(v, dtype=float) for k, v in stated["scaling"].items()})
    return dataclasses.replace(dataset, scaling=scaling)
