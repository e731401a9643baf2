"""The three sentences: what is sure, what is open, what not to trust."""

from dataclasses import replace

import numpy as np
import pytest

from bayesdag.posterior.check_result import Check, VariableCheck
from bayesdag.report.answer import answer, misfits, sort_pairs
from tests.posteriors import linear, table

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)


def posterior_of(*graphs: np.ndarray, check: Check | None = None, num: int = 40):
    data = table(np.random.default_rng(0), 60, 3)
    draws = np.stack([graphs[k % len(graphs)] for k in range(num)])[None]
    provenance = {"independent": True} | ({} if check is None else {"check": check.summary()})
    return linear(draws, data, provenance=provenance)


def checked(*, misfit: str = "") -> Check:
    variables = [
        VariableCheck(name, 60, shape=1.0 if name == misfit else 0.0) for name in ("a", "b", "c")
    ]
    return Check(tuple(variables), linear=True, fixed_spread=True, gaussian=True)


def said(posterior):
    compelled = posterior.equivalence_classes().compelled_matrix()
    return answer(posterior, posterior.diagnostics(), compelled)


def test_pairs_are_sorted_by_what_is_known_of_them():
    probability = np.array([[0, 0.99, 0.6], [0, 0, 0.3], [0.38, 0.02, 0]])
    found = sort_pairs(probability, set())
    assert found.sure == [(0, 1)]
    assert found.undirected == [(0, 2)]
    assert found.unknown == [(1, 2)]
    assert sort_pairs(probability, {1}).misfit == [(0, 1)]
    assert sort_pairs(probability, {1}).sure == []


def test_every_unordered_pair_is_counted_once():
    rng = np.random.default_rng(1)
    for _ in range(20):
        half = rng.random((5, 5)) / 2
        found = sort_pairs(np.where(np.eye(5), 0, half), set())
        listed = [frozenset(pair) for part in found[:4] for pair in part]
        assert len(listed) == len(set(listed))
        assert found.num_pairs == 10


def test_certain_arrows_and_absent_links_are_sure():
    collider = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
    words = said(posterior_of(collider, check=checked()))
    assert "Two arrows above probability 0.95: a → c, b → c" in words.sure
    assert "1 of the three pairs of variables is surely not linked" in words.sure
    assert words.open.startswith("Nothing about the graph")
    assert "common causes that were not measured" in words.distrust


def test_what_a_probability_has_been_worth_is_said_where_it_is_known():
    measured = replace(checked(), model="linear")
    assert said(posterior_of(CHAIN, check=measured)).worth == measured.reliability
    assert said(posterior_of(CHAIN, check=checked())).worth == ""


def test_sure_directions_that_no_independence_compels_are_named():
    words = said(posterior_of(CHAIN, check=checked()))
    assert "Two arrows above probability 0.95: a → b, b → c" in words.sure
    assert "The directions of two sure arrows if the assumed functions" in words.distrust
    one = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=np.int8)
    words = said(posterior_of(one, check=checked()))
    assert "The direction of one sure arrow" in words.distrust
    assert "compels it: a → b" in words.distrust


def test_directions_that_were_said_are_not_free():
    posterior = posterior_of(CHAIN, check=checked())
    knowledge = {"tiers": [["a"], ["b"], ["c"]]}
    informed = replace(posterior, provenance={**posterior.provenance, "knowledge": knowledge})
    assert "no independence compels" in said(posterior).distrust
    assert "no independence compels" not in said(informed).distrust


def test_links_of_unknown_direction_and_unknown_links_are_open():
    words = said(posterior_of(CHAIN, CHAIN.T, check=checked()))
    assert "No arrow reaches probability 0.95" in words.sure
    assert "a — b" in words.open
    assert "surely linked" in words.open
    words = said(posterior_of(CHAIN, np.zeros_like(CHAIN), check=checked()))
    assert "whether there is a link at all: a — b, b — c" in words.open


def test_arrows_at_variables_that_the_model_does_not_fit_are_not_to_be_trusted():
    posterior = posterior_of(CHAIN, check=checked(misfit="c"))
    assert misfits(posterior) == {2}
    words = said(posterior)
    assert "b → c" not in words.sure
    assert "b → c" in words.distrust
    assert words.caveats


def test_rows_that_repeat_and_searches_that_end_apart_are_said_beside_a_misfit():
    check = replace(checked(misfit="c"), repetition=5.0)
    posterior = posterior_of(CHAIN, check=check)
    search = {"disagreement": {"words": "two searches ended 90.0 nats apart"}}
    provenance = {**posterior.provenance, "search": search}
    found = said(replace(posterior, provenance=provenance)).distrust
    assert "touch a variable which the model does not fit" in found
    assert "5.0 of them are worth one independent row" in found
    assert "two searches ended 90.0 nats apart" in found
    assert "fewer rows than it seems" in check.headline


def test_chains_that_disagree_make_everything_provisional():
    data = table(np.random.default_rng(0), 60, 3)
    draws = np.stack([np.stack([CHAIN] * 40), np.stack([CHAIN.T] * 40)])
    words = said(linear(draws, data))
    assert words.sure.startswith("Provisionally")
    assert "chains disagree" in words.distrust
    assert "has not been checked" in words.distrust


@pytest.mark.parametrize("num", [1, 6, 7, 20])
def test_a_list_never_leaves_out_a_single_arrow(num):
    from bayesdag.report.answer import _listed

    shown = _listed([str(k) for k in range(num)])
    assert shown.count(",") + 1 == (num if num <= 7 else 6)
    assert ("more" in shown) == (num > 7)
