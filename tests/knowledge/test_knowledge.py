import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayesdag.errors import KnowledgeError
from bayesdag.graphs import all_dags, is_acyclic
from bayesdag.knowledge import Constraints, Knowledge
from tests import reference
from tests.strategies import dags

NAMES = ("Raf", "Mek", "Erk", "Akt")


def pairs(names):
    return [(cause, effect) for cause in names for effect in names if cause != effect]


@st.composite
def any_statements(draw, names=NAMES):
    """Statements that may well contradict each other."""
    edges = st.lists(st.sampled_from(pairs(names)), max_size=3)
    some = st.lists(st.sampled_from(names), max_size=1)
    tier = draw(st.lists(st.integers(0, 3), min_size=len(names), max_size=len(names)))
    return {
        "required": draw(edges),
        "forbidden": draw(edges),
        "tiers": [[n for n, t in zip(names, tier, strict=True) if t == k] for k in (1, 2, 3)],
        "roots": draw(some),
        "sinks": draw(some),
    }


@st.composite
def true_statements(draw, graph, names):
    """Statements of every kind that hold for `graph`."""

    def some(items):
        return draw(st.lists(st.sampled_from(items), max_size=3)) if items else []

    edges = {(names[i], names[j]) for i, j in reference.edges_of(graph)}
    order = [names[i] for i in reference.linear_extensions(graph)[0]]
    cut = draw(st.integers(0, len(names)))
    return {
        "required": some(sorted(edges)),
        "forbidden": some(sorted(set(pairs(names)) - edges)),
        "tiers": [some(order[:cut]), some(order[cut:])],
        "roots": some([n for n in names if all(effect != n for _, effect in edges)]),
        "sinks": some([n for n in names if all(cause != n for cause, _ in edges)]),
        "beliefs": [(*edge, draw(st.floats(0.01, 0.99))) for edge in some(pairs(names))],
    }


@st.composite
def dags_and_statements(draw, max_nodes=4):
    graph = draw(dags(max_nodes))
    names = (*NAMES, "PKA")[: len(graph)]
    return graph, names, draw(true_statements(graph, names))


def consistent(statements: dict, names) -> Knowledge:
    """Knowledge from statements, without beliefs about edges that the others settle."""
    facts = Knowledge(**{**statements, "beliefs": ()}).bind(names)
    settled = facts.required | facts.forbidden
    beliefs = {
        (cause, effect): probability
        for cause, effect, probability in statements["beliefs"]
        if not settled[names.index(cause), names.index(effect)]
    }
    return Knowledge(**{**statements, "beliefs": beliefs})


def is_true_of(knowledge: Knowledge, graph, names) -> bool:
    """Whether a graph agrees with every statement, read literally."""
    edges = {(names[i], names[j]) for i, j in reference.edges_of(graph)}
    tier = {name: number for number, tier in enumerate(knowledge.tiers) for name in tier}
    return (
        set(knowledge.required) <= edges
        and not edges & set(knowledge.forbidden)
        and not any(tier.get(cause, -1) > tier.get(effect, 99) for cause, effect in edges)
        and not any(effect in knowledge.roots for _, effect in edges)
        and not any(cause in knowledge.sinks for cause, _ in edges)
    )


def total_log_prior(constraints: Constraints, graph) -> float:
    columns = graph.astype(bool).T
    return sum(
        float(constraints.log_prior(node, parents[None])[0]) for node, parents in enumerate(columns)
    )


def refusal(names=NAMES, **statements) -> str:
    """The message with which contradictory or unusable statements are refused."""
    with pytest.raises(KnowledgeError) as error:
        Knowledge(**statements).bind(names)
    return str(error.value)


@given(dags_and_statements(max_nodes=5))
def test_a_graph_is_allowed_by_what_is_true_of_it(case):
    graph, names, statements = case
    constraints = consistent(statements, names).bind(names)
    assert constraints.allows(graph)
    assert constraints.violations(graph) == []
    expected = float((graph * constraints.log_odds).sum())
    assert total_log_prior(constraints, graph) == pytest.approx(expected)


