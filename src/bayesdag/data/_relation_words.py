"""Relations between columns in words: `s = a + b`, `bmi = weight / height^2`.

A weight is written as a simple number where its standard error allows it.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.data._exact_fit import least_squares
from bayesdag.data._functional_relations import polynomial

_LARGEST_DENOMINATOR = 8
_MOST_TERMS = 4  # in a formula; a longer one helps nobody


class _Form(NamedTuple):
    """One way to write a relation, and how simple it is (the smaller the simpler)."""

    cost: tuple[int, ...]
    words: str


def sum_in_words(
    values: Float[np.ndarray, "n k"], names: Sequence[str], fixed: Sequence[float] = ()
) -> str:
    """A linear relation between all columns, solved for the one that makes it simplest.

    Args:
        fixed: factors of all columns whose sum is constant, where rounding keeps a fit from
            showing them.
    """
    solved = [_solved(values, j, fixed) for j in range(len(names))]
    return min(_sum_form(one, names, j) for j, one in enumerate(solved)).words


def product_in_words(
    logs: Float[np.ndarray, "n k"], names: Sequence[str], fixed: Sequence[float] = ()
) -> str:
    """A linear relation between logarithms, as products and powers of the columns."""
    solved = [_solved(logs, j, fixed) for j in range(len(names))]
    return min(_product_form(one, names, j) for j, one in enumerate(solved)).words


class _Solved(NamedTuple):
    """A relation solved for one column: weights of the others, a constant, and its error."""

    weights: list[float]
    num_odd: int
    constant: float
    error: float


def _solved(values: np.ndarray, place: int, fixed: Sequence[float]) -> _Solved:
    others = np.delete(np.arange(values.shape[1]), place)
    y, x = values[:, place], values[:, others]
    if len(fixed):
        weights = -np.delete(fixed, place) / fixed[place]
        left = y - x @ weights
        return _Solved(weights.tolist(), 0, float(np.median(left)), float(left.std()))
    fit = least_squares(x, y)
    exact = [_simple(w, e) for w, e in zip(fit.weights[1:], fit.error[1:], strict=True)]
    weights = [w if n is None else n for w, n in zip(fit.weights[1:], exact, strict=True)]
    odd = sum(n is None for n in exact)
    return _Solved(weights, odd, float(fit.weights[0]), float(fit.error[0]))


def _sum_form(solved: _Solved, names: Sequence[str], place: int) -> _Form:
    weights, odd, constant, error = solved
    simple = _simple(constant, error)
    constant = constant if simple is None else simple
    negative = sum(w < 0 for w in weights)
    cost = (odd, sum(abs(w) != 1 for w in weights), negative, -place)
    if constant != 0 and all(w == -1 for w in weights):
        return _Form(cost, f"{' + '.join(names)} = {constant:.4g}")
    others = [name for j, name in enumerate(names) if j != place]
    terms = list(zip(weights, others, strict=True))
    return _Form(cost, f"{names[place]} = {_added(terms, constant)}")


def _product_form(solved: _Solved, names: Sequence[str], place: int) -> _Form:
    powers, odd, constant, error = solved
    factor = np.exp(constant)
    simple = _simple(factor, factor * error)
    factor = factor if simple is None else simple
    plain = all(p == 1 for p in powers)
    cost = (odd, int(not plain), sum(abs(p) != 1 for p in powers), -place)
    others = [name for j, name in enumerate(names) if j != place]
    up = [_power(o, p) for o, p in zip(others, powers, strict=True) if p > 0]
    down = [_power(o, -p) for o, p in zip(others, powers, strict=True) if p < 0]
    up = up if factor == 1 and up else [f"{factor:.4g}", *up]
    return _Form(cost, " / ".join([f"{names[place]} = {' * '.join(up)}", *down]))


def quadratic_in_words(
    x: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"], names: Sequence[str], name: str
) -> str | None:
    """A polynomial of degree two with few simple weights; None where it has others."""
    fit = polynomial(x, y)
    pairs = combinations_with_replacement(names, 2)
    terms = [*names, *(f"{a}^2" if a == b else f"{a} * {b}" for a, b in pairs)]
    found = [_simple(w, e) for w, e in zip(fit.weights, fit.error, strict=True)]
    weights = [weight for weight in found if weight is not None]
    if len(weights) < len(found) or np.count_nonzero(weights) > _MOST_TERMS:
        return None
    return f"{name} = {_added(list(zip(weights[1:], terms, strict=True)), weights[0])}"


def _power(name: str, power: float) -> str:
    return name if power == 1 else f"{name}^{power:.4g}"


def _added(terms: list[tuple[float, str]], constant: float) -> str:
    """Terms with their weights, then the constant."""
    words = ""
    for weight, name in [*terms, (constant, "")]:
        if weight == 0:
            continue
        size = "" if abs(weight) == 1 and name else f"{abs(weight):.4g}"
        sign = " - " if weight < 0 else " + "
        words += (sign if words else sign.strip(" +")) + " ".join(filter(None, (size, name)))
    return words or "0"


def _simple(value: float, error: float) -> float | None:
    """The integer, small fraction or short decimal that `value` stands for, if it does."""
    room = 4 * error + 1e-9 * abs(value)
    if abs(value) <= max(4 * error, 1e-12):
        return 0.0
    nearest = Fraction(float(value)).limit_denominator(_LARGEST_DENOMINATOR)
    rounded = (float(f"{value:.{digits}g}") for digits in (1, 2, 4))
    for simple in (float(nearest), *rounded):
        if simple and abs(simple - value) <= room:
            return simple
    return None
