"""Linear mechanisms with Gaussian noise in closed form: no simulation, and nothing to compile."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Int8

from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior.libraries import special
from bayesdag.types import Array, Params

_RIDGE = 1e-6  # parents may be copies of one another


def applies(model: SCM) -> bool:
    """Whether a model is of this kind."""
    return isinstance(model.mechanism, Linear) and isinstance(model.noise, Gaussian)


def probability_transform(
    params: Params, graphs: Int8[np.ndarray, "s d d"], x: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "s n d"]:
    """Probability of a smaller residual, per draw, row and variable; in engine units."""
    mechanism = params["mechanism"]
    residual = x - x @ _weights(params, graphs)
    if "bias" in mechanism:
        residual -= np.asarray(mechanism["bias"])[:, None, :]
    return special.ndtr(
        residual * np.exp(-np.asarray(params["noise"]["log_scale"], float))[:, None, :]
    )


def variance_ratios(
    params: Params,
    graphs: Int8[np.ndarray, "s d d"],
    edges: Int[np.ndarray, "e 2"],
    contexts: tuple[Bool[Array, " d"], Float[Array, "n d"]] | None,
) -> Float[np.ndarray, "s e"]:
    """Variance of the effect that only the cause explains, over that of the noise.

    Args:
        contexts: variables that come first, and rows of them.
    """
    weights = _weights(params, graphs)
    noise = np.exp(2 * np.asarray(params["noise"]["log_scale"], float))
    source = noise[:, :, None] * np.eye(noise.shape[1])
    if contexts is not None:
        first = np.flatnonzero(np.asarray(contexts[0]))
        weights[:, :, first] = 0.0
        own = np.cov(np.asarray(contexts[1], float)[:, first], rowvar=False, bias=True)
        source[:, first[:, None], first] = own
    total = np.linalg.inv(np.eye(noise.shape[1]) - weights)
    covariance = np.swapaxes(total, 1, 2) @ source @ total
    result = np.zeros((len(graphs), len(edges)))
    for s, number in np.argwhere(weights[:, edges[:, 0], edges[:, 1]] != 0).tolist():
        cause, effect = edges[number].tolist()
        others = np.flatnonzero((graphs[s, :, effect] != 0) & (np.arange(len(noise[s])) != cause))
        left = _left(covariance[s], cause, others)
        result[s, number] = weights[s, cause, effect] ** 2 * left / noise[s, effect]
    return result


def _left(covariance: Float[np.ndarray, "d d"], cause: int, others: np.ndarray) -> float:
    """Variance of the cause that a linear regression on the other parents leaves."""
    across = covariance[others, cause]
    among = covariance[np.ix_(others, others)]
    linalg: Any = np.linalg  # its results have no known type
    slopes: np.ndarray = linalg.solve(among + _RIDGE * np.eye(len(others)), across)
    return float(covariance[cause, cause] - 2 * slopes @ across + slopes @ among @ slopes)


def _weights(params: Params, graphs: Int8[np.ndarray, "s d d"]) -> Float[np.ndarray, "s d d"]:
    return np.asarray(params["mechanism"]["weights"], float) * (np.asarray(graphs) != 0)
