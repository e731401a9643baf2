"""Cells that were not measured: where they are, and what stands there until they are imputed."""

import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.data.kinds import Kind
from bayesdag.errors import BayesdagWarning, InputError

# Fraction of a column's cells from which on little is left to learn from.
MOSTLY_MISSING = 0.5

ASSUMPTION = (
    "missing at random: whether a cell is missing may depend on what was measured in its row, "
    "not on the value that is missing"
)


def filled(
    values: Float[np.ndarray, "n d"], kinds: Sequence[Kind], names: Sequence[str]
) -> tuple[Float[np.ndarray, "n d"], Bool[np.ndarray, "n d"] | None]:
    """Values with a placeholder for every NaN, and where they are; None where there is none."""
    missing = np.isnan(values)
    if not missing.any():
        return values, None
    whole = values.copy()
    for j in np.flatnonzero(missing.any(axis=0)).tolist():
        present = values[~missing[:, j], j]
        if not present.size:
            raise InputError(
                f"column {names[j]!r} has no value in any row; drop it (drop, --drop {names[j]})"
            )
        whole[missing[:, j], j] = placeholder(present, kinds[j])
    return whole, missing


def placeholder(present: Float[np.ndarray, " m"], kind: Kind) -> float:
    """A value that occurs in the column: its most frequent code, or its median."""
    if kind.is_discrete:
        codes, counts = np.unique(present, return_counts=True)
        return float(codes[np.argmax(counts)])
    return float(np.percentile(present, 50, method="closest_observation"))


def warn_of_gaps(missing: Bool[np.ndarray, "n d"], names: Sequence[str]) -> None:
    """Says how much is missing where, and what is assumed of it."""
    fraction = missing.mean(axis=0)
    order = np.argsort(-fraction, kind="stable").tolist()
    found = [f"{names[j]!r}: {fraction[j]:.1%}" for j in order if fraction[j] > 0]
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    mostly = [repr(names[j]) for j in np.flatnonzero(fraction > MOSTLY_MISSING).tolist()]
    advice = (
        f"; of {', '.join(mostly)} more than half is missing: consider leaving it out"
        if mostly
        else ""
    )
    warnings.warn(
        f"{missing.sum()} of {missing.size} cells are missing ({shown}); a fit imputes them from "
        f"its model and takes them as {ASSUMPTION}{advice}",
        BayesdagWarning,
        stacklevel=4,
    )


def refuse_set(
    missing: Bool[np.ndarray, "n d"],
    interventions: Bool[np.ndarray, "n d"] | None,
    names: Sequence[str],
) -> None:
    """Refuses cells that were set by an experimenter, to an unknown value."""
    if interventions is None or not (missing & interventions).any():
        return
    row, column = np.argwhere(missing & interventions)[0].tolist()
    raise InputError(
        f"column {names[column]!r} was set in row {row + 1}, and its value is missing; fill it in, "
        "or drop the row"
    )
