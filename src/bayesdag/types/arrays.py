"""Array aliases: shapes, trees of arrays, plain data.

Conventions, everywhere: `graph[i, j] = 1` means i -> j. Dimensions: `n` rows, `d` variables,
`b` batch, `c` chains, `s` draws.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jaxtyping
import numpy as np
from jaxtyping import Bool, Float, Int8, Shaped


@dataclass(frozen=True)
class HostKey:
    """The key of a stream of random numbers, as two words; `random.jax_key` makes it JAX's."""

    words: tuple[int, int]


# Whoever is handed a key may get one that is not JAX's yet; those who draw by `jax.random` are
# handed what `jax_key` returns. Type checkers see one kind; calls in tests are checked.
if TYPE_CHECKING:
    from jax import Array as JaxArray
    from jaxtyping import PRNGKeyArray

    Key = PRNGKeyArray
elif "jax" in sys.modules:
    from jax import Array as JaxArray
    from jaxtyping import PRNGKeyArray

    Key = PRNGKeyArray | HostKey
else:
    # Nobody has loaded JAX, and a command that prints a table must not wait for it.
    JaxArray = Key = Any

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
