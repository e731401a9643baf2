"""How much of the evidence counts where the rows contradict the model, or repeat one another.

Evidence grows with the rows even where the model is wrong, and certainty with it. Raised to a
power below 1 it says what remains true of a model that is near the truth (Miller & Dunson, 2019,
"Robust Bayesian inference via coarsening"). The power is the same for all variables: evidence of
one node that counts less than that of another turns the edges between them around.

Rows that repeat one another count by the memory of residuals, and a fit that explains trends by
trends leaves little of it. So evidence is first counted as if nothing explained anything, by the
memory of the values themselves. What is left of that memory after the arrows that are sure even so,
and after these alone, decides the next count, until there are no more of them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from jaxtyping import Int8

from bayesdag.data import Dataset
from bayesdag.posterior import serial_dependence
from bayesdag.posterior.check_result import Check
from bayesdag.posterior.posterior import Posterior

# Nats per variable that a model misses in all, after which half of its evidence counts: functions
# that can be anything should have missed none, lines often do while their graph is nearly right
# (on forty generated tables that break some assumption 30 had the best log score of 3, 10, 30 and
# 100 with lines). A misfit above the last number says no more.
_HALVING, _HALVING_OF_LINES = 10.0, 30.0
_MOST = 0.05
_SAME = 0.95  # a power above changes nothing that would be worth drawing again
_FEWER = 0.85  # of the rows per independent row, above which they are not counted again
_MOST_ROUNDS = 4
_SURE, _NUM_GRAPHS = 0.95, 20

Draws = TypeVar("Draws")


def coarsened(
    check: Check,
    data: Dataset,
    draw: Callable[[float], Draws],
    check_of_sure: Callable[[Draws], Check],
) -> tuple[Draws, float, Check] | None:
    """Draws under the power that a check asks for, that power, and why; None: for nothing.

    Args:
        check: of draws with the whole evidence.
        draw: makes draws under a power.
        check_of_sure: judges functions of all rows on the sure arrows of such draws.
    """
    if check.repeats:
        values = serial_dependence.of_values(data)
        check = replace(check, repetition=max(values, check.repetition))
    for _ in range(_MOST_ROUNDS):
        raised = power(check)
        if raised == 1:
            return None
        found = draw(raised), raised, check
        if not check.repeats:
            return found
        left = max(check_of_sure(found[0]).repetition, 1.0)
        if left > _FEWER * check.repetition:
            return found
        check = replace(check, repetition=left)
    return found  # pyright: ignore[reportPossiblyUnboundVariable]


def with_sure_arrows(found: Posterior) -> Int8[np.ndarray, "s d d"]:
    """Some graphs of a posterior, less arrows between variables that are not surely adjacent."""
    edges = found.edge_matrix()
    num = found.num_chains * found.num_draws
    some = np.unique(np.linspace(0, num - 1, _NUM_GRAPHS).astype(int))
    graphs = found.graphs.reshape(num, *edges.shape)[some]
    return (graphs * (edges + edges.T >= _SURE)).astype(np.int8)


def power(check: Check) -> float:
    """To which the evidence is to be raised; 1 where the check has found next to nothing."""
    misfit = min(check.misfit or 0.0, _MOST)
    repetition = check.repetition if check.repeats else 1.0
    halving = _HALVING_OF_LINES if check.linear else _HALVING
    found = 1 / (repetition * (1 + check.num_rows * misfit / halving))
    return found if found < _SAME else 1.0


def in_words(check: Check, total: float) -> str:
    """Why the evidence is raised to a power.

    Args:
        total: the power, besides other reasons for one.
    """
    misfit = check.misfit or 0.0  # None where there were too few rows to check
    reasons = (
        f"the estimated misfit is {misfit:.2g} nats per row and variable" * bool(misfit),
        f"{check.repetition:.1f} rows are worth one independent row" * check.repeats,
    )
    why = " and ".join(filter(None, reasons))
    return f"the likelihood is raised to the power {total:.2g}: {why}"
