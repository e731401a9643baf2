"""How much of the evidence counts where the rows contradict the model, or repeat one another.

Evidence grows with the rows even where the model is wrong, and certainty with it. Raised to a
power below 1 it says what remains true of a model that is near the truth (Miller & Dunson, 2019,
"Robust Bayesian inference via coarsening"). The power is the same for all variables: evidence of
one node that counts less than that of another turns the edges between them around.
"""

from bayesdag.posterior.check_result import Check

# Nats per variable that a model misses in all, after which half of its evidence counts: functions
# that can be anything should have missed none, lines often do while their graph is nearly right
# (on forty generated tables that break some assumption 30 had the best log score of 3, 10, 30 and
# 100 with lines). A misfit above the last number says no more.
_HALVING, _HALVING_OF_LINES = 10.0, 30.0
_MOST = 0.05
_SAME = 0.95  # a power above changes nothing that would be worth drawing again


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
    reasons = (
        f"they contradict the model by {check.misfit:.2g} nats each and variable"
        * bool(check.misfit),
        f"{check.repetition:.1f} of them are worth one independent row" * check.repeats,
    )
    return f"the rows count {total:.2g} of what they say: {' and '.join(filter(None, reasons))}"
