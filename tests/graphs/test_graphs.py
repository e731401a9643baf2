import subprocess
import sys
import time
from itertools import pairwise
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesdag import graphs
from bayesdag.errors import InputError
from bayesdag.graphs import enumeration
from tests import reference
from tests.strategies import dag_batches, dags, digraphs, relabellings

# Labelled DAGs (OEIS A003024), and Markov equivalence classes (OEIS A007984; Gillispie and
# Perlman, 2001, Enumerating Markov equivalence classes of acyclic digraph models), on d nodes.
NUM_DAGS = {1: 1, 2: 3, 3: 25, 4: 543, 5: 29_281, 6: 3_781_503}
NUM_CLASSES = {1: 1, 2: 2, 3: 11, 4: 185, 5: 8_782, 6: 1_067_825}

# (d, edges, edges that are undirected in the CPDAG): random DAGs, as labelled by both
# ges 1.1.1 (`ges.utils.dag_to_cpdag`) and causal-learn 0.1.4.8 (`dag2cpdag`).
GOLDEN_CPDAGS = [
    (10, "1>2 1>6 2>0 2>5 6>2 6>8 6>9 7>2 8>0 9>0", "1>6 6>8 6>9"),
    (
        10,
        "0>4 1>7 1>8 1>9 2>4 3>0 3>9 4>6 7>4 8>4 8>5 8>6 9>4 9>6 9>7",
        "3>0 1>8 8>5",
    ),
    (
        10,
        "1>0 1>2 1>3 1>6 2>0 2>9 3>0 3>4 3>9 4>0 5>0 5>3 5>6 6>4 6>9 7>0 7>2 7>9 8>0 8>3 8>4 "
        "8>7 8>9 9>0 9>4",
        "8>7",
    ),
    (
        10,
        "0>1 0>2 0>3 0>4 0>5 0>6 0>8 0>9 1>3 1>4 1>8 1>9 2>3 2>4 2>5 2>6 2>7 2>9 3>5 3>8 3>9 "
        "4>5 4>8 5>9 6>1 6>4 6>5 6>7 6>8 6>9 7>3 7>4 7>5 7>8 8>9",
        "0>1 0>2 0>6 6>1 2>6 2>7 6>7",
    ),
]


def parse(d: int, text: str) -> np.ndarray:
    return reference.graph_of([tuple(map(int, edge.split(">"))) for edge in text.split()], d)


def as_set(batch) -> set[bytes]:
    return {graph.astype(np.int8).tobytes() for graph in batch}


