"""From trained families to the parameters of a causal model, with their uncertainty."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from bayesdag.scores._neural import crossfit
from bayesdag.scores._neural.fold_fits import FoldFits
from bayesdag.scores._neural.folds import SIZES, Folds, families_by_size, on_host
from bayesdag.scores._neural.function_classes import KNOTS, FunctionClass
from bayesdag.scores._neural.gaussian_process import NUM_UNITS
from bayesdag.scores._neural.laplace import JITTER
from bayesdag.scores._neural.network_cache import Family, TrainedFamily, arrays_of
from bayesdag.scores._neural.noise_forms import NoiseForm
from bayesdag.scores._neural.noise_shape import SHAPES
from bayesdag.scores._neural.normal_scores import NormalScores
from bayesdag.types import Params

# Leaves with a dimension for the parents, filled up to the size of the largest set.
_BY_PARENT = (
    *("members", "first", "slopes", "kinks", "knots"),
    *("scale_slopes", "scale_kinks", "process_root", "process_mean"),
)
_SQUARE = ("process_root",)  # with two of them
_NOISE = ("log_scale", "log_degrees", "log_skew")
_CONSTANT = "scale_intercept"


class Drawing(NamedTuple):
    """What parameters of families are drawn from.

    Attributes:
        folds: the rows.
        margins: where the columns of the folds come from.
        num_rows: number of the rows.
        width: hidden units.
        forms: of the noise.
    """

    folds: Folds
    margins: NormalScores
    num_rows: int
    width: int
    forms: tuple[NoiseForm, ...]


def assembled(
    rng: np.random.Generator,
    given: Drawing,
    families: dict[Family, TrainedFamily],
    which: Int[np.ndarray, " m"],
    shape: tuple[int, int],
    warped: Bool[np.ndarray, " m"],
) -> Params:
    """Parameters of s graphs with d nodes each.

    Args:
        which: the family of every node.
        warped: whether it is one of normal scores.
    """
    # At least the smallest compiled size, so that results of several runs mostly fit together.
    widest = max(SIZES[0], *(len(family.members) for family in families.values()))
    simple = _simple_fits(given.folds, list(families))
    pieces: dict[str, np.ndarray] = {}
    for number, (name, family) in enumerate(families.items()):
        asked = np.flatnonzero(which == number)
        drawn = _drawn(rng, given, family, simple[name], len(asked))
        for leaf_name, leaf in drawn.items():
            leaf = _widened(leaf_name, leaf, widest)
            if leaf_name not in pieces:
                pieces[leaf_name] = np.zeros((len(which), *leaf.shape[1:]), leaf.dtype)
            pieces[leaf_name][asked] = leaf
    pieces |= _warps(given.margins, warped)
    folded = {name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in pieces.items()}
    noise = {name: folded.pop(name) for name in _NOISE}
    return {"mechanism": folded, "noise": noise}


def _warps(margins: NormalScores, warped: Bool[np.ndarray, " m"]) -> dict[str, np.ndarray]:
    """Tables of the monotone functions behind normal scores, where any column has some."""
    if not len(margins.warped):
        return {}
    num, d = len(warped), len(margins.table)
    return {
        "warped": warped.astype(np.float32),
        "warp": np.tile(margins.table.astype(np.float32), (num // d, 1)),
        "reach": np.full(num, margins.grid[-1], np.float32),
    }


def _simple_fits(folds: Folds, families: list[Family]) -> dict[Family, tuple[FoldFits, ...]]:
    """Regressions of these families, class by class; leading dimension: fold."""
    folds, found = on_host(folds), {}
    for which, group in families_by_size(folds, *arrays_of(families, folds.values.shape[2])):
        by_class = crossfit.simple_fits(folds, group)
        for row, k in enumerate(which.tolist()):
            found[families[k]] = jax.tree.map(lambda leaf, r=row: leaf[r], by_class)
    return found


def _drawn(
    rng: np.random.Generator,
    given: Drawing,
    family: TrainedFamily,
    simple: tuple[FoldFits, ...],
    num: int,
) -> dict[str, np.ndarray]:
    """Draws of one family, in engine units.

    Class of the function and form of the noise are drawn with the probability that the rows
    give them.
    """
    evidence = family.log_evidence_of_fitted(given.forms)
    chosen = rng.choice(evidence.size, size=num, p=softmax(evidence.reshape(-1)))
    classes, forms = np.unravel_index(chosen, evidence.shape)
    forms = np.array(given.forms)[forms]
    result = _empty(given, family, num)
    for kind, fits in zip(FunctionClass, (family.folds, *simple), strict=True):
        rows = np.flatnonzero(classes == kind)
        if len(rows):
            drawn = _of_class(rng, kind, fits, forms[rows], given.num_rows)
            if kind == FunctionClass.GAUSSIAN_PROCESS:
                drawn |= _process_inputs(simple[0], family.used)
            for name, leaf in drawn.items():
                result[name][rows] = _widened(name, leaf, len(family.members))
    # Places that are filled up repeat a column, which may be a parent at its own place.
    result["slopes"] *= family.used
    result["process"] *= family.used.any()
    return result


def _process_inputs(line: FoldFits, used: Float[np.ndarray, " k"]) -> dict[str, np.ndarray]:
    """How the random units of a Gaussian process see their inputs: whitened, as its line does."""
    root = np.linalg.inv(np.asarray(line.whitening, float)[0]).T
    used = used[: len(root)]
    return {
        "process_root": (root * used[:, None] * used[None, :])[None],
        "process_mean": np.asarray(line.input_mean)[:1] * used,
    }


def _empty(given: Drawing, family: TrainedFamily, num: int) -> dict[str, np.ndarray]:
    """Zeros in the layout of the mechanism; members and knots as the family has them."""
    k, h, m = len(family.members), given.width, len(KNOTS)
    sizes = {
        **{"first": (k, h), "bias": (h,), "second": (h,), "slopes": (k,), "kinks": (k, m)},
        **{"process": (NUM_UNITS,), "process_root": (k, k), "process_mean": (k,)},
        **{"intercept": (), "scale_units": (h,), "scale_slopes": (k,), "scale_kinks": (k, m)},
        **{"scale_intercept": ()},
        **dict.fromkeys(_NOISE, ()),
    }
    result = {name: np.zeros((num, *size), np.float32) for name, size in sizes.items()}
    knots = np.asarray(given.folds.knots)[family.members]
    # Places that are filled up may name an empty column; any other serves as well.
    origin = given.margins.origin
    members = origin[np.minimum(family.members, len(origin) - 1)]
    return {
        "members": np.tile(members.astype(np.int32), (num, 1)),
        "knots": np.tile(knots.astype(np.float32), (num, 1, 1)),
        **result,
    }


def _of_class(
    rng: np.random.Generator,
    kind: FunctionClass,
    fits: Any,  # FoldFits of NumPy arrays, as all that is cached
    forms: Int[np.ndarray, " r"],
    num_rows: int,
) -> dict[str, np.ndarray]:
    """Functions of one class: that of a random fold, its last layer varied.

    With A the curvature at the fit, the last layer given the hidden units is
    N(second, σ² A₂₂⁻¹); `last` is A₂₂.
    """
    at = rng.integers(len(fits.spread), size=len(forms))
    first, bias, second = (np.asarray(leaf, float)[at] for leaf in fits.networks)
    h, spread = first.shape[2], fits.spread[at].astype(float)
    variation = np.sqrt(num_rows / rng.chisquare(num_rows, size=len(forms)))
    scale = fits.noise.scale[at, forms] * variation
    shape = fits.noise.shape[at, forms]
    noise = rng.standard_normal(second.shape)
    for fold in np.unique(at).tolist():
        rows = at == fold
        noise[rows] = noise[rows] @ _in_engine_units(fits, fold, h).T
    noise *= (scale / spread)[:, None]
    second = (second + noise) * spread[:, None]
    second[:, -1] += fits.centre[at]
    factor = np.asarray(fits.noise.log_scale_weights)[at, forms]
    hidden = {"first": first, "bias": bias} if h else {}
    return {
        **hidden,
        **_named(kind, second, h, ("second", "slopes", "kinks", "process", "intercept")),
        **_named(kind, factor, h, ("scale_units", "scale_slopes", "scale_kinks", "", _CONSTANT)),
        "log_scale": np.log(scale),
        "log_degrees": np.log(SHAPES.degrees)[shape],
        "log_skew": np.log(SHAPES.skew)[shape],
    }


def _in_engine_units(fits: Any, fold: int, h: int) -> Float[np.ndarray, "q q"]:
    """R with R Rᵀ the covariance of the last layer, in units of the noise, in engine units."""
    root = _inverse_root(np.asarray(fits.last[fold], float))
    inputs = slice(h, len(root) - 1)
    root[inputs] = np.linalg.solve(fits.whitening[fold].astype(float).T, root[inputs])
    # Whitened inputs are centred: a steeper slope turns the function about their mean.
    root[-1] -= fits.input_mean[fold] @ root[inputs]
    return root


def _named(
    kind: FunctionClass, weights: Float[np.ndarray, "r q"], h: int, names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Weights of hidden units, inputs, kinks, random units and the constant, under their names."""
    units, slopes, kinks, process, constant = names
    found = {constant: weights[:, -1]}
    if kind == FunctionClass.NETWORK:
        return found | {units: weights[:, :h], slopes: weights[:, h:-1]}
    if kind == FunctionClass.LINEAR:
        return found | {slopes: weights[:, :-1]}
    if kind == FunctionClass.GAUSSIAN_PROCESS:
        found |= {process: weights[:, -1 - NUM_UNITS : -1]} if process else {}
        weights = weights[:, :-NUM_UNITS]
    k = (weights.shape[1] - 1) // (1 + len(KNOTS))
    end = k * (1 + len(KNOTS))
    bent = weights[:, k:end].reshape(len(weights), k, len(KNOTS))
    return found | {slopes: weights[:, :k], kinks: bent}


def _inverse_root(matrix: Float[np.ndarray, "q q"]) -> Float[np.ndarray, "q q"]:
    """R with R Rᵀ = A⁻¹; directions that rounding has left without curvature count as flat."""
    size = np.sqrt(np.diagonal(matrix))
    values, vectors = np.linalg.eigh(matrix / size[:, None] / size[None, :])
    return vectors / np.sqrt(np.maximum(values, JITTER))[None, :] / size[:, None]


def _widened(name: str, leaf: np.ndarray, widest: int) -> np.ndarray:
    """Filled up to the size of the largest parent set."""
    if name not in _BY_PARENT:
        return leaf
    missing = (0, widest - leaf.shape[1])
    others = [missing] if name in _SQUARE else [(0, 0)] * (leaf.ndim - 2)
    return np.pad(leaf, [(0, 0), missing, *others])