@given(dags_and_statements())
def test_the_prior_is_zero_exactly_where_a_statement_is_broken(case):
    _, names, statements = case
    knowledge = consistent(statements, names)
    constraints = knowledge.bind(names)
    every = all_dags(len(names))
    expected = [is_true_of(knowledge, graph, names) for graph in every]
    assert constraints.allows(every).tolist() == expected
    for graph, fits in zip(every[::7], expected[::7], strict=True):
        assert (total_log_prior(constraints, graph) > -np.inf) == fits
        assert (constraints.violations(graph) == []) == fits


@given(any_statements())
def test_knowledge_is_refused_exactly_when_no_dag_fits(statements):
    knowledge = Knowledge(**statements)
    satisfiable = any(is_true_of(knowledge, graph, NAMES) for graph in all_dags(4))
    try:
        constraints = knowledge.bind(NAMES)
    except KnowledgeError:
        assert not satisfiable
    else:
        assert satisfiable
        assert constraints.allows(constraints.required)


@given(dags(max_nodes=5))
def test_edges_that_close_a_cycle_with_required_ones_are_forbidden(graph):
    names = tuple("abcde"[: len(graph)])
    required = [(names[i], names[j]) for i, j in reference.edges_of(graph)]
    forbidden = Knowledge(required).bind(names).forbidden
    for i in range(len(names)):
        for j in range(len(names)):
            closed = graph.copy()
            closed[i, j] = 1
            assert forbidden[i, j] == (not is_acyclic(closed))


@given(case=dags_and_statements(max_nodes=5))
def test_knowledge_survives_json_and_yaml(case, tmp_path_factory):
    _, names, statements = case
    knowledge = consistent(statements, names)
    assert Knowledge.read(json.loads(json.dumps(knowledge.to_dict()))) == knowledge
    file = tmp_path_factory.mktemp("knowledge") / "facts.yaml"
    file.write_text(yaml.safe_dump(knowledge.to_dict()))
    assert Knowledge.read(file) == Knowledge.read(str(file)) == knowledge


@given(names=st.lists(st.text(min_size=1), min_size=2, max_size=4, unique=True))
def test_any_text_can_be_a_column_name(names, tmp_path_factory):
    knowledge = Knowledge(required=[names[:2]], tiers=[[name] for name in names])
    file = tmp_path_factory.mktemp("knowledge") / "facts.yaml"
    file.write_text(yaml.safe_dump(knowledge.to_dict()))
    assert Knowledge.read(file).bind(names).required[0, 1]


def test_no_knowledge_allows_every_graph():
    for constraints in (Constraints.free(NAMES), Knowledge.read(None).bind(NAMES)):
        np.testing.assert_array_equal(constraints.forbidden, np.eye(4, dtype=bool))
        assert not constraints.required.any()
        assert not constraints.log_odds.any()
        assert constraints.kinds == frozenset()
        assert constraints.allows(all_dags(4)).all()
        assert constraints.candidates(1).tolist() == [True, False, True, True]


def test_constraints_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        Constraints.free(NAMES).forbidden[0, 1] = True


def test_beliefs_become_log_odds():
    constraints = Knowledge(beliefs={"Raf -> Mek": 0.9, "Mek -> Raf": 0.5}).bind(NAMES)
    assert constraints.log_odds[0, 1] == pytest.approx(math.log(9))
    assert np.count_nonzero(constraints.log_odds) == 1
    parents = np.array([[False] * 4, [True, False, False, False]])
    np.testing.assert_allclose(constraints.log_prior(1, parents), [0, math.log(9)])


