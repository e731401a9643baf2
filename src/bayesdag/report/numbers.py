"""Numbers as a page carries them: few digits, nothing that JSON does not know."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

DIGITS = 4
PROBABILITY_DIGITS = 4
LEAST_PROBABILITY = 5e-5  # smaller ones are shown as 0


def short(values: Any, digits: int = DIGITS) -> list[float | None]:
    """A list with so many significant digits; None where a number does not exist."""
    return [_short(float(value), digits) for value in np.asarray(values).reshape(-1)]


def sparse(matrix: np.ndarray) -> list[tuple[int, int, float]]:
    """Entries of a matrix of probabilities that are not nearly 0, as (i, j, probability)."""
    rows, columns = np.nonzero(matrix > LEAST_PROBABILITY)
    return [
        (int(i), int(j), round(float(matrix[i, j]), PROBABILITY_DIGITS))
        for i, j in zip(rows, columns, strict=True)
    ]


def script_json(value: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element whatever strings it holds."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    # Only these could end the element or open a comment in it.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def figure(value: float | None, digits: int = 3) -> str:
    """A number as people read it; a dash where there is none.

    >>> figure(0.12345), figure(12345.6), figure(None)
    ('0.123', '12346', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 10**digits:
        return f"{value:.0f}" if abs(value) < 1e7 else f"{value:.{digits}g}"
    return f"{value:.{digits}g}"


def probability(value: float | None) -> str:
    """A probability with as many digits as draws can tell.

    >>> probability(0.99996), probability(0.5), probability(0.00001)
    ('> 0.999', '0.500', '< 0.001')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if 0 < value < 0.001:
        return "< 0.001"
    return "> 0.999" if 0.999 < value < 1 else f"{value:.3f}"


def _short(value: float, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None
