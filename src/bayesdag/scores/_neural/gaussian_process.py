"""Gaussian processes: smooth functions of all parents together, in closed form.

A sum of curves and a linear combination of rectified units in random directions, whose weights
are normal: in the limit of many units that is a Gaussian process with the arc-cosine kernel (Cho &
Saul, 2009). Given the units it is a regression, so that nothing has to be trained and Laplace's
approximation overlooks nothing; how large the function is, the rows decide.
"""

from jaxtyping import Float

from bayesdag.model import random_units
from bayesdag.model.array_namespace import Array, namespace

NUM_UNITS = 64
# Variance of the function about a sum of curves, for a standardised target and unit of 1.
AMPLITUDES = (1.0, 10.0, 100.0)


def units(inputs: Float[Array, "n k"], used: Float[Array, " k"]) -> Float[Array, "n u"]:
    """The random units of whitened inputs."""
    return random_units.random_units(inputs, used, NUM_UNITS)


def members(of_curves: Float[Array, " q"], used: Float[Array, " k"]) -> Float[Array, " p"]:
    """What the regression reads: the basis of curves, then the units, if there are parents."""
    xp = namespace(used)
    return xp.concatenate([of_curves, xp.full(NUM_UNITS, 1.0, used.dtype) * used.max()])


def sizes(
    of_curves: Float[Array, " q"], chosen: Float[Array, " p"], amplitude: float
) -> Float[Array, " p"]:
    """Units in which all weights have the prior N(0, 1 / number of columns) of a network.

    There, the curves are as probable as without the random units, whose weights are
    N(0, amplitude / number of units).

    Args:
        of_curves: sizes of the basis, by itself.
        chosen: members of the regression.
    """
    xp, q = namespace(of_curves), len(of_curves)
    count = xp.maximum(chosen.sum(), 1.0)
    of_basis = xp.where(chosen[:q] > 0, xp.sqrt(chosen[:q].sum() / count) * of_curves, 1.0)
    size = xp.sqrt(NUM_UNITS / (amplitude * count))
    return xp.concatenate([of_basis, xp.where(chosen[q:] > 0, size, 1.0)])