@pytest.mark.parametrize(
    ("statements", "kinds"),
    [
        ({"required": ["Raf -> Mek"]}, {"required"}),
        ({"forbidden": ["Raf -> Mek"]}, {"forbidden"}),
        ({"tiers": [["Raf"], ["Mek"]]}, {"forbidden"}),
        ({"tiers": [["Raf", "Mek"]]}, set()),
        ({"roots": "Raf", "beliefs": {"Raf -> Mek": 0.2}}, {"forbidden", "beliefs"}),
        ({"sinks": "Raf"}, {"forbidden"}),
    ],
)
def test_kinds_name_what_was_used(statements, kinds):
    assert Knowledge(**statements).bind(NAMES).kinds == kinds


def test_violations_are_told_in_words():
    constraints = Knowledge(required=["Raf -> Mek"], sinks=["Akt"]).bind(NAMES)
    graph = reference.graph_of([(3, 0), (1, 0)], 4)
    assert constraints.violations(graph) == [
        "Raf -> Mek is required but missing",
        "Mek -> Raf is forbidden but there",
        "Akt -> Raf is forbidden but there",
    ]


CONTRADICTIONS = [
    ({"required": ["Raf -> Mek", "Mek -> Erk", "Erk -> Raf"]}, "Raf -> Mek -> Erk -> Raf"),
    (
        {"required": ["Raf -> Mek"], "forbidden": ["Raf -> Mek"]},
        "Raf -> Mek is required, but it is forbidden",
    ),
    ({"required": ["Raf -> Mek"], "roots": ["Mek"]}, "required, but Mek is a root"),
    ({"required": ["Raf -> Mek"], "sinks": ["Raf"]}, "required, but Raf is a sink"),
    (
        {"required": ["Raf -> Mek"], "tiers": [["Mek"], ["Erk"], ["Raf"]]},
        "it runs from tier 3 back to tier 1",
    ),
    ({"tiers": [["Raf"], ["Mek", "Raf"]]}, "'Raf' is in tier 1 and in tier 2"),
    (
        {"required": ["Raf -> Mek"], "beliefs": {"Raf -> Mek": 0.3}},
        "Raf -> Mek has the belief 0.3, but it is required",
    ),
    (
        {"tiers": ["Mek", "Raf"], "beliefs": {"Raf -> Mek": 0.3}},
        "has the belief 0.3, but it runs from tier 2 back to tier 1",
    ),
    (
        {"required": ["Raf -> Mek", "Mek -> Erk"], "beliefs": {"Erk -> Raf": 0.3}},
        "it closes the cycle Raf -> Mek -> Erk -> Raf",
    ),
]


@pytest.mark.parametrize(("statements", "message"), CONTRADICTIONS)
def test_contradictions_are_refused_by_name(statements, message):
    assert message in refusal(**statements)


def test_all_contradictions_are_named_at_once():
    message = refusal(required=["Raf -> Mek", "Akt -> Erk"], roots=["Mek", "Erk"])
    assert "Mek is a root" in message
    assert "Erk is a root" in message


def test_a_root_that_is_a_sink_stands_alone():
    constraints = Knowledge(roots=["Raf"], sinks=["Raf"]).bind(NAMES)
    assert constraints.forbidden[0].all()
    assert constraints.forbidden[:, 0].all()


