"""Hidden units of small networks, trained on half of the rows.

Units that were trained on the rows they are judged by would explain noise. These see one half of
the rows; what a network is worth is how well its output layer, integrated out, predicts the other
half (`families`). They are trained only where features drawn at random find something that lines,
curves and products leave unexplained.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.types.late_imports import late

optimize = late("scipy.optimize")

NUM_UNITS = 10
LEAST_ROWS = 100  # of which one half would tell nothing of a network
_NUM_RANDOM = 30  # units by which the unexplained is looked for
_RIDGE = 1e-3
_NUM_STARTS = 2
_MOST_STEPS = 120
# Deviations of the Gaussian priors of weights into units, out of them, and past them.
_INWARDS, _OUTWARDS, _PAST = 1.5, 1.0, 2.0


class NetworkTask(NamedTuple):
    """Rows that a network is trained on.

    Attributes:
        inputs: the constant first, then numbers and indicators of levels.
        targets: indicators of all levels, or one number of unit variance.
        is_level: whether the targets are levels.
    """

    inputs: Float[np.ndarray, "n p"]
    targets: Float[np.ndarray, "n k"]
    is_level: bool


def is_unexplained(
    rng: np.random.Generator,
    explained: Float[np.ndarray, "n q"],
    inputs: Float[np.ndarray, "n p"],
    left: Float[np.ndarray, "n k"],
    deviation: Float[np.ndarray, "n k"],
) -> bool:
    """Whether random units predict more of what a model leaves than chance lets them.

    Without an effect the gain of each column has the distribution of half a χ².

    Args:
        explained: features of the model, which explain nothing more.
        inputs: of the units.
        left: values less what the model predicts.
        deviation: of these by the model.
    """
    start = _INWARDS * rng.standard_normal((inputs.shape[1], _NUM_RANDOM))
    start *= np.sqrt(2 / max(2, inputs.shape[1] - 1))  # as steep, however many inputs there are
    units = activations(inputs, start)
    gain = 0.0
    for residual, scale in zip(left.T, deviation.T, strict=True):
        read = np.concatenate([explained, units], axis=1) * scale[:, None]
        before = _misfit(read[:, : explained.shape[1]], residual / scale)
        after = _misfit(read, residual / scale)
        gain += 0.5 * len(residual) * (before - after) / max(before, 1e-12)
    freedom = _NUM_RANDOM * left.shape[1]
    return bool(gain > 0.5 * freedom + 3 * np.sqrt(0.5 * freedom) + 3)


def _misfit(features: np.ndarray, target: np.ndarray) -> float:
    """Sum of squares that is left."""
    gram = features.T @ features
    gram += _RIDGE * np.eye(len(gram))
    across = features.T @ target
    return float(target @ target - across @ np.linalg.solve(gram, across))


def activations(
    inputs: Float[np.ndarray, "n p"], weights: Float[np.ndarray, "p h"]
) -> Float[np.ndarray, "n h"]:
    """What the units say in each row."""
    return np.tanh(inputs @ weights)


def train(rng: np.random.Generator, task: NetworkTask) -> Float[np.ndarray, "p h"]:
    """Weights into the units: the best of some starts, by the penalised likelihood."""
    found = [_trained(rng, task) for _ in range(_NUM_STARTS)]
    return min(found, key=lambda one: one[0])[1]


def _trained(rng: np.random.Generator, task: NetworkTask) -> tuple[float, np.ndarray]:
    p, k = task.inputs.shape[1], task.targets.shape[1]
    start = np.concatenate(
        [
            rng.standard_normal(p * NUM_UNITS),
            0.1 * rng.standard_normal(NUM_UNITS * k),
            np.zeros(p * k),
        ]
    )
    options = {"maxiter": _MOST_STEPS}
    found = optimize.minimize(
        _loss, start, args=(task,), jac=True, method="L-BFGS-B", options=options
    )
    return float(found.fun), found.x[: p * NUM_UNITS].reshape(p, NUM_UNITS)


def _loss(theta: Float[np.ndarray, " q"], task: NetworkTask) -> tuple[float, np.ndarray]:
    """Negative log posterior of all weights, and its gradient."""
    p, k = task.inputs.shape[1], task.targets.shape[1]
    inwards, outwards, past = np.split(theta, [p * NUM_UNITS, (p + k) * NUM_UNITS])
    inwards, outwards = inwards.reshape(p, NUM_UNITS), outwards.reshape(NUM_UNITS, k)
    past = past.reshape(p, k)
    units = activations(task.inputs, inwards)
    output = task.inputs @ past + units @ outwards
    value, slope = _of_levels(output, task) if task.is_level else _of_numbers(output, task)
    value += _charge(inwards, _INWARDS) + _charge(outwards, _OUTWARDS) + _charge(past, _PAST)
    back = (slope @ outwards.T) * (1 - units**2)
    gradient = [
        task.inputs.T @ back + inwards / _INWARDS**2,
        units.T @ slope + outwards / _OUTWARDS**2,
        task.inputs.T @ slope + past / _PAST**2,
    ]
    return value, np.concatenate([one.reshape(-1) for one in gradient])


def _of_levels(output: np.ndarray, task: NetworkTask) -> tuple[float, np.ndarray]:
    log_total = np.logaddexp.reduce(output, axis=1)
    value = float((log_total - (output * task.targets).sum(axis=1)).sum())
    return value, np.exp(output - log_total[:, None]) - task.targets


def _of_numbers(output: np.ndarray, task: NetworkTask) -> tuple[float, np.ndarray]:
    """Of normal noise whose deviation is the one that fits best."""
    left = output - task.targets
    total, size = float((left**2).sum()) + 1e-6, left.size
    return 0.5 * size * np.log(total / size), size * left / total


def _charge(weights: np.ndarray, deviation: float) -> float:
    return 0.5 * float((weights**2).sum()) / deviation**2
