"""Could a method find the order of the variables from their scale alone?

In simulated data causes often have a smaller variance than their effects, and are predicted
less well from the rest. A method that sorts by either looks clever there and fails on data
in other units.

References:
    Reisach, Seiler, Weichwald, "Beware of the simulated DAG!", NeurIPS 2021.
    Reisach, Tami, Seiler, Chambaz, Weichwald, "A scale-invariant sorting criterion", NeurIPS 2023.
"""

import numpy as np
from jaxtyping import Float, Shaped


def varsortability(values: Float[np.ndarray, "n d"], graph: Shaped[np.ndarray, "d d"]) -> float:
    """Share of directed paths along which the variance grows; 1/2 is chance.

    A pair counts once for each length at which a path connects it; ties count half. NaN for
    a graph without edges.
    """
    return _alignment(values.var(axis=0), graph)


def r2_sortability(values: Float[np.ndarray, "n d"], graph: Shaped[np.ndarray, "d d"]) -> float:
    """Share of directed paths along which R² on all other variables grows; 1/2 is chance."""
    return _alignment(r_squared(values), graph)


def r_squared(values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " d"]:
    """Share of each column's variance that is linear in all the others.

    From the diagonal of the inverse correlation matrix. Eigenvalues are kept away from zero,
    so that a column determined by others gets 1 and the rest their own number.
    """
    centred = values - values.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    standard = centred / np.where(deviation > 0, deviation, 1.0)
    eigenvalues, vectors = np.linalg.eigh(standard.T @ standard / len(values))
    floor = len(eigenvalues) * np.finfo(np.float64).eps * eigenvalues[-1]
    inverse_diagonal = (vectors**2 / np.maximum(eigenvalues, floor)).sum(axis=1)
    return np.where(deviation > 0, np.clip(1 - 1 / inverse_diagonal, 0.0, 1.0), 0.0)


def _alignment(criterion: Float[np.ndarray, " d"], graph: Shaped[np.ndarray, "d d"]) -> float:
    edges = (graph != 0).astype(np.float64)
    difference = criterion[None, :] - criterion[:, None]
    credit = np.where(
        np.isclose(criterion[None, :], criterion[:, None], rtol=1e-9, atol=0.0), 0.5, difference > 0
    )
    connected, total, ordered = edges, 0.0, 0.0
    for _ in range(len(edges)):
        total += connected.sum()
        ordered += (connected * credit).sum()
        connected = (connected @ edges > 0).astype(np.float64)
    return float(ordered / total) if total else float("nan")
