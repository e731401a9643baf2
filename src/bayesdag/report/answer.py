"""The answer in three sentences: what is sure, what is open, and what not to trust."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.posterior import Posterior
from bayesdag.posterior.check_result import Check
from bayesdag.posterior.diagnostics import Diagnostics

SURE = 0.95
UNLIKELY = 0.05
NAMED = 6  # arrows that a sentence lists; tables have the rest

Matrix = Float[np.ndarray, "d d"]
Pair = tuple[int, int]


class Answer(NamedTuple):
    """Three sentences, what 95 % has been worth, caveats of the checks, notes on the fit."""

    sure: str
    open: str
    distrust: str
    worth: str
    caveats: list[str]
    notes: list[str]


class SortedPairs(NamedTuple):
    """Ordered pairs by what is known of them, most probable first.

    Attributes:
        sure: arrows above `SURE` between variables that the model fits.
        misfit: arrows above `SURE` that touch a variable which the model does not fit.
        undirected: pairs that are surely linked, in an unknown direction.
        unknown: pairs of which neither a link nor its absence is sure.
        num_pairs: unordered pairs in all.
    """

    sure: list[Pair]
    misfit: list[Pair]
    undirected: list[Pair]
    unknown: list[Pair]
    num_pairs: int


def answer(
    posterior: Posterior, found: Diagnostics, compelled: Matrix, evidence: Matrix | None = None
) -> Answer:
    """What the posterior says, in words.

    Args:
        found: what the chains say of one another.
        compelled: probability that an arrow is there and its direction compelled.
        evidence: ranks arrows of equal probability.
    """
    checked, names = posterior.checked, posterior.variables
    probability = posterior.edge_matrix()[: len(names), : len(names)]
    sorted_ = sort_pairs(probability, misfits(posterior), evidence)
    free = [pair for pair in sorted_.sure if compelled[pair] < probability[pair] / 2]
    return Answer(
        sure=_what_is_sure(sorted_, names, mixed=found.converged is not False),
        open=_what_is_open(sorted_, names),
        distrust=_what_not_to_trust(sorted_, free, names, checked, found),
        worth=checked.reliability if checked is not None and checked.model else "",
        caveats=[] if checked is None else checked.warnings,
        notes=[str(note) for note in posterior.provenance.get("notes", [])],
    )


def sort_pairs(
    probability: Matrix, doubted: set[int], evidence: Matrix | None = None
) -> SortedPairs:
    """Pairs of variables by what is known of them; `doubted` are those the model does not fit."""
    d = len(probability)
    linked = probability + probability.T
    strength = np.zeros((d, d)) if evidence is None else np.nan_to_num(evidence, nan=-np.inf)
    ranked = sorted(
        np.argwhere(probability > SURE).tolist(),
        key=lambda p: (-round(float(probability[*p]), 12), -float(strength[*p])),
    )
    likely = [(int(i), int(j)) for i, j in ranked]
    upper = [(i, j) for i in range(d) for j in range(i + 1, d)]
    directed = {frozenset(pair) for pair in likely}
    rest = sorted(
        (pair for pair in upper if frozenset(pair) not in directed), key=lambda p: -linked[p]
    )
    return SortedPairs(
        sure=[pair for pair in likely if not doubted & set(pair)],
        misfit=[pair for pair in likely if doubted & set(pair)],
        undirected=[pair for pair in rest if linked[pair] > SURE],
        unknown=[pair for pair in rest if UNLIKELY <= linked[pair] <= SURE],
        num_pairs=len(upper),
    )


def misfits(posterior: Posterior) -> set[int]:
    """Nodes that the model does not fit, by the check that `fit` made."""
    checked = posterior.checked
    if checked is None:
        return set()
    return {
        place
        for place, name in enumerate(posterior.variables)
        if not checked.verdict(name).startswith(("no misfit found", "not checked"))
    }


def _what_is_sure(sorted_: SortedPairs, names: Sequence[str], *, mixed: bool) -> str:
    absent = sorted_.num_pairs - sum(map(len, sorted_[:4]))
    are = "is" if absent == 1 else "are"
    some = (
        f"{absent} of the {_count(sorted_.num_pairs, 'pair')} of variables {are} surely not linked"
    )
    if sorted_.sure:
        listed = _arrows(sorted_.sure, names)
        first = f"{_count(len(sorted_.sure), 'arrow')} above probability {SURE:g}: {listed}"
    else:
        first = f"No arrow reaches probability {SURE:g}"
    provisional = "" if mixed else "Provisionally, because the chains have not mixed: "
    return _sentence(f"{provisional}{first}; {some}")


def _what_is_open(sorted_: SortedPairs, names: Sequence[str]) -> str:
    parts = []
    if sorted_.undirected:
        listed = _listed([f"{names[i]} — {names[j]}" for i, j in sorted_.undirected])
        have = "is" if len(sorted_.undirected) == 1 else "are"
        count = _count(len(sorted_.undirected), "pair")
        parts.append(f"{count} {have} surely linked, but not surely in one direction: {listed}")
    if sorted_.unknown:
        listed = _listed([f"{names[i]} — {names[j]}" for i, j in sorted_.unknown])
        count = _count(len(sorted_.unknown), "pair")
        parts.append(f"for {count} it is open whether there is a link at all: {listed}")
    if not parts:
        return "Nothing about the graph: every pair is either surely linked one way or surely not."
    return _sentence("; ".join(parts))


def _what_not_to_trust(
    sorted_: SortedPairs,
    free: Sequence[Pair],
    names: Sequence[str],
    checked: Check | None,
    found: Diagnostics,
) -> str:
    parts = []
    if found.converged is False:
        parts.append("no probability to two digits, because the chains disagree (see Diagnostics)")
    if checked is None:
        parts.append("the model has not been checked against the rows")
    elif sorted_.misfit:
        count = _count(len(sorted_.misfit), "arrow")
        parts.append(
            f"{count} above {SURE:g} that touch a variable which the model does not fit: "
            f"{_arrows(sorted_.misfit, names)}"
        )
        if checked.repeats:
            parts.append(f"the number of rows, because {checked.repetition_in_words}")
    elif not checked.passed:
        parts.append(checked.headline)
    if found.search:
        parts.append(f"that there is no better graph: {found.search}")
    if free:
        them = (
            "the direction of one sure arrow"
            if len(free) == 1
            else (f"the directions of {_count(len(free), 'sure arrow')}")
        )
        parts.append(
            f"{them} if the assumed functions or noise may be wrong, because no independence "
            f"compels {'it' if len(free) == 1 else 'them'}: {_arrows(free, names)}"
        )
    if not parts:
        fits = checked.headline if checked is not None else ""
        return _sentence(
            f"{fits}, and no diagnostic complains; what no check can see are common causes "
            "that were not measured"
        )
    return _sentence("; ".join(parts))


def _arrows(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    return _listed([f"{names[i]} → {names[j]}" for i, j in pairs])


def _listed(words: Sequence[str]) -> str:
    """So many of the words; none is left out to save a single one."""
    shown = len(words) if len(words) <= NAMED + 1 else NAMED
    more = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + more


def _count(number: int, noun: str) -> str:
    words = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
    return f"{words.get(number, number)} {noun}{'s' * (number != 1)}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
