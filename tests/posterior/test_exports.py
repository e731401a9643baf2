"""What other programs read is what was drawn: every export comes back unchanged."""

import csv
import io
import re

import networkx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesdag import graphs
from bayesdag.errors import InputError
from bayesdag.posterior import column_names, exports
from bayesdag.text import printable
from tests.posteriors import random_dags, random_linear

seeds = st.integers(0, 2**31)
ODD_NAMES = ("plain", "with space", 'quo"te', "back\\slash", "größe µ", "a-b", "1st", "<&>")
HOSTILE_NAMES = (
    "=cmd|' /C calc'!A0",
    "+1",
    "-x",
    "@SUM(A1)",
    "'quoted'",
    "\ttab",
    "<script>alert(1)</script>",
    'a"; evil -> b; "',
    "trailing\\",
    "line\nbreak",
    "semi;colon, comma",
    "&lt; ]]>",
    "\uff1d1+1",
)


def random_digraph(seed: int, names=ODD_NAMES) -> networkx.DiGraph:
    rng = np.random.default_rng(seed)
    graph = random_dags(rng, (), len(names))
    return column_names.digraph(names, graph, rng.random(graph.shape))


def same(first: networkx.DiGraph, second: networkx.DiGraph) -> bool:
    ends = dict(first.edges), dict(second.edges)
    assert set(first.nodes) == set(second.nodes)
    assert set(first.edges) == set(second.edges), ends
    return all(
        second.edges[edge]["probability"] == pytest.approx(facts["probability"])
        for edge, facts in first.edges.items()
    )


def unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def parse_dot(text: str) -> networkx.DiGraph:
    """Enough of the DOT grammar for quoted names, edges and labels."""
    name = r'"((?:[^"\\]|\\.)*)"'
    graph = networkx.DiGraph()
    for line in text.splitlines():
        if edge := re.match(rf'  {name} -> {name} \[label="([\d.]+)"', line):
            source, target, label = edge.groups()
            graph.add_edge(unescaped(source), unescaped(target), probability=float(label))
        elif node := re.match(rf"  {name};$", line):
            graph.add_node(unescaped(node.group(1)))
    return graph


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_text_formats_come_back_unchanged(seed):
    graph = random_digraph(seed)
    assert same(graph, networkx.parse_gml(exports.text(graph, "gml")))
    assert same(graph, networkx.parse_graphml(exports.text(graph, "graphml")))
    drawn = parse_dot(exports.text(graph, "dot"))
    assert set(drawn.nodes) == set(graph.nodes)
    assert set(drawn.edges) == set(graph.edges)
    for edge in graph.edges:
        probability = graph.edges[edge]["probability"]
        assert drawn.edges[edge]["probability"] == pytest.approx(probability, abs=0.0051)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_the_edge_list_is_a_table(seed):
    graph = random_digraph(seed)
    table = pd.read_csv(io.StringIO(exports.text(graph, "csv")))
    assert list(table.columns) == ["source", "target", "probability"]
    rows = {(r.source, r.target): r.probability for r in table.itertuples()}  # pyright: ignore[reportAttributeAccessIssue]
    assert rows == {edge: facts["probability"] for edge, facts in graph.edges.items()}


@given(seed=seeds, names=st.sampled_from([ODD_NAMES, HOSTILE_NAMES]))
@settings(max_examples=10, deadline=None)
def test_hostile_names_come_back_unchanged(seed, names):
    graph = random_digraph(seed, names)
    assert same(graph, networkx.parse_gml(exports.text(graph, "gml")))
    assert same(graph, networkx.parse_graphml(exports.text(graph, "graphml")))
    linked = graph.edge_subgraph(graph.edges)
    assert same(linked, exports.from_csv(exports.text(graph, "csv")))
    drawn = parse_dot(exports.text(graph, "dot"))
    assert set(drawn.nodes) == {printable(name) for name in names}
    assert set(drawn.edges) == {(printable(a), printable(b)) for a, b in graph.edges}


def test_no_cell_of_a_csv_file_is_computed_by_a_spreadsheet():
    ring = networkx.cycle_graph(list(HOSTILE_NAMES), create_using=networkx.DiGraph)
    networkx.set_edge_attributes(ring, dict.fromkeys(ring.edges, 0.5), name="probability")
    text = exports.text(ring, "csv")
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r\n\uff1d"]
    # Quoted whole: a spreadsheet that splits at semicolons must not find a cell inside a name.
    assert text.splitlines()[0] == '"source","target","probability"'


