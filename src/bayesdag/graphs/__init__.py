"""Facts about adjacency matrices: order, ancestry, equivalence, and which DAGs there are."""

from bayesdag.graphs.adjacency import (
    ancestors,
    find_cycle,
    is_acyclic,
    markov_blankets,
    rank_matrix,
    skeleton,
    topological_order,
    unique_graphs,
)
from bayesdag.graphs.enumeration import (
    all_dags,
    iterate_dags,
    num_linear_extensions,
    num_linear_extensions_each,
)
from bayesdag.graphs.equivalence import cpdag, equivalence_classes, same_class, v_structures

__all__ = [
    "all_dags",
    "ancestors",
    "cpdag",
    "equivalence_classes",
    "find_cycle",
    "is_acyclic",
    "iterate_dags",
    "markov_blankets",
    "num_linear_extensions",
    "num_linear_extensions_each",
    "rank_matrix",
    "same_class",
    "skeleton",
    "topological_order",
    "unique_graphs",
    "v_structures",
]