UNUSABLE = [
    ({"required": ["Raf -> Raf"]}, "Raf -> Raf leads from a variable to itself"),
    ({"required": ["Raf", "Mek"]}, "'Raf' is not one edge; write 'cause -> effect'"),
    ({"required": ["Raf -> Mek -> Erk"]}, "is not one edge"),
    ({"required": [["Raf", "Mek", "Erk"]]}, "is not one edge"),
    ({"required": {"Raf": "Mek"}}, "is not one edge"),
    ({"required": [{"Raf", "Mek"}]}, "is not one edge"),
    ({"forbidden": 3.5}, "is not one edge"),
    ({"roots": [True]}, "True is not a column name; put the name in quotes"),
    ({"roots": [None]}, "None is not a column name"),
    ({"roots": object()}, "expected a list"),
    ({"beliefs": {"Raf -> Mek": 0}}, "'forbidden'"),
    ({"beliefs": {"Raf -> Mek": 1.0}}, "'required'"),
    ({"beliefs": {"Raf -> Mek": 1.2}}, "strictly between 0 and 1"),
    ({"beliefs": {"Raf -> Mek": "often"}}, "has 'often'"),
    ({"beliefs": {"Raf -> Mek": float("nan")}}, "strictly between 0 and 1"),
    ({"beliefs": ["Raf -> Mek"]}, "is not a belief"),
    (
        {"beliefs": [("Raf", "Mek", 0.2), ["Raf -> Mek", 0.3]]},
        "Raf -> Mek has two probabilities, 0.2 and 0.3",
    ),
    ({"required": ["Raff -> Mek"]}, "'Raff' (did you mean 'Raf'"),
    ({"sinks": ["xyz"]}, "'xyz' (there are: 'Raf', 'Mek', 'Erk', 'Akt')"),
]


@pytest.mark.parametrize(("statements", "message"), UNUSABLE)
def test_unusable_statements_are_refused_with_a_remedy(statements, message):
    assert message in refusal(**statements)


@pytest.mark.parametrize(
    ("edge", "names"),
    [
        ("dose -> blood pressure", ("dose", "blood pressure")),
        ("dose->blood pressure", ("dose", "blood pressure")),
        ("dose → response", ("dose", "response")),
        ("a->b -> c", ("a->b", "c")),
        ("1 -> 2", ("1", "2")),
        (["a -> b", "c"], ("a -> b", "c")),
        ([1, np.int64(2)], ("1", "2")),
    ],
)
def test_edges_may_be_written_in_several_ways(edge, names):
    assert Knowledge(required=[edge]).required == (names,)
    assert Knowledge(beliefs=[[edge, 0.25]]).beliefs == ((*names, 0.25),)


def test_saying_something_twice_changes_nothing():
    once = Knowledge(required=["a -> b"], roots="a", beliefs={"a -> c": 0.3})
    twice = Knowledge(
        required=["a -> b", ("a", "b")],
        roots=["a", "a"],
        beliefs=[("a", "c", 0.3), {"a -> c": 0.3}],
    )
    assert once == twice


def test_a_set_is_read_in_a_fixed_order():
    names = ["forbidden", "edges", "come", "in", "any", "order"]
    assert Knowledge(roots=set(names)).roots == tuple(sorted(names))
    assert Knowledge(required={(n, "x") for n in names}).required[0] == ("any", "x")


YAML = """\
required:
  - Raf -> Mek
  - [Mek, "7"]
forbidden: [no -> Raf]
tiers:
  - [Raf, 7]
  - on
  -
roots: Raf
sinks: []
beliefs:
  Mek -> 007: 0.9
  "a: b -> Raf": 1e-3
"""


def write(tmp_path, text, name="facts.yaml"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_yaml_file_is_read_without_turning_names_into_numbers(tmp_path):
    assert Knowledge.read(write(tmp_path, YAML)) == Knowledge(
        required=(("Raf", "Mek"), ("Mek", "7")),
        forbidden=(("no", "Raf"),),
        tiers=(("Raf", "7"), ("on",)),
        roots=("Raf",),
        beliefs=(("Mek", "007", 0.9), ("a: b", "Raf", 0.001)),
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "required:\nbeliefs: {}\n"])
def test_an_empty_file_says_nothing(tmp_path, text):
    assert Knowledge.read(write(tmp_path, text)) == Knowledge()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("requird: [a -> b]", "no part called 'requird'; did you mean 'required'"),
        ("edges: [a -> b]", "The parts are: required, forbidden, tiers, roots, sinks, beliefs"),
        ("a: [a -> b]", "no part called 'a'. The parts are: required, forbidden"),
        ("required: [a -> b]\nrequired_edges: [a -> c]", "'required' twice"),
        ("required: [a -> b]\nrequired: [a -> c]", "'required' is given twice"),
        ("beliefs:\n  a -> b: 0.2\n  a -> b: 0.3", "'a -> b' is given twice"),
        ("required: [a -> b", "not valid YAML"),
        ("- a -> b", "expected parts such as 'required:'"),
        ("just words", "expected parts such as 'required:'"),
    ],
)
def test_files_with_mistakes_are_refused_by_name(tmp_path, text, message):
    with pytest.raises(KnowledgeError) as error:
        Knowledge.read(write(tmp_path, text))
    assert message in str(error.value)
    assert "'facts.yaml'" in str(error.value)


