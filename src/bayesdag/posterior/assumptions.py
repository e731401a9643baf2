"""What the directions around one variable rest on, and by how much its rows contradict that.

Observation tells a cause from its effect only by what is assumed of functions and noise: where
rows contradict an assumption, directions that rest on it are in doubt, however probable.
"""

from collections.abc import Mapping

from bayesdag.posterior.check_result import Check

_LEAST = 0.05  # weight of a class of functions that is worth a word
_SCALES = "of normal scores"  # weight of normal scores rather than values, beside the classes
_FUNCTIONS = {
    "linear": "a line",
    "lines": "a line",
    "additive": "a sum of curves",
    "curves": "a sum of curves",
    "by level": "a line for each level",
    "quadratic": "quadratic",
    "network": "a network",
    "gaussian process": "a Gaussian process",
    "table": "a table of its parents' levels",
}


def in_words(
    checked: Check, variable: str, weights: Mapping[str, float] | None, has_levels: bool = False
) -> str:
    """The assumptions, and what contradicts them.

    Args:
        weights: how much each class of functions counts for the variable, where there are several.
        has_levels: whether its values are levels, which no noise is added to.
    """
    shares = dict(weights or {})
    scale = shares.pop(_SCALES, None)
    function = _function(shares) if shares else ("a line" if checked.linear else "smooth")
    of_what = "how the odds of its levels follow from its causes" if has_levels else "its function"
    parts = [f"{of_what}, {function}", *([] if has_levels else [_noise(checked, scale)])]
    rest = f"directions around {variable} rest on {', and on '.join(parts)}"
    return f"{rest}; {_contradiction(checked, variable)}"


def _function(shares: Mapping[str, float]) -> str:
    counted = {name: share for name, share in shares.items() if share >= _LEAST}
    ranked = sorted(counted, key=lambda name: -counted[name])
    if len(ranked) == 1:
        return _FUNCTIONS.get(ranked[0], ranked[0])
    return " or ".join(f"{_FUNCTIONS.get(name, name)} ({counted[name]:.2f})" for name in ranked)


def _noise(checked: Check, scale: float | None) -> str:
    shape = "Gaussian noise" if checked.gaussian else "noise"
    size = " of one size" if checked.fixed_spread else ""
    if scale is None or scale < _LEAST:
        return f"{shape}{size} that adds to its values"
    if scale > 1 - _LEAST:
        return f"{shape}{size} that adds to its normal scores"
    return f"{shape}{size} that adds to its values ({1 - scale:.2f}) or normal scores ({scale:.2f})"


def _contradiction(checked: Check, variable: str) -> str:
    one = checked.of(variable)
    found = checked.verdict(variable)
    if found.startswith(("no misfit", "not checked")):
        return f"the rows do not contradict that ({found})"
    size = max(one.shape, 0.0) + max(one.dependence, 0.0)
    return f"the rows contradict that by {size:.2g} nats per row ({found})"
