"""Sums over every DAG, one by one: the reference for the dynamic programs."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int8

from bayesdag import graphs
from bayesdag.exact.tables import Tables
from bayesdag.graphs.bitsets import parent_masks


class EnumeratedSums(NamedTuple):
    """Marginals of the distribution that the tables define.

    Attributes:
        log_total: log of the sum over everything.
        edge: P(i -> j).
        ancestor: P(a path leads from i to j).
    """

    log_total: float
    edge: Float[np.ndarray, "d d"]
    ancestor: Float[np.ndarray, "d d"]


def log_weights(
    tables: Tables, order_modular: bool
) -> Iterator[tuple[Int8[np.ndarray, "b d d"], Float[np.ndarray, " b"]]]:
    """All DAGs with their log weights, streamed.

    A DAG weighs Π_i exp(tables[i, pa_i]), times the number of its orders when `order_modular`.
    """
    d = len(tables)
    for dags in graphs.iterate_dags(d):
        weight = tables[np.arange(d), parent_masks(dags)].sum(axis=1)
        if order_modular:
            weight = weight + np.log(graphs.num_linear_extensions_each(dags))
        yield dags, weight


def sums(tables: Tables, order_modular: bool) -> EnumeratedSums:
    """Total and marginals by adding up all DAGs."""
    d = len(tables)
    log_total, edge, ancestor = -np.inf, np.zeros((d, d)), np.zeros((d, d))
    for dags, log_weight in log_weights(tables, order_modular):
        grown = np.logaddexp(log_total, np.logaddexp.reduce(log_weight))
        if grown == -np.inf:
            continue
        # What was summed so far is rescaled to the new total.
        kept, new = np.exp(log_total - grown), np.exp(log_weight - grown)
        edge = kept * edge + np.tensordot(new, dags, axes=1)
        ancestor = kept * ancestor + np.tensordot(new, graphs.ancestors(dags), axes=1)
        log_total = grown
    return EnumeratedSums(float(log_total), edge, ancestor)
