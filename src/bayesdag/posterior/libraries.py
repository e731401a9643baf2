"""Typed doors to libraries whose own types are partly unknown, or that are imported late.

JAX, SciPy, pandas and networkx are imported where they are used, because starting takes long
enough without them; at run time their types are names, which checks of types look up.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayesdag.types.late_imports import late

if TYPE_CHECKING:
    import networkx
    import pandas  # pyright: ignore[reportMissingTypeStubs] (typed, without saying so)

    DataFrame = pandas.DataFrame
    DiGraph = networkx.DiGraph[str]
else:
    DataFrame = "pandas.DataFrame"
    DiGraph = "networkx.DiGraph"

# JAX annotates shapes and shardings with types that cannot be resolved.
jnp: Any = late("jax.numpy")
lax: Any = late("jax.lax")
special: Any = late("scipy.special")


def data_frame(data: Any, columns: Sequence[str] | None = None) -> DataFrame:
    """A table of columns by name, or of rows or an array whose columns are named."""
    import pandas  # pyright: ignore[reportMissingTypeStubs]

    return pandas.DataFrame(data, columns=None if columns is None else list(columns))


def square_frame(matrix: Any, names: Sequence[str], axes: tuple[str, str]) -> DataFrame:
    """A table with the same names down and across; `axes` are the headings of both."""
    import pandas  # pyright: ignore[reportMissingTypeStubs]

    down, across = (pandas.Index(names, name=axis) for axis in axes)
    return pandas.DataFrame(matrix, index=down, columns=across)


def rows_in_order(table: DataFrame, order: Any) -> DataFrame:
    """A table with its rows in another order, numbered anew."""
    return cast(Any, table).iloc[order].reset_index(drop=True)


def column(table: DataFrame, name: str) -> np.ndarray:
    """The values of one column."""
    return np.asarray(cast(Any, table)[name])


def arviz_statistics() -> Any:
    """ArviZ's functions of arrays: R-hat, effective sizes, intervals."""
    from arviz_stats.base.array import array_stats

    return array_stats
