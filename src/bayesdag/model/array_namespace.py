"""NumPy or JAX: functions of arrays that serve both.

On a CPU, thousands of small fits are quickest in NumPy: nothing is compiled, and every fit has its
own size. An accelerator wants them in one compiled program. Formulas are written once, in terms of
the namespace of their arrays.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesdag import types

if TYPE_CHECKING:
    Array = types.Array
else:  # NumPy makes scalars of arrays without dimensions
    Array = types.Array | np.number | np.bool_


def namespace(array: Any) -> ModuleType:
    """`numpy` or `jax.numpy`, whichever the array belongs to."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    import jax.numpy as jnp

    return jnp


def matmul(a: Any, b: Any) -> Any:
    """Matrix product in full precision."""
    xp = namespace(a)
    if xp is np:
        return np.matmul(a, b)
    return xp.matmul(a, b, precision="highest")