def random_dags(seed: int, num: int, d: int, num_edges: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper = np.argwhere(np.triu(np.ones((d, d)), k=1))
    batch = np.zeros((num, d, d), dtype=np.int8)
    for graph in batch:
        graph[tuple(rng.choice(upper, num_edges, replace=False).T)] = 1
        order = rng.permutation(d)
        graph[:] = graph[np.ix_(order, order)]
    return batch


@given(digraphs(loops=True))
def test_a_graph_is_acyclic_when_no_node_reaches_itself(graph):
    assert bool(graphs.is_acyclic(graph)) == reference.is_acyclic(graph)


@given(digraphs(loops=True))
def test_ancestors_are_the_starts_of_directed_paths(graph):
    found = graphs.ancestors(graph)
    for node in range(len(graph)):
        assert set(np.flatnonzero(found[node])) == reference.descendants(graph, node)


@given(digraphs(max_nodes=20))
def test_ancestors_cross_the_boundary_of_a_byte(graph):
    found = graphs.ancestors(graph)
    for node in range(len(graph)):
        assert set(np.flatnonzero(found[node])) == reference.descendants(graph, node)


@given(dags(max_nodes=5))
def test_topological_order_prefers_small_indices(graph):
    assert tuple(graphs.topological_order(graph)) == reference.linear_extensions(graph)[0]


def test_topological_order_names_the_cycle_it_refuses():
    batch = np.stack([parse(4, "0>1"), parse(4, "0>1 3>2 2>1 1>3")])
    with pytest.raises(InputError, match="1 -> 3 -> 2 -> 1"):
        graphs.topological_order(batch)


@given(digraphs(loops=True))
def test_find_cycle_returns_a_shortest_cycle_or_none(graph):
    cycle = graphs.find_cycle(graph)
    closed_walks = [np.trace(np.linalg.matrix_power(graph.astype(int), k + 1)) for k in range(6)]
    if cycle is None:
        assert reference.is_acyclic(graph)
    else:
        assert all(graph[i, j] for i, j in pairwise([*cycle, cycle[0]]))
        assert len(cycle) == 1 + next(k for k, num in enumerate(closed_walks) if num)
        assert cycle[0] == min(cycle)


@given(dags())
def test_markov_blankets_hold_parents_children_and_coparents(graph):
    found = graphs.markov_blankets(graph)
    for node in range(len(graph)):
        assert set(np.flatnonzero(found[node])) == reference.markov_blanket(graph, node)


@given(dags())
def test_skeleton_and_v_structures_agree_with_their_definition(graph):
    edges = reference.edges_of(graph)
    assert reference.edges_of(graphs.skeleton(graph)) == edges | {(j, i) for i, j in edges}
    assert graphs.v_structures(graph) == sorted(reference.v_structures(graph))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_cpdag_is_the_union_of_all_equivalent_dags(d):
    batch = graphs.all_dags(d)
    expected = np.stack([reference.cpdag(graph) for graph in batch])
    np.testing.assert_array_equal(graphs.cpdag(batch), expected)


@given(dags(max_nodes=5, min_nodes=5))
def test_cpdag_is_the_union_of_all_equivalent_dags_with_five_nodes(graph):
    np.testing.assert_array_equal(graphs.cpdag(graph), reference.cpdag(graph))


@pytest.mark.parametrize(("d", "edges", "undirected"), GOLDEN_CPDAGS)
def test_cpdag_agrees_with_other_packages(d, edges, undirected):
    expected = parse(d, edges) | parse(d, undirected).T
    np.testing.assert_array_equal(graphs.cpdag(parse(d, edges)), expected)


@given(relabellings(dags(max_nodes=12)))
def test_relabelling_the_nodes_relabels_the_answer(case):
    graph, renamed, order = case
    for fact in (graphs.cpdag, graphs.ancestors, graphs.markov_blankets, graphs.skeleton):
        np.testing.assert_array_equal(fact(renamed), fact(graph)[np.ix_(order, order)])
    assert graphs.num_linear_extensions(renamed) == graphs.num_linear_extensions(graph)


@given(dag_batches())
def test_a_batch_gives_the_same_as_one_graph_at_a_time(batch):
    facts = (
        graphs.is_acyclic,
        graphs.ancestors,
        graphs.topological_order,
        graphs.markov_blankets,
        graphs.skeleton,
        graphs.cpdag,
    )
    for fact in facts:
        one_by_one = np.stack([fact(graph) for graph in batch])
        np.testing.assert_array_equal(fact(batch), one_by_one)
        np.testing.assert_array_equal(fact(batch[None]), one_by_one[None])


@given(digraphs(loops=True))
def test_the_kind_of_number_does_not_matter(graph):
    weights = np.where(graph, -0.3, 0.0)
    np.testing.assert_array_equal(graphs.ancestors(weights), graphs.ancestors(graph))
    assert graphs.is_acyclic(graph.astype(bool)) == graphs.is_acyclic(jnp.asarray(weights))


def test_hundreds_of_parents_do_not_overflow():
    star = np.zeros((300, 300), dtype=np.int8)
    star[1:, 0] = 1
    assert graphs.is_acyclic(star)
    assert graphs.markov_blankets(star).sum() == 300 * 299
    assert graphs.cpdag(star).sum() == 299
    star[0, 299] = 1
    assert not graphs.is_acyclic(star)


def test_empty_batches_keep_their_shape():
    empty = np.zeros((0, 3, 3), dtype=np.int8)
    assert graphs.is_acyclic(empty).shape == (0,)
    assert graphs.ancestors(empty).shape == graphs.cpdag(empty).shape == (0, 3, 3)


@given(dags(max_nodes=4, min_nodes=4), dags(max_nodes=4, min_nodes=4))
def test_dags_are_in_one_class_when_skeleton_and_v_structures_agree(first, second):
    alike = np.array_equal(graphs.skeleton(first), graphs.skeleton(second))
    alike &= reference.v_structures(first) == reference.v_structures(second)
    assert bool(graphs.same_class(first, second)) == alike
    members = np.stack(reference.equivalent_dags(first))
    assert graphs.same_class(first, members).all()


@given(dag_batches(max_nodes=3))
def test_unique_graphs_can_be_put_back(batch):
    distinct, index = graphs.unique_graphs(batch)
    np.testing.assert_array_equal(distinct[index], batch)
    assert len(as_set(distinct)) == len(distinct) == len(as_set(batch))


@given(dag_batches(max_nodes=3))
def test_equivalence_classes_hold_the_cpdag_of_every_graph(batch):
    classes, index = graphs.equivalence_classes(batch[None])
    np.testing.assert_array_equal(classes[index], graphs.cpdag(batch)[None])
    assert len(as_set(classes)) == len(classes)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_number_of_equivalence_classes(d):
    assert len(graphs.equivalence_classes(graphs.all_dags(d))[0]) == NUM_CLASSES[d]


@pytest.mark.slow
def test_number_of_equivalence_classes_with_six_nodes():
    classes = {
        label.tobytes()
        for piece in graphs.iterate_dags(6, 50_000)
        for label in np.packbits(graphs.cpdag(piece).reshape(-1, 36), axis=1)
    }
    assert len(classes) == NUM_CLASSES[6]


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_all_dags_are_the_acyclic_ones_among_all_graphs(d):
    acyclic = [graph for graph in reference.all_digraphs(d) if reference.is_acyclic(graph)]
    assert as_set(graphs.all_dags(d)) == as_set(acyclic)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_every_dag_is_listed_once(d):
    listed = graphs.all_dags(d)
    assert len(listed) == len(as_set(listed)) == NUM_DAGS[d]
    assert listed.dtype == np.int8
    assert graphs.is_acyclic(listed).all()


@given(d=st.integers(1, 4), batch=st.integers(1, 600))
def test_all_pieces_but_the_last_have_the_size_asked_for(d, batch):
    pieces = list(graphs.iterate_dags(d, batch))
    assert all(len(piece) == batch for piece in pieces[:-1])
    assert 1 <= len(pieces[-1]) <= batch
    np.testing.assert_array_equal(np.concatenate(pieces), graphs.all_dags(d))


def test_enumerations_that_cannot_end_are_refused():
    with pytest.raises(InputError, match="iterate_dags streams up to 6"):
        graphs.all_dags(6)
    for d in (0, 7):
        with pytest.raises(InputError, match=f"1 to 6 nodes, not {d}"):
            next(graphs.iterate_dags(d))


@pytest.mark.slow
def test_six_nodes_stream_within_two_gigabytes():
    program = (
        "import resource; from bayesdag.graphs import iterate_dags;"
        "num = sum(len(piece) for piece in iterate_dags(6, 4096));"
        "print(num, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    num, peak_kilobytes = map(int, run.stdout.split())
    assert num == NUM_DAGS[6]
    assert peak_kilobytes < 2_000_000


@given(dags(max_nodes=6))
def test_linear_extensions_are_counted_exactly(graph):
    assert graphs.num_linear_extensions(graph) == len(reference.linear_extensions(graph))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_counts_add_up_to_pairs_of_an_order_and_a_subgraph(d):
    total = sum(graphs.num_linear_extensions(graph) for graph in graphs.all_dags(d))
    assert total == factorial(d) * 2 ** (d * (d - 1) // 2)


# Boolean lattices: OEIS A046873.
@pytest.mark.parametrize(("rank", "expected"), [(1, 1), (2, 2), (3, 48), (4, 1_680_384)])
def test_linear_extensions_of_boolean_lattices(rank, expected):
    sets = range(2**rank)
    lattice = np.array([[a != b and a & b == a for b in sets] for a in sets])
    assert graphs.num_linear_extensions(lattice) == expected


def test_linear_extensions_of_extreme_graphs():
    assert graphs.num_linear_extensions(np.zeros((100, 100))) == factorial(100)
    assert graphs.num_linear_extensions(np.triu(np.ones((100, 100)), k=1)) == 1
    assert graphs.num_linear_extensions(np.eye(100, k=1)) == 1


def test_counts_that_would_not_end_are_refused(monkeypatch):
    with pytest.raises(InputError, match="200 nodes are too many"):
        graphs.num_linear_extensions(np.zeros((200, 200)))
    monkeypatch.setattr(enumeration, "MAX_SUBSETS", 5)
    with pytest.raises(InputError, match="6 nodes are too many"):
        graphs.num_linear_extensions(parse(6, "0>3 0>4 1>4 1>5 2>5 2>3"))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_rank_matrix_sorts_nodes_by_potential(values):
    potentials = np.array(values, dtype=np.float32)
    matrix = np.asarray(graphs.rank_matrix(jnp.asarray(potentials)))
    assert set(matrix.ravel()) <= {0.0, 1.0}
    assert (matrix.sum(axis=0) == 1).all()
    assert (matrix.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(potentials @ matrix, np.sort(potentials))


def test_rank_matrix_turns_a_triangle_into_the_order_of_potentials(key):
    potentials = jax.random.normal(key, (7,))
    sigma = jax.jit(graphs.rank_matrix)(potentials)
    below = jnp.tril(jnp.ones((7, 7)), k=-1)
    above = potentials[:, None] > potentials[None, :]
    np.testing.assert_array_equal(sigma @ below @ sigma.T, above)
    assert sigma.dtype == potentials.dtype


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fact", "seconds"),
    [
        (graphs.is_acyclic, 0.5),
        (graphs.ancestors, 0.5),
        (graphs.markov_blankets, 0.5),
        (graphs.topological_order, 0.5),
        (graphs.cpdag, 2),
        (graphs.equivalence_classes, 2),
    ],
)
def test_a_thousand_graphs_with_a_hundred_nodes_are_quick(fact, seconds, seed):
    batch = random_dags(seed, num=1000, d=100, num_edges=200)
    start = time.process_time()  # other programs may be running
    fact(batch)
    assert time.process_time() - start < seconds
