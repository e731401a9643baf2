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


_NUMPY = (np.ndarray, np.generic)  # a tuple: millions of questions, and a union answers slower


def namespace(array: Any) -> ModuleType:
    """`numpy` or `jax.numpy`, whichever the array belongs to."""
    if isinstance(array, _NUMPY):
        return np
    import jax.numpy as jnp

    return jnp


def matmul(a: Any, b: Any) -> Any:
    """Product of matrices or vectors in full precision."""
    if isinstance(a, np.ndarray):
        return a.dot(b)
    return namespace(a).matmul(a, b, precision="highest")