def test_a_missing_or_unreadable_file_is_refused_by_name(tmp_path):
    with pytest.raises(KnowledgeError, match="nowhere.yaml' does not exist; check the name"):
        Knowledge.read(tmp_path / "nowhere.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KnowledgeError, match="binary.yaml' is not UTF-8 .*byte 0.; save it again"):
        Knowledge.read(tmp_path / "binary.yaml")
    with pytest.raises(KnowledgeError, match="is a folder; name the file in it"):
        Knowledge.read(tmp_path)


def test_other_sources_are_refused():
    with pytest.raises(KnowledgeError, match="cannot be read from int"):
        Knowledge.read(3)


def test_names_of_pgmpy_are_understood():
    expected = Knowledge(
        required=[("smoke", "bronc")],
        forbidden=[("lung", "smoke"), ("tub", "asia")],
        tiers=[["asia", "smoke"], ["lung"]],
    )
    parts = {
        "required_edges": {("smoke", "bronc")},
        "forbidden_edges": {("tub", "asia"), ("lung", "smoke")},
        "temporal_order": [["asia", "smoke"], ["lung"]],
    }
    assert Knowledge.read(parts) == expected
    assert Knowledge.read(SimpleNamespace(**parts, search_space=set())) == expected
    silent = SimpleNamespace(required_edges=set(), forbidden_edges=set(), temporal_order=[[]])
    assert Knowledge.read(silent) == Knowledge()
    silent.search_space = {("a", "b")}
    with pytest.raises(KnowledgeError, match="search space"):
        Knowledge.read(silent)


TETRAD = """\
/knowledge
addtemporal
2* Mek "blood pressure"
1 Raf
// a remark
4

forbiddirect
Raf Akt

requiredirect
Raf Mek
"""


def test_text_files_of_tetrad_are_understood(tmp_path):
    assert Knowledge.read(write(tmp_path, TETRAD, "facts.txt")) == Knowledge(
        required=[("Raf", "Mek")],
        forbidden=[("Mek", "blood pressure"), ("blood pressure", "Mek"), ("Raf", "Akt")],
        tiers=[["Raf"], ["Mek", "blood pressure"]],
    )


@pytest.mark.parametrize("line", ["forbiddengroup", "requiredirect\na b c", "addtemporal\nx y"])
def test_unknown_lines_of_tetrad_are_refused(tmp_path, line):
    with pytest.raises(KnowledgeError, match="line [23] is not understood"):
        Knowledge.read(write(tmp_path, f"/knowledge\n{line}\n", "facts.txt"))


def test_nothing_leads_into_contexts_and_they_precede_all_variables():
    bound = Knowledge(required=["a -> b"]).bind(("a", "b", "c", "d"), np.arange(4) >= 2)
    assert bound.forbidden[:, 2:].all()
    assert bound.precedes[2:, :2].all()
    assert bound.precedes.sum() == 4 + 1
    assert bound.kinds == {"required", "environments"}
    with pytest.raises(KnowledgeError, match="c is an environment: nothing acts on it"):
        Knowledge(required=["a -> c"]).bind(("a", "b", "c"), np.arange(3) == 2)
