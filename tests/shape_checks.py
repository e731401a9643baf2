"""Shapes and types of arguments and results, checked where a test first calls a function.

Checking every call costs a third to a half of what a fit in a test takes. A function that is
called with other shapes than it declares nearly always is so from its first call on, so the first
call of every function in every test is checked, and the others run as they are.
"""

import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable
from types import CodeType
from typing import Any

import jaxtyping

CALLS = 1  # of every function, in every test
_calls: Counter[CodeType] = Counter()
_jaxtyped = jaxtyping.jaxtyped


def begin_test() -> None:
    """Check first calls again."""
    _calls.clear()


def install(package: str) -> None:
    """Check what is imported from the package after this."""
    jaxtyping.jaxtyped = _first_calls_checked
    jaxtyping.install_import_hook(package, "beartype.beartype")


def _first_calls_checked(fn: Any = None, *, typechecker: Callable | None = None) -> Any:
    """Stand-in for the decorator that the import hook puts on functions and classes."""
    if fn is None:
        return functools.partial(_first_calls_checked, typechecker=typechecker)
    if dataclasses.is_dataclass(fn):
        fn.__init__ = _first_calls_checked(fn.__init__, typechecker=typechecker)
    if not inspect.isfunction(fn):
        return fn
    code = fn.__code__
    if _calls[code] >= CALLS:  # defined anew inside another function
        return fn
    checked = None

    @functools.wraps(fn)
    def of_first_calls(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        __tracebackhide__ = True
        if _calls[code] >= CALLS:
            return fn(*args, **kwargs)
        _calls[code] += 1
        if checked is None:
            checked = _jaxtyped(fn, typechecker=typechecker)
        return checked(*args, **kwargs)

    return of_first_calls
