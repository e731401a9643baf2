"""From trained networks to the parameters of a causal model, with their uncertainty."""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from bayesdag.scores._neural.cache import Kinds, Trained
from bayesdag.scores._neural.crossfit import SIZES
from bayesdag.scores._neural.network import JITTER
from bayesdag.scores._neural.noise_shape import DEGREES, SKEW
from bayesdag.types import Params


def assembled(
    rng: np.random.Generator,
    families: list[Trained],
    which: Int[np.ndarray, " m"],
    shape: tuple[int, int],
    num_rows: int,
    kinds: Kinds,
) -> Params:
    """Parameters of s graphs with d nodes each; `which` is the family of every node."""
    # At least the second size, so that results of several runs mostly fit together.
    widest = max(SIZES[1], *(len(family.members) for family in families))
    pieces: dict[str, np.ndarray] = {}
    for number, family in enumerate(families):
        asked = np.flatnonzero(which == number)
        for name, leaf in _drawn(rng, family, len(asked), num_rows, kinds).items():
            leaf = _widened(name, leaf, widest)
            whole = pieces.setdefault(name, np.zeros((len(which), *leaf.shape[1:]), leaf.dtype))
            whole[asked] = leaf
    folded = {name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in pieces.items()}
    noise = {name: folded.pop(name) for name in ("log_scale", "log_degrees", "log_skew")}
    return {"mechanism": folded, "noise": noise}


def _drawn(
    rng: np.random.Generator, family: Trained, num: int, num_rows: int, kinds: Kinds
) -> dict[str, np.ndarray]:
    """Draws of one family, in engine units: a fold's network, its last layer varied.

    Noise is of one of the kinds, as probable as the rows make them.

    With A the curvature at the fit, the last layer given the hidden units is
    N(second, σ² A₂₂⁻¹); `last` is A₂₂.
    """
    at = rng.integers(len(family.spread), size=num)
    first, bias, second = (np.asarray(leaf, float)[at] for leaf in family.networks)
    k, h = first.shape[1:]
    spread = family.spread[at].astype(float)
    probability = softmax(family.log_evidence[list(kinds)].astype(float))
    kind = at, rng.choice(kinds, size=num, p=probability)
    scales, shapes, uneven = (np.asarray(leaf)[kind] for leaf in family.noise)
    scale = scales * np.sqrt(num_rows / rng.chisquare(num_rows, size=num))
    factor = uneven.astype(np.float32)
    noise = rng.standard_normal(second.shape)[..., None]
    noise = (_inverse_roots(family.last.astype(float))[at] @ noise)[..., 0]
    noise *= (scale / spread)[:, None]
    back = np.swapaxes(family.whitening.astype(float), 1, 2)[at]
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
        "intercept": (family.centre[at] + second[:, -1]).astype(np.float32),
        "spread_units": factor[:, :h],
        "spread_slopes": factor[:, h : h + k],
        "spread_intercept": factor[:, -1],
        "log_scale": np.log(scale).astype(np.float32),
        "log_degrees": np.log(DEGREES)[shapes].astype(np.float32),
        "log_skew": np.log(SKEW)[shapes].astype(np.float32),
    }


def _inverse_roots(matrices: Float[np.ndarray, "f q q"]) -> Float[np.ndarray, "f q q"]:
    """R with R Rᵀ = A⁻¹; directions that rounding has left without curvature count as flat."""
    size = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    values, vectors = np.linalg.eigh(matrices / size[:, :, None] / size[:, None, :])
    return vectors / np.sqrt(np.maximum(values, JITTER))[:, None, :] / size[:, :, None]


def _widened(name: str, leaf: np.ndarray, widest: int) -> np.ndarray:
    """Filled up to the size of the largest parent set."""
    if name not in ("members", "first", "slopes", "spread_slopes"):
        return leaf
    missing = widest - leaf.shape[1]
    return np.pad(leaf, [(0, 0), (0, missing)] + [(0, 0)] * (leaf.ndim - 2))
