"""A posterior as the plain document that a file holds."""

from typing import TYPE_CHECKING

from bayesdag import plugins
from bayesdag.posterior import storage

EVIDENCE = "lost_log_likelihood"  # in nats, by edge

if TYPE_CHECKING:
    from bayesdag.posterior.posterior import Posterior


def document_of(posterior: "Posterior") -> storage.Document:
    """The document of a `Posterior`; its own module would import this one in turn."""
    model, evidence = posterior.model, posterior.evidence
    return storage.Document(
        names=posterior.names,
        graphs=posterior.graphs,
        groups={
            "params": storage.flatten(posterior.params),
            "sample_stats": {"weight": posterior.weights, **posterior.stats},
            "marginals": posterior.marginals or {},
            "scaling": {"shift": model.scaling.shift, "scale": model.scaling.scale},
            "state": posterior.state or {},
            "evidence": {} if evidence is None else {EVIDENCE: evidence},
        },
        attributes={
            "provenance": posterior.provenance,
            "summary": posterior.summary,
            "mechanism": plugins.configuration(model.mechanism),
            "noise": plugins.configuration(model.noise),
        },
    )
