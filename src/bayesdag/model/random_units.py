"""Rectified units in random directions: a Gaussian process in the limit of many of them.

A function that is linear in such units, with normal weights, has the arc-cosine kernel (Cho &
Saul, 2009, "Kernel methods for deep learning"); some hundred units come close to it (Rahimi &
Recht, 2007). The units are the same in every fit, so that nobody has to store them.
"""

from functools import cache

import numpy as np
from jaxtyping import Float

from bayesdag.model.array_namespace import Array, matmul, namespace

REACH = 2.0  # of the kinks, in standard deviations of the inputs
_SEED = 7


def random_units(
    inputs: Float[Array, "n k"], used: Float[Array, " k"], num: int
) -> Float[Array, "n u"]:
    """Rectifiers of whitened inputs in unit directions, with kinks among the rows.

    Args:
        used: inputs that there are; filling after them changes nothing.
    """
    xp = namespace(inputs)
    towards = xp.asarray(_directions(len(used), num), inputs.dtype) * used[:, None]
    size = xp.sqrt((towards**2).sum(axis=0) + 1e-12)
    offsets = xp.asarray(_offsets(num), inputs.dtype)
    return xp.maximum((matmul((towards / size[None, :]).T, inputs.T) + offsets[:, None]).T, 0)


@cache
def _directions(k: int, num: int) -> Float[np.ndarray, "k u"]:
    """Row by row, so that more inputs leave the directions among the first as they are."""
    rows = [np.random.default_rng([_SEED, row]).standard_normal(num) for row in range(k)]
    return np.stack(rows) if rows else np.zeros((0, num))


@cache
def _offsets(num: int) -> Float[np.ndarray, " u"]:
    return np.random.default_rng(_SEED).uniform(-REACH, REACH, num)
