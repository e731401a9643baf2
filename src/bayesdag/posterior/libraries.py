"""Typed doors to libraries whose own types are partly unknown, or that are imported late.

JAX, SciPy, pandas and networkx are imported where they are used, because starting takes long
enough without them; at run time their types are names, which checks of types look up.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
jax: Any = late("jax")
jnp: Any = late("jax.numpy")
lax: Any = late("jax.lax")
special: Any = late("scipy.special")

Function = TypeVar("Function", bound=Callable[..., Any])


class Program:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any], static: tuple[str, ...]) -> None:
        self._function, self._static = function, static

    def __call__(self, *given: Any, **named: Any) -> Any:
        """The result of the compiled function."""
        return self.compiled(*given, **named)

    @cached_property
    def compiled(self) -> Any:
        """The function of JAX."""
        return jax.jit(self._function, static_argnames=self._static)


def compiled(*static: str) -> Callable[[Function], Function]:
    """A decorator that compiles a function once for each value of its `static` arguments."""

    def compile_it(function: Function) -> Function:
        return cast(Any, wraps(function)(Program(function, static)))

    return compile_it


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree of arrays with `function` applied to each of them."""
    if isinstance(tree, np.ndarray):
        return function(tree)
    if type(tree) is dict:  # as parameters are; no need of JAX to go through them
        branches = cast(dict[str, Any], tree)
        return {name: map_leaves(function, branches[name]) for name in sorted(branches)}
    return jax.tree.map(function, tree)


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
