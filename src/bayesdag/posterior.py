"""A posterior over causal graphs and the functions on their edges.

Everything a fit leaves behind, as arrays with names. Every question about it is answered
by a function of plain arrays in a module of its own; the methods here only hand it over.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bayesdag import plugins, storage
from bayesdag.data import Dataset, Scaling
from bayesdag.scm import SCM
from bayesdag.types import Array, Draws, Params, Weights

if TYPE_CHECKING:
    import networkx
    import pandas
    import xarray


@dataclass(frozen=True)
class Posterior:
    """Weighted joint draws of graphs and functions.

    Attributes:
        graphs: `graphs[c, s, i, j] = 1` when draw s of chain c has the edge i -> j.
        weights: weight of every draw; all of them sum to 1.
        model: the structural causal model that `params` belong to.
        params: its parameters, every leaf with leading dimensions (chain, draw).
        names: column names, in the order of the nodes.
        stats: `log_joint` and `num_edges` of every draw, and what a method adds.
        summary: what is kept of the data (not the rows).
        provenance: version, method with all settings, seed, data hash, model and prior in words.
        marginals: exact `edge` and `ancestor` probabilities where a method knows them.
        state: what a sampler needs to go on from here.
    """

    graphs: Draws
    weights: Weights
    model: SCM
    params: Params
    names: tuple[str, ...]
    stats: dict[str, Float[np.ndarray, "chain draw"]]
    summary: dict[str, Any]
    provenance: dict[str, Any]
    marginals: dict[str, Float[np.ndarray, "d d"]] | None = None
    state: dict[str, np.ndarray] | None = None

    @property
    def num_chains(self) -> int:
        """Independent runs."""
        return self.graphs.shape[0]

    @property
    def num_draws(self) -> int:
        """Draws a chain."""
        return self.graphs.shape[1]

    @property
    def num_variables(self) -> int:
        """Nodes of every graph."""
        return self.graphs.shape[2]

    def edge_matrix(self) -> Float[np.ndarray, "d d"]:
        """P(i -> j): exact where the method knows it, else the weighted share of draws."""
        if self.marginals is not None and "edge" in self.marginals:
            return self.marginals["edge"]
        return _weighted_mean(self.graphs, self.weights)

    def edge_probabilities(self) -> "pandas.DataFrame":
        """P(source -> target), with column names."""
        return self._frame(self.edge_matrix())

    def edge_table(self) -> "pandas.DataFrame":
        """Every possible edge with its probability, most probable first.

        Column `reversed` is the probability of the opposite direction; what is left to
        one is the probability of no edge between the two.
        """
        import pandas

        probability = self.edge_matrix()
        i, j = np.nonzero(~np.eye(self.num_variables, dtype=bool))
        order = np.argsort(-probability[i, j], kind="stable")
        names = np.asarray(self.names, dtype=object)
        return pandas.DataFrame(
            {
                "source": names[i][order],
                "target": names[j][order],
                "probability": probability[i, j][order],
                "reversed": probability[j, i][order],
            }
        )

    def describe(self) -> list[str]:
        """What this posterior is of, in words: model, prior, draws and notes."""
        told = [
            f"{key}: {self.provenance[key]}" for key in ("model", "prior") if key in self.provenance
        ]
        size = f"draws: {self.num_draws} in {self.num_chains} independent run(s)"
        temperature = self.provenance.get("temperature", 1.0)
        if temperature != 1.0:
            told.append(f"temperature: {temperature:g} (1 is the posterior)")
        return [*told, size, *self.provenance.get("notes", [])]

    def to_networkx(self, threshold: float = 0.5) -> "networkx.DiGraph":
        """Edges with probability above `threshold`, each with its `probability`.

        Such a graph may hold a cycle when the threshold is below one half: it summarises
        marginals, it is not a draw.
        """
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(self.names)
        probability = self.edge_matrix()
        for i, j in zip(*np.nonzero(probability > threshold), strict=True):
            graph.add_edge(self.names[i], self.names[j], probability=float(probability[i, j]))
        return graph

    def to_datatree(self) -> "xarray.DataTree":
        """Labelled arrays in the ArviZ schema, ready for `arviz` or a netCDF file."""
        return storage.to_datatree(_document(self))

    def save(self, path: str | Path) -> None:
        """Write to a netCDF file, whole or not at all; equal results give equal bytes."""
        storage.save(_document(self), Path(path))

    def _frame(self, matrix: np.ndarray) -> "pandas.DataFrame":
        import pandas

        source = pandas.Index(self.names, name="source")
        target = pandas.Index(self.names, name="target")
        return pandas.DataFrame(matrix, index=source, columns=target)


def load(path: str | Path) -> Posterior:
    """The posterior in a file that `Posterior.save` wrote."""
    return _from_document(storage.load(Path(path)))


def from_draws(
    graphs: Array,
    model: SCM,
    params: Params,
    data: Dataset,
    *,
    log_joint: Array,
    provenance: dict[str, Any],
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
        provenance: at least `model`, `prior` and `temperature`, in words.
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


def _weighted_mean(graphs: Draws, weights: Weights) -> Float[np.ndarray, "d d"]:
    d = graphs.shape[-1]
    return (weights.reshape(-1) @ graphs.reshape(-1, d * d)).reshape(d, d)


def _document(posterior: Posterior) -> storage.Document:
    model = posterior.model
    return storage.Document(
        names=posterior.names,
        graphs=posterior.graphs,
        groups={
            "params": storage.flatten(posterior.params),
            "sample_stats": {"weight": posterior.weights, **posterior.stats},
            "marginals": posterior.marginals or {},
            "scaling": {"shift": model.scaling.shift, "scale": model.scaling.scale},
            "state": posterior.state or {},
        },
        attributes={
            "provenance": posterior.provenance,
            "summary": posterior.summary,
            "mechanism": plugins.configuration(model.mechanism),
            "noise": plugins.configuration(model.noise),
        },
    )


def _from_document(document: storage.Document) -> Posterior:
    groups, attributes = document.groups, document.attributes
    stats = dict(groups["sample_stats"])
    return Posterior(
        graphs=document.graphs,
        weights=stats.pop("weight"),
        model=SCM(
            mechanism=plugins.from_configuration(attributes["mechanism"]),
            noise=plugins.from_configuration(attributes["noise"]),
            scaling=Scaling(**groups["scaling"]),
        ),
        params=storage.unflatten(groups["params"]),
        names=document.names,
        stats=stats,
        summary=attributes["summary"],
        provenance=attributes["provenance"],
        marginals=groups.get("marginals") or None,
        state=groups.get("state") or None,
    )