@pytest.mark.parametrize("name", ["\x1b[31m", "\x00", "\ud800", "\u202e"])
def test_what_a_format_cannot_hold_is_shown_escaped(name, tmp_path):
    graph = networkx.DiGraph()
    graph.add_edge(name, "b", probability=0.9)
    assert set(parse_dot(exports.text(graph, "dot")).nodes) == {printable(name), "b"}
    written = exports.text(graph, "graphml")
    (tmp_path / "x").write_text(written, encoding="utf-8")
    assert len(networkx.parse_graphml(written)) == 2


def test_names_that_would_look_alike_stay_apart():
    graph = networkx.DiGraph()
    graph.add_edge("a\x1b", r"a\x1b", probability=0.9)
    for text in (exports.text(graph, "dot"), exports.text(graph, "graphml")):
        read = parse_dot(text) if text.startswith("digraph") else networkx.parse_graphml(text)
        assert len(read) == 2
        assert read.number_of_edges() == 1


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_matrices_of_other_libraries_come_back_unchanged(seed):
    rng = np.random.default_rng(seed)
    graph = random_dags(rng, (), 6)
    weights = graph * rng.normal(size=graph.shape)
    np.testing.assert_array_equal(exports.from_lingam(exports.to_lingam(weights)), weights)
    np.testing.assert_array_equal(exports.from_causallearn(exports.to_causallearn(graph)), graph)
    essential = graphs.cpdag(graph)
    there = exports.to_causallearn(essential)
    np.testing.assert_array_equal(exports.from_causallearn(there), essential)


def test_orientations_are_those_of_the_other_libraries():
    """Their documentation: lingam B[i, j] is j on i; causal-learn [j, i] = 1, [i, j] = -1."""
    arrow = np.array([[0.0, 2.0], [0.0, 0.0]])
    assert exports.to_lingam(arrow).tolist() == [[0, 0], [2, 0]]
    assert exports.to_causallearn(arrow).tolist() == [[0, -1], [1, 0]]
    assert exports.to_causallearn(np.array([[0, 1], [1, 0]])).tolist() == [[0, -1], [-1, 0]]


def test_graphs_that_are_no_dags_are_refused():
    with pytest.raises(InputError, match="circles"):
        exports.from_causallearn(np.array([[0, 2], [2, 0]]))
    with pytest.raises(InputError, match="two-headed"):
        exports.from_causallearn(np.array([[0, 1], [1, 0]]))
    with pytest.raises(InputError, match="no format is called 'pdf'"):
        exports.text(networkx.DiGraph(), "pdf")


@pytest.mark.parametrize("suffix", ["dot", "graphml", "gml", "csv"])
def test_a_posterior_is_exported_as_an_acyclic_graph_by_the_suffix(suffix, seed, tmp_path):
    posterior = random_linear(seed)
    posterior.export(tmp_path / f"graph.{suffix}", threshold=0.2)
    consensus = posterior.consensus_graph(0.2)
    assert (tmp_path / f"graph.{suffix}").read_text() == exports.text(consensus, suffix)
    assert networkx.is_directed_acyclic_graph(consensus)
    assert [path.name for path in tmp_path.iterdir()] == [f"graph.{suffix}"]


def test_an_unknown_suffix_is_refused_and_leaves_nothing(seed, tmp_path):
    with pytest.raises(InputError, match="no format is called 'png'"):
        random_linear(seed).export(tmp_path / "graph.png")
    assert list(tmp_path.iterdir()) == []


def test_graphs_with_weights_carry_the_whole_posterior(seed):
    posterior = random_linear(seed)
    pairs = posterior.weighted_graphs()
    assert sum(mass for _, mass in pairs) == pytest.approx(1)
    total = sum(
        mass * networkx.to_numpy_array(graph, list(posterior.names)) for graph, mass in pairs
    )
    np.testing.assert_allclose(total, posterior.edge_matrix(), atol=1e-12)


def test_the_consensus_is_handed_over_in_the_orientation_of_the_other_library(seed):
    posterior = random_linear(seed)
    graph = posterior.consensus_graph(0.15)
    expected = networkx.to_numpy_array(graph, list(posterior.names), weight="probability")
    assert (expected > 0).any()
    np.testing.assert_array_equal(exports.from_lingam(posterior.to_lingam(0.15)), expected)
    there = posterior.to_causallearn(0.15)
    np.testing.assert_array_equal(exports.from_causallearn(there), expected > 0)
