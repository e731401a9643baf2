"""Errors and warnings of the package; a message says what is wrong, where, and what to do."""

import difflib
from collections.abc import Iterable


class BayesdagError(ValueError):
    """Anything this package refuses; the message says what, where and what to do."""


class InputError(BayesdagError):
    """The data or a setting cannot be used as it is."""


class KnowledgeError(BayesdagError):
    """Prior knowledge contradicts itself, or a method does not support it."""


class FileFormatError(BayesdagError):
    """A file is not a result of this package, is damaged, or is newer than it."""


class WriteError(BayesdagError, OSError):
    """A file cannot be written: no room, no permission, or another run writes it."""


class DivergenceError(BayesdagError):
    """The energy of a chain is not finite; the message names the step and the chain."""


class BayesdagWarning(UserWarning):
    """Something about the data or a result that a careful analyst would want to know."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A hint for a name that does not exist: the nearest known ones, or what there is.

    >>> did_you_mean("rian", ["rain", "crop"])
    "did you mean 'rain'?"
    >>> did_you_mean("x", ["rain", "crop"])
    "there are: 'rain', 'crop'"
    """
    known = list(known)
    by_lower = {other.lower(): other for other in reversed(known)}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(repr(by_lower[other]) for other in near)}?"
    shown = ", ".join(map(repr, known[:10])) or "none"
    return f"there are: {shown}{', ...' if len(known) > 10 else ''}"
