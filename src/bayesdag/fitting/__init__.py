"""From data to a Posterior: check the input, build the method, run it, stamp the result."""

from bayesdag.fitting.graph_scores import log_scores, with_targets
from bayesdag.fitting.method_settings import build_method, list_methods, name_of
from bayesdag.fitting.running import DEFAULT_METHOD, extend, fit, settings_of
from bayesdag.fitting.support import check, known, suited

__all__ = [
    "DEFAULT_METHOD",
    "build_method",
    "check",
    "extend",
    "fit",
    "known",
    "list_methods",
    "log_scores",
    "name_of",
    "settings_of",
    "suited",
    "with_targets",
]
