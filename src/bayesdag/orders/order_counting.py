"""From draws that count a graph once for each of its orders to draws that count it once."""

import math

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag.errors import InputError
from bayesdag.graphs import num_linear_extensions, unique_graphs
from bayesdag.posterior.estimates import kish_ess

# Below this many effective draws (or a tenth of few) re-weighting is refused: a few graphs
# would stand for all.
MIN_EFFECTIVE = 100


def log_num_orders(graph: Shaped[np.ndarray, "d d"]) -> float:
    """Log number of the orders of a graph; refused where they cannot be counted."""
    try:
        return math.log(num_linear_extensions(graph))
    except InputError as error:
        raise InputError(
            f"{error}, so that no draw can be re-weighted to count each graph once; keep "
            "order_modular=True, or use fewer variables"
        ) from None


def graph_modular_weights(
    graphs: Bool[np.ndarray, "s d d"], log_change: Float[np.ndarray, " s"]
) -> tuple[Float[np.ndarray, " s"], float]:
    """Weights under which each graph counts once, and their effective number of draws.

    Args:
        graphs: drawn under the order-modular prior.
        log_change: log ratio of the two priors' weights, the number of orders aside.
    """
    distinct, which = unique_graphs(graphs)
    log_orders = np.array([log_num_orders(graph) for graph in distinct])
    log_weight = log_change - log_orders[which]
    weights = np.exp(log_weight - log_weight.max())
    weights = weights / weights.sum()
    effective = float(kish_ess(weights))
    needed = min(MIN_EFFECTIVE, len(weights) / 10)
    if effective < needed:
        raise InputError(
            f"counting each graph once leaves {effective:.0f} effective draws of {len(weights)}, "
            f"fewer than {needed:.0f}: graphs with few orders are too rare among the draws. Keep "
            "order_modular=True, raise num_samples, or use method='exact' where d is small"
        )
    return weights, effective
