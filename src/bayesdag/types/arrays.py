"""Array aliases: shapes, trees of arrays, plain data.

Conventions, everywhere: `graph[i, j] = 1` means i -> j. Dimensions: `n` rows, `d` variables,
`b` batch, `c` chains, `s` draws.
"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jaxtyping
import numpy as np
from jaxtyping import Bool, Float, Int8, Shaped

if TYPE_CHECKING or "jax" in sys.modules:
    from jax import Array as JaxArray
    from jaxtyping import PRNGKeyArray
else:
    # Nobody has loaded JAX, and a command that prints a table must not wait for it.
    JaxArray = PRNGKeyArray = Any

Key = PRNGKeyArray
Keys = jaxtyping.Key[JaxArray, " k"]  # one for each of several data sets
Array = JaxArray | np.ndarray
Pytree = Any  # of arrays: states, contexts, carries, results
Params = Pytree  # unknowns are never hidden in objects
PlainData = dict[str, Any]  # what JSON can hold: provenance, settings, summaries
Facts = Mapping[str, Any]  # plain data that is read only

Graph = Shaped[Array, "d d"]
Graphs = Shaped[Array, "*batch d d"]
Draws = Int8[np.ndarray, "chain draw d d"]
Weights = Float[np.ndarray, "chain draw"]
Potentials = Float[Array, " d"]
Mask = Shaped[Array, "d d"]
Rows = Float[Array, "n d"]
ParentSets = Bool[np.ndarray, "m d"]
# Of a structure prior: log weights of its components, and their penalties by in-degree.
Components = tuple[Float[np.ndarray, " c"], Float[np.ndarray, "c d"]]
