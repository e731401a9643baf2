"""Figures of a posterior: what each kind shows, handed to `plot` as plain arrays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from bayesdag.data import Dataset
from bayesdag.errors import InputError, did_you_mean
from bayesdag.posterior import fitted_data, graph_queries
from bayesdag.posterior.functions import FunctionBand, function_bands
from bayesdag.posterior.notebook import NotebookView
from bayesdag.posterior.predictive_checks import refuse_other_data
from bayesdag.types import Facts

if TYPE_CHECKING:
    from bayesdag.posterior.posterior import Posterior

Axes = Any  # of matplotlib, which is imported only where it draws
KINDS = ("graph", "edges", "paths", "effect", "function", "traces")


class PosteriorViews(NotebookView):
    """How a posterior shows itself: in a notebook, and as figures."""

    notebook_words = "describe"
    notebook_table = "edge_table"

    def plot(self, kind: str = "graph", **options: Any) -> Axes:
        """A figure (matplotlib): graph, edges, paths, effect, function or traces."""
        return plot(cast("Posterior", self), kind, **options)


def plot(posterior: "Posterior", kind: str = "graph", **options: Any) -> Axes:
    """The figure called `kind`; returns matplotlib's axes.

    Args:
        kind: graph (option threshold), edges or paths (heat maps), effect or function (options
            cause and outcome; values for an effect, data for a function), traces (option name).
        options: those, and `axes` to draw on.
    """
    if kind not in KINDS:
        raise InputError(f"no figure is called {kind!r}; {did_you_mean(kind, KINDS)}")
    makers = {
        "graph": _graph,
        "edges": _edges,
        "paths": _paths,
        "effect": _effect,
        "function": _function,
        "traces": _traces,
    }
    return makers[kind](posterior, **options)


def _graph(posterior: "Posterior", threshold: float = 0.5, axes: Axes = None) -> Axes:
    from bayesdag import plot

    probability = posterior.edge_matrix()
    return plot.graph(
        posterior.names,
        probability,
        graph_queries.consensus_graph(probability),
        posterior.equivalence_classes().compelled_matrix(),
        threshold=threshold,
        axes=axes,
    )


def _edges(posterior: "Posterior", axes: Axes = None) -> Axes:
    from bayesdag import plot

    return plot.heat_map(posterior.names, posterior.edge_matrix(), axes=axes)


def _paths(posterior: "Posterior", axes: Axes = None) -> Axes:
    from bayesdag import plot

    found = posterior.path_probabilities().to_numpy()
    return plot.heat_map(posterior.names, found, title="P(row → … → column)", axes=axes)


def _traces(posterior: "Posterior", name: str = "log_joint", axes: Axes = None) -> Axes:
    from bayesdag import plot

    return plot.traces(posterior.stats, name=name, axes=axes)


def _effect(
    posterior: "Posterior",
    cause: str,
    outcome: str,
    values: Sequence[float | int] | None = None,
    axes: Axes = None,
) -> Axes:
    return posterior.effect(cause, outcome, values).plot(axes=axes)


def _function(
    posterior: "Posterior", cause: str, outcome: str, data: Any = None, axes: Axes = None
) -> Axes:
    from bayesdag import plot

    known, points = {}, None
    if data is not None:
        dataset = data if isinstance(data, Dataset) else posterior.read(data)
        dataset = fitted_data.with_kinds_of(posterior.summary, dataset)
        refuse_other_data(posterior.provenance, posterior.summary, dataset)
        dataset = dataset.complete_rows()
        known = {"values": dataset.values, "observed": dataset.observed}
    band = _band(posterior, cause, outcome, known)
    if known:
        place = posterior.names.index(cause)
        points = known["values"][band.rows, place], band.partial_residuals
    curve = (band.x, band.mean, band.low, band.high)
    return plot.function_band(*curve, cause=cause, outcome=outcome, points=points, axes=axes)


def _band(posterior: "Posterior", cause: str, outcome: str, known: Facts) -> FunctionBand:
    columns = posterior.summary["columns"]
    ensemble = posterior._ensemble  # pyright: ignore[reportPrivateUsage] (of this room)
    found = function_bands(ensemble, columns, [(cause, outcome)], **known)
    if not found:
        raise InputError(f"no draw has the edge {cause} → {outcome}, so there is no function of it")
    return found[0]
