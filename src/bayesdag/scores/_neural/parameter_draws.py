"""From trained networks to the parameters of a causal model, with their uncertainty."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from bayesdag.scores._neural.crossfit import SIZES
from bayesdag.scores._neural.laplace import JITTER
from bayesdag.scores._neural.network_cache import TrainedFamily
from bayesdag.scores._neural.noise_forms import NoiseForm
from bayesdag.scores._neural.noise_shape import SHAPES
from bayesdag.types import Params


def assembled(
    rng: np.random.Generator,
    families: list[TrainedFamily],
    which: Int[np.ndarray, " m"],
    shape: tuple[int, int],
    num_rows: int,
    forms: tuple[NoiseForm, ...],
) -> Params:
    """Parameters of s graphs with d nodes each; `which` is the family of every node."""
    # At least the second size, so that results of several runs mostly fit together.
    widest = max(SIZES[1], *(len(family.members) for family in families))
    pieces: dict[str, np.ndarray] = {}
    for number, family in enumerate(families):
        asked = np.flatnonzero(which == number)
        for name, leaf in _drawn(rng, family, len(asked), num_rows, forms).items():
            leaf = _widened(name, leaf, widest)
            whole = pieces.setdefault(name, np.zeros((len(which), *leaf.shape[1:]), leaf.dtype))
            whole[asked] = leaf
    folded = {name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in pieces.items()}
    noise = {name: folded.pop(name) for name in ("log_scale", "log_degrees", "log_skew")}
    return {"mechanism": folded, "noise": noise}


def _drawn(
    rng: np.random.Generator,
    family: TrainedFamily,
    num: int,
    num_rows: int,
    forms: tuple[NoiseForm, ...],
) -> dict[str, np.ndarray]:
    """Draws of one family, in engine units: a fold's network, its last layer varied.

    The form of the noise is drawn with the probability that the rows give it.

    With A the curvature at the fit, the last layer given the hidden units is
    N(second, σ² A₂₂⁻¹); `last` is A₂₂.
    """
    folds: Any = family.folds  # NumPy arrays, as all that is cached
    at = rng.integers(len(folds.spread), size=num)
    first, bias, second = (np.asarray(leaf, float)[at] for leaf in folds.networks)
    k, h = first.shape[1:]
    spread = folds.spread[at].astype(float)
    probability = softmax(family.log_evidence[list(forms)].astype(float))
    form = rng.choice(forms, size=num, p=probability)
    scale = folds.noise.scale[at, form] * np.sqrt(num_rows / rng.chisquare(num_rows, size=num))
    shape = folds.noise.shape[at, form]
    factor = folds.noise.log_scale_weights[at, form].astype(np.float32)
    noise = rng.standard_normal(second.shape)[..., None]
    noise = (_inverse_roots(folds.last.astype(float))[at] @ noise)[..., 0]
    noise *= (scale / spread)[:, None]
    back = np.swapaxes(folds.whitening.astype(float), 1, 2)[at]
    noise[:, h : h + k] = np.linalg.solve(back, noise[:, h : h + k, None])[..., 0]
    second = (second + noise) * spread[:, None]
    # Places that are filled up repeat a column, which may be a parent at its own place.
    second[:, h : h + k] *= family.used[None, :]
    return {
        "members": np.tile(family.members, (num, 1)),
        "first": first.astype(np.float32),
        "bias": bias.astype(np.float32),
        "second": second[:, :h].astype(np.float32),
        "slopes": second[:, h : h + k].astype(np.float32),
        "intercept": (folds.centre[at] + second[:, -1]).astype(np.float32),
        "scale_units": factor[:, :h],
        "scale_slopes": factor[:, h : h + k],
        "scale_intercept": factor[:, -1],
        "log_scale": np.log(scale).astype(np.float32),
        "log_degrees": np.log(SHAPES.degrees)[shape].astype(np.float32),
        "log_skew": np.log(SHAPES.skew)[shape].astype(np.float32),
    }


def _inverse_roots(matrices: Float[np.ndarray, "f q q"]) -> Float[np.ndarray, "f q q"]:
    """R with R Rᵀ = A⁻¹; directions that rounding has left without curvature count as flat."""
    size = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    values, vectors = np.linalg.eigh(matrices / size[:, :, None] / size[:, None, :])
    return vectors / np.sqrt(np.maximum(values, JITTER))[:, None, :] / size[:, :, None]


def _widened(name: str, leaf: np.ndarray, widest: int) -> np.ndarray:
    """Filled up to the size of the largest parent set."""
    if name not in ("members", "first", "slopes", "scale_slopes"):
        return leaf
    missing = widest - leaf.shape[1]
    return np.pad(leaf, [(0, 0), (0, missing)] + [(0, 0)] * (leaf.ndim - 2))
