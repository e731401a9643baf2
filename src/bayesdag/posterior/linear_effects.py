"""Effects of every variable on every other in linear models, all at once.

In a linear model a unit more of the cause changes the outcome by the sum over directed paths of
the products of their weights: an entry of (I - B)⁻¹ for the matrix B of weights. One inverse per
draw answers for all pairs, where `effects.effect` works pair by pair.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesdag import graphs as graph_facts
from bayesdag.errors import InputError
from bayesdag.posterior import column_names
from bayesdag.posterior.effect_result import Effect
from bayesdag.posterior.levels import Columns, usual_levels
from bayesdag.posterior.simulation import Ensemble


def total_effects(ensemble: Ensemble) -> Float[np.ndarray, "chain draw d d"]:
    """Change of column j for one unit more of column i, in original units, draw by draw."""
    if not ensemble.is_linear:
        raise InputError("total effects are matrices in linear models only; use effect instead")
    weights: np.ndarray = np.asarray(ensemble.params["mechanism"]["weights"], dtype=float)
    identity = np.eye(len(ensemble.names))
    scale = ensemble.model.scaling.scale
    linalg: Any = np.linalg  # typed for matrices, not for stacks of them
    inverse = linalg.inv(identity - weights * (ensemble.graphs != 0))
    return (inverse - identity) * scale[None, :] / scale[:, None]


def linear_effects(
    ensemble: Ensemble, columns: Columns, pairs: Sequence[tuple[str, str]]
) -> list[Effect]:
    """What `effects.effect` gives for each (cause, outcome), at the usual levels of the cause."""
    total, levels = total_effects(ensemble), usual_levels(columns)
    different, index = graph_facts.unique_graphs(ensemble.graphs)
    reach, parents = graph_facts.ancestors(different), _fingerprints(different)
    found: list[Effect] = []
    for cause, outcome in pairs:
        i, j = column_names.pair(ensemble.names, cause, outcome)
        structure = _structures(reach, parents, i, j)[index]
        change = levels[cause][1] - levels[cause][0]
        found.append(
            Effect(
                cause=cause,
                outcome=outcome,
                values=levels[cause],
                given={},
                draws=np.where(structure >= 0, total[:, :, i, j] * change, 0.0),
                weights=ensemble.weights,
                structure=structure,
            )
        )
    return found


def _fingerprints(graphs: np.ndarray) -> Shaped[np.ndarray, "u d"]:
    """A number for the parents of each node: equal for equal sets.

    Sums of random 64-bit numbers; different sets share one with probability 2⁻⁶⁴.
    """
    d = graphs.shape[-1]
    numbers = np.random.default_rng(0).integers(0, 2**64, (d, d), dtype=np.uint64)
    return np.einsum("uij,ij->uj", (graphs != 0).astype(np.uint64), numbers)


def _structures(
    reach: np.ndarray, parents: np.ndarray, cause: int, outcome: int
) -> Int[np.ndarray, " u"]:
    """Number of the structure that carries the effect, as `effects.carriers` defines it."""
    on_path = reach[:, cause] & reach[:, :, outcome]
    on_path[:, outcome] = reach[:, cause, outcome]
    sums = np.where(on_path, parents, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    _, number = np.unique(sums, return_inverse=True)
    return np.where(reach[:, cause, outcome], number, -1)
