"""A graph in the words of other programs: DOT, GraphML, GML, CSV, lingam, causal-learn.

Text formats carry column names and probabilities. Matrices of other libraries are turned
round explicitly, and back, because each has its own idea of rows and columns.
"""

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag.errors import InputError
from bayesdag.posterior import column_names

if TYPE_CHECKING:
    import networkx


def text(graph: "networkx.DiGraph", kind: str) -> str:
    """The graph in one of the formats of `FORMATS`."""
    if kind not in FORMATS:
        raise InputError(f"no format is called {kind!r}; there are: {', '.join(FORMATS)}")
    return FORMATS[kind](graph)


def to_dot(graph: "networkx.DiGraph") -> str:
    """Graphviz; edges are labelled with their probability and as dark as it is high."""
    lines = ["digraph {"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    for source, target, facts in graph.edges(data=True):
        lines.append(f"  {_quoted(source)} -> {_quoted(target)}{_dot_attributes(facts)};")
    return "\n".join([*lines, "}"]) + "\n"


def to_graphml(graph: "networkx.DiGraph") -> str:
    """GraphML, for yEd, Gephi and Cytoscape."""
    import networkx

    return "\n".join(networkx.generate_graphml(graph)) + "\n"


def to_gml(graph: "networkx.DiGraph") -> str:
    """GML, which DoWhy takes as the `graph` of a CausalModel."""
    import networkx

    return "\n".join(networkx.generate_gml(graph)) + "\n"


def to_csv(graph: "networkx.DiGraph") -> str:
    """One line an edge: source, target, probability."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", "target", "probability"])
    for source, target, facts in graph.edges(data=True):
        writer.writerow([source, target, repr(facts["probability"])])
    return out.getvalue()


FORMATS = {"dot": to_dot, "graphml": to_graphml, "gml": to_gml, "csv": to_csv}


def to_lingam(weights: Shaped[np.ndarray, "d d"]) -> Shaped[np.ndarray, "d d"]:
    """lingam's matrix: entry [i, j] is the effect of j on i, the transpose of ours."""
    return weights.T.copy()


def from_lingam(matrix: Shaped[np.ndarray, "d d"]) -> Shaped[np.ndarray, "d d"]:
    """Our orientation of lingam's matrix."""
    return np.asarray(matrix).T.copy()


def to_causallearn(graph: Shaped[np.ndarray, "d d"]) -> Int[np.ndarray, "d d"]:
    """causal-learn's marks: i -> j is [i, j] = -1 and [j, i] = 1; i — j is -1 and -1.

    Takes a DAG, or a CPDAG in which both entries are 1 where the direction is open.
    """
    edges = np.asarray(graph) != 0
    tail = edges.astype(int)
    head = (edges.T & ~edges).astype(int)
    return head - tail


def from_causallearn(matrix: Shaped[np.ndarray, "d d"]) -> Int[np.ndarray, "d d"]:
    """Our matrix of a causal-learn DAG or CPDAG; marks with circles are refused."""
    marks = np.asarray(matrix)
    if not np.isin(marks, (-1, 0, 1)).all():
        raise InputError(
            "the causal-learn graph has marks other than -1, 0 and 1; only DAGs and CPDAGs "
            "can be read, not graphs with circles (PAGs)"
        )
    if ((marks == 1) & (marks.T == 1)).any():
        raise InputError("the causal-learn graph has a two-headed edge; it is not a DAG")
    return (marks == -1).astype(int)


def weighted_graphs(
    names: Sequence[str], graphs: Shaped[np.ndarray, "u d d"], mass: Float[np.ndarray, " u"]
) -> list[tuple["networkx.DiGraph", float]]:
    """Different graphs with their probabilities: one analysis each, averaged by mass."""
    return [
        (column_names.digraph(names, graph), float(m))
        for graph, m in zip(graphs, mass, strict=True)
    ]


def _quoted(name: str) -> str:
    escaped = str(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _dot_attributes(facts: dict) -> str:
    if "probability" not in facts:
        return ""
    probability = facts["probability"]
    shade = round(100 * (1 - probability))
    return f' [label="{probability:.2f}", color="gray{min(shade, 80)}"]'
