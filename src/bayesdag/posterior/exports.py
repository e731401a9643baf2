"""A graph in the words of other programs: DOT, GraphML, GML, CSV, lingam, causal-learn.

Text formats carry column names and probabilities. Names are data: each format escapes what it
would take for syntax, and what it cannot hold at all is shown escaped. Matrices of other
libraries are turned round explicitly, and back, because each has its own idea of rows and columns.
"""

import csv
import io
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag.errors import InputError
from bayesdag.posterior import column_names
from bayesdag.posterior.libraries import DiGraph
from bayesdag.text import printable
from bayesdag.types import PlainData

# Beginnings of a cell that a spreadsheet computes, or that our own apostrophe could hide.
COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", "'")
_XML_CHARACTER = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(graph: DiGraph, kind: str) -> str:
    """The graph in one of the formats of `FORMATS`."""
    if kind not in FORMATS:
        raise InputError(f"no format is called {kind!r}; there are: {', '.join(FORMATS)}")
    return FORMATS[kind](graph)


def to_dot(graph: DiGraph) -> str:
    """Graphviz; edges are labelled with their probability and as dark as it is high."""
    graph = _relabelled(graph, printable)
    lines = ["digraph {"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    for source, target, facts in graph.edges(data=True):
        lines.append(f"  {_quoted(source)} -> {_quoted(target)}{_dot_attributes(facts)};")
    return "\n".join([*lines, "}"]) + "\n"


def to_graphml(graph: DiGraph) -> str:
    """GraphML, for yEd, Gephi and Cytoscape."""
    import networkx

    return "\n".join(cast(Any, networkx).generate_graphml(_relabelled(graph, _xml_text))) + "\n"


def to_gml(graph: DiGraph) -> str:
    """GML, which DoWhy takes as the `graph` of a CausalModel."""
    import networkx

    return "\n".join(cast(Any, networkx).generate_gml(graph)) + "\n"


def to_csv(graph: DiGraph) -> str:
    """One line per edge: source, target, probability; safe to open in a spreadsheet.

    A spreadsheet computes a cell that begins with =, +, - or @. Such a name, and one that
    begins with an apostrophe, is written with an apostrophe before it; `from_csv` takes it off.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(["source", "target", "probability"])
    for source, target, facts in graph.edges(data=True):
        writer.writerow([_inert(source), _inert(target), float(facts["probability"])])
    return out.getvalue()


def from_csv(text: str) -> DiGraph:
    """The graph of a text that `to_csv` wrote; variables without an edge are not in it."""
    import networkx

    graph: DiGraph = networkx.DiGraph()
    for source, target, probability in list(csv.reader(io.StringIO(text, newline="")))[1:]:
        ends = (name.removeprefix("'") for name in (source, target))
        graph.add_edge(*ends, probability=float(probability))
    return graph


FORMATS: dict[str, Callable[[DiGraph], str]] = {
    "dot": to_dot,
    "graphml": to_graphml,
    "gml": to_gml,
    "csv": to_csv,
}


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
) -> list[tuple[DiGraph, float]]:
    """Different graphs with their probabilities: one analysis each, averaged by mass."""
    return [
        (column_names.digraph(names, graph), float(m))
        for graph, m in zip(graphs, mass, strict=True)
    ]


def _inert(name: str) -> str:
    return f"'{name}" if name.startswith(COMPUTED) else name


def _xml_text(name: str) -> str:
    """`name` without what no XML file may hold: most control characters, lone surrogates."""
    return "".join(c if _XML_CHARACTER.match(c) else printable(c) for c in name)


def _relabelled(graph: DiGraph, shown: Callable[[str], str]) -> DiGraph:
    """The graph with its names as `shown`; names that would become equal stay different."""
    import networkx

    labels: dict[str, str] = {}
    for name in graph.nodes:
        label, taken = shown(name), set(labels.values())
        while label in taken or (label != name and label in graph):
            label += "'"
        labels[name] = label
    return networkx.relabel_nodes(graph, labels)


def _quoted(name: str) -> str:
    escaped = str(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _dot_attributes(facts: PlainData) -> str:
    if "probability" not in facts:
        return ""
    probability = float(facts["probability"])
    shade = round(100 * (1 - probability))
    return f' [label="{probability:.2f}", color="gray{min(shade, 80)}"]'
