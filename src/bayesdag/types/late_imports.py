"""Libraries that are imported when they are first used: start-up does not wait for them."""

import importlib
import sys
from collections.abc import Callable
from functools import cached_property, wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_waiting: dict[str, list[Callable[[], None]]] = {}


class LateModule(ModuleType):
    """Stands for a module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self.__name__)
        for imported in _waiting.keys() & sys.modules.keys():
            for action in _waiting.pop(imported):
                action()
        return getattr(module, name)


def late(name: str) -> Any:
    """The module of this name, or what stands for it until it is needed."""
    return sys.modules.get(name) or LateModule(name)


def once_imported(name: str, action: Callable[[], None]) -> None:
    """Does something now if a module has been imported, else as soon as it is, late."""
    if name in sys.modules:
        action()
    elif action not in _waiting.setdefault(name, []):
        _waiting[name].append(action)


if TYPE_CHECKING:
    import jax as jax
    from jax import lax as lax
    from jax import numpy as jnp  # pyright: ignore[reportUnusedImport] (others import it)
else:
    jax, jnp, lax = late("jax"), late("jax.numpy"), late("jax.lax")


class Program:
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self._function, self._options = function, options

    def __call__(self, *given: Any, **named: Any) -> Any:
        """The result of the compiled function."""
        return self.compiled(*given, **named)

    @cached_property
    def compiled(self) -> Any:
        """The function of JAX."""
        return cast(Any, jax).jit(self._function, **self._options)


def compiled(*static: str, **options: Any) -> Callable[[Function], Function]:
    """A decorator that compiles a function once for each value of its `static` arguments.

    Args:
        options: further ones of `jax.jit`.
    """

    def compile_it(function: Function) -> Function:
        program = Program(function, static_argnames=static, **options)
        return cast(Any, wraps(function)(program))

    return compile_it
