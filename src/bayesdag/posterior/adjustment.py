"""Adjustment sets: variables to hold fixed to read an effect off observational data.

A set is valid in a graph when it meets the generalised adjustment criterion, which is sound
and complete: regressing the outcome on the cause and the set then gives the total effect.

References:
    Perković, Textor, Kalisch, Maathuis (2018), Complete graphical characterization and
    construction of adjustment sets, JMLR 18.
    Henckel, Perković, Maathuis (2022), Graphical criteria for efficient total effect
    estimation via adjustment in causal linear models, JRSS B 84.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.errors import InputError
from bayesdag.posterior import column_names, estimates
from bayesdag.posterior.arguments import check_count
from bayesdag.posterior.estimates import Estimate
from bayesdag.posterior.libraries import DataFrame, column, data_frame, rows_in_order
from bayesdag.types import Draws, Weights

Sets = Bool[np.ndarray, "m d"]
Stack = Shaped[np.ndarray, "u d d"]


def adjustment_sets(
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    cause: str,
    outcome: str,
    limit: int = 20,
) -> DataFrame:
    """Sets that allow the effect of `cause` on `outcome` to be estimated, best first.

    Judged are the empty set and, of each drawn graph, the parents of the cause and the set
    that is best for precision; at most the `limit` that most draws propose.
    """
    check_count("limit", limit)
    x, y = column_names.pair(names, cause, outcome)
    different = estimates.distinct(graphs, weights)
    sets = _proposals(different.graphs, different.mass, x, y, limit)
    valid = is_valid(different.graphs, x, y, sets)
    found = [estimates.probability(v[different.index], weights, with_error=True) for v in valid]
    table = data_frame(
        {
            "adjustment set": [tuple(names[int(k)] for k in np.flatnonzero(s)) for s in sets],
            "size": sets.sum(axis=1),
            "probability": [float(f.value) for f in found],
            "error": [float(f.error) for f in found],
        }
    )
    size, probability = (column(table, name) for name in ("size", "probability"))
    return rows_in_order(table, np.lexsort((size, -np.round(probability, 12))))


def adjustment_probability(
    graphs: Draws,
    weights: Weights,
    names: Sequence[str],
    cause: str,
    outcome: str,
    adjust_for: Iterable[str],
    with_error: bool = False,
) -> Estimate:
    """Probability that holding `adjust_for` fixed is enough, and does no harm."""
    x, y = column_names.pair(names, cause, outcome)
    chosen = np.zeros((1, len(names)), dtype=bool)
    chosen[0, [column_names.node(names, name) for name in adjust_for]] = True
    if chosen[0, x] or chosen[0, y]:
        raise InputError(f"an adjustment set cannot hold {cause!r} or {outcome!r} themselves")
    different = estimates.distinct(graphs, weights)
    valid = is_valid(different.graphs, x, y, chosen)[0]
    found = estimates.probability(valid[different.index], weights, with_error)
    return Estimate(float(found.value), float(found.error) if with_error else None)


def is_valid(graphs: Stack, cause: int, outcome: int, sets: Sets) -> Bool[np.ndarray, "m u"]:
    """Whether each set meets the criterion in each graph.

    It must hold no descendant of a node on a causal path, and must block every other path:
    cause and outcome are separated once the first edges of the causal paths are removed.
    """
    edges, reach = np.not_equal(graphs, 0), graph_facts.ancestors(graphs)
    on_path = _on_causal_path(reach, cause, outcome)
    forbidden = on_path | (on_path[:, :, None] & reach).any(axis=1)
    backdoor = edges.copy()
    backdoor[:, cause] &= ~on_path
    above = graph_facts.ancestors(backdoor) | np.eye(edges.shape[-1], dtype=bool)
    harmless = ~(forbidden[None] & sets[:, None]).any(axis=2)
    separated = [_separated(backdoor, above, cause, outcome, chosen) for chosen in sets]
    return harmless & np.array(separated).reshape(harmless.shape)


def are_separated(
    graphs: Stack, first: int, second: int, given: Bool[np.ndarray, " d"]
) -> Bool[np.ndarray, " u"]:
    """Whether two nodes are d-separated by `given` in each graph."""
    above = graph_facts.ancestors(graphs) | np.eye(graphs.shape[-1], dtype=bool)
    return _separated(graphs != 0, above, first, second, given)


def _separated(
    edges: Bool[np.ndarray, "u d d"],
    above: Bool[np.ndarray, "u d d"],
    first: int,
    second: int,
    given: Bool[np.ndarray, " d"],
) -> Bool[np.ndarray, " u"]:
    """Whether the moral graph of the ancestors leaves the two nodes unconnected.

    Its edges join parents and children, and parents of one child; walking it node by node
    needs only products of a vector with a matrix.
    """
    ends = given.copy()
    ends[[first, second]] = True
    relevant = np.any(above[:, :, ends], axis=2)
    inside = (edges & relevant[:, :, None] & relevant[:, None, :]).astype(np.float32)
    open_ = relevant & ~given
    reached = np.zeros(relevant.shape, dtype=bool)
    reached[:, first] = True
    size = 0
    while reached.sum() > size:
        size = reached.sum()
        frontier = reached.astype(np.float32)[:, None, :]
        down = frontier @ inside
        up = (frontier + down) @ inside.swapaxes(1, 2)  # parents, and parents of children
        reached |= ((down + up)[:, 0] > 0) & open_
    return ~reached[:, second]


def _on_causal_path(reach: Bool[np.ndarray, "u d d"], cause: int, outcome: int) -> np.ndarray:
    """Nodes after the cause on a directed path to the outcome, the outcome included."""
    inner = reach[:, cause] & reach[:, :, outcome]
    inner[:, outcome] = reach[:, cause, outcome]
    return inner


def _proposals(
    graphs: Stack, mass: np.ndarray, cause: int, outcome: int, limit: int
) -> Bool[np.ndarray, "m d"]:
    """Different candidate sets, those with the largest mass behind them; the empty one first."""
    edges, reach = np.not_equal(graphs, 0), graph_facts.ancestors(graphs)
    on_path = _on_causal_path(reach, cause, outcome)
    forbidden = on_path | (on_path[:, :, None] & reach).any(axis=1)
    # Henckel's set: other parents of the nodes on causal paths.
    optimal = (edges & on_path[:, None, :]).any(axis=2) & ~forbidden
    both = np.concatenate([edges[:, :, cause], optimal])
    both[:, [cause, outcome]] = False
    sets, index = np.unique(both, axis=0, return_inverse=True)
    support = np.bincount(index.reshape(-1), np.tile(mass, 2))
    order = np.argsort(-np.round(support, 12), kind="stable")
    nonempty = order[sets[order].any(axis=1)][: max(limit - 1, 0)]
    return np.concatenate([np.zeros((1, sets.shape[1]), dtype=bool), sets[nonempty]])
