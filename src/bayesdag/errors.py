"""What the package refuses or warns of; every message says what is wrong, where, and what to do."""


class BayesdagError(ValueError):
    """Anything this package refuses; the message says what, where and what to do."""


class InputError(BayesdagError):
    """The data or a setting cannot be used as it is."""


class KnowledgeError(BayesdagError):
    """Prior knowledge contradicts itself, or a method cannot honour it."""


class FileFormatError(BayesdagError):
    """A file is not a result of this package, is damaged, or is newer than it."""


class DivergenceError(BayesdagError):
    """An energy is not finite; the message names the step and the chain."""


class BayesdagWarning(UserWarning):
    """Something about the data or a result that a careful analyst would want to know."""
