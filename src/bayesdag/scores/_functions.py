"""From trained networks to the parameters of a causal model, with their uncertainty."""

import numpy as np
from jaxtyping import Float, Int

from bayesdag.scores._crossfit import Families
from bayesdag.scores._networks import DEGREES, Fit, Whitening
from bayesdag.types import Params


def assembled(
    rng: np.random.Generator,
    fits: list[tuple[Int[np.ndarray, " b"], Families, tuple[Fit, Whitening]]],
    which: Int[np.ndarray, " m"],
    num_rows: Float[np.ndarray, " m"],
    shape: tuple[int, int],
) -> Params:
    """Parameters of s graphs with d nodes each; `which` is the fit of every family."""
    widest = max(group.members.shape[1] for _, group, _ in fits)
    pieces: dict[str, np.ndarray] = {}
    for number, group, (fit, by) in fits:
        place = np.full(which.max() + 1, -1)
        place[number] = np.arange(len(number))
        asked = np.flatnonzero(place[which] >= 0)
        drawn = _drawn(rng, fit, by, group, place[which[asked]], num_rows[asked])
        for name, leaf in drawn.items():
            leaf = _widened(name, leaf, widest)
            whole = pieces.setdefault(name, np.zeros((len(which), *leaf.shape[1:]), leaf.dtype))
            whole[asked] = leaf
    folded = {name: leaf.reshape(*shape, *leaf.shape[1:]) for name, leaf in pieces.items()}
    noise = {name: folded.pop(name) for name in ("log_scale", "log_degrees")}
    return {"mechanism": folded, "noise": noise}


def _drawn(
    rng: np.random.Generator,
    fit: Fit,
    by: Whitening,
    group: Families,
    at: Int[np.ndarray, " b"],
    num_rows: Float[np.ndarray, " b"],
) -> dict[str, np.ndarray]:
    """One draw for each entry of `at`, in engine units: the whitening is undone.

    With A the curvature at the fit, the last layer given the hidden units is
    N(second, σ² A₂₂⁻¹); its Cholesky factor is the last block of that of A.
    """
    first, bias, second = (np.asarray(leaf, float)[at] for leaf in fit.network)
    k, h = first.shape[1:]
    scale = np.asarray(fit.tails.scale, float)[at]
    scale = scale * np.sqrt(num_rows / rng.chisquare(np.maximum(num_rows, 1.0)))
    block = np.swapaxes(
        np.asarray(fit.root, float)[at][:, -second.shape[1] :, -second.shape[1] :], 1, 2
    )
    noise = np.linalg.solve(block, rng.standard_normal(second.shape)[..., None])[..., 0]
    second = second + scale[:, None] * noise
    mean, root = np.asarray(by.mean, float)[at], np.asarray(by.root, float)[at]
    centre, spread = np.asarray(by.centre, float)[at], np.asarray(by.spread, float)[at]
    back = np.linalg.inv(np.swapaxes(root, 1, 2)) * group.used[at][:, :, None]
    first = back @ first
    slopes = spread[:, None] * (back @ second[:, h : h + k, None])[..., 0]
    bias = bias - np.einsum("bk,bkh->bh", mean, first)
    intercept = centre + spread * second[:, -1] - (mean * slopes).sum(axis=1)
    return {
        "members": group.members[at],
        "first": first.astype(np.float32),
        "bias": bias.astype(np.float32),
        "second": (spread[:, None] * second[:, :h]).astype(np.float32),
        "slopes": slopes.astype(np.float32),
        "intercept": intercept.astype(np.float32),
        "log_scale": np.log(scale * spread).astype(np.float32),
        "log_degrees": np.log(DEGREES)[np.asarray(fit.tails.which)[at]].astype(np.float32),
    }


def _widened(name: str, leaf: np.ndarray, widest: int) -> np.ndarray:
    """Filled up to the size of the largest parent set."""
    if name not in ("members", "first", "slopes"):
        return leaf
    missing = widest - leaf.shape[1]
    return np.pad(leaf, [(0, 0), (0, missing)] + [(0, 0)] * (leaf.ndim - 2))
