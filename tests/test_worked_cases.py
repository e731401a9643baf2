"""The worked cases: verdicts on arrows, and pages that hold together."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bayesdag import fit
from bayesdag.data import read
from bayesdag.datasets import Benchmark
from tests.toys import TRUTH, toy_frame

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def cases():
    spec = importlib.util.spec_from_file_location("worked_cases", DOCS / "worked_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_arrows_are_held_against_the_truth(cases):
    unknown = np.zeros((4, 4), dtype=bool)
    unknown[0, 3] = True
    source = Benchmark(train=read(toy_frame()), graph=TRUTH, unknown=unknown)
    found = [cases.verdict(source, *pair) for pair in ((0, 1), (1, 0), (3, 1), (0, 3))]
    assert found == ["true", "reversed", "no such link", "not scored"]


def test_sure_arrows_come_most_probable_first(cases):
    posterior = fit(toy_frame(), "exact", knowledge={"tiers": [["rain"], ["soil"], ["crop"]]})
    found = cases.sure_arrows(posterior)
    edge = posterior.edge_matrix()
    assert (0, 1) in found
    assert all(edge[pair] >= 0.95 for pair in found)
    assert [edge[pair] for pair in found] == sorted((edge[p] for p in found), reverse=True)


def test_pages_are_those_of_the_cases_and_say_how_they_were_made(cases):
    pages = {path.stem for path in (DOCS / "cases").glob("*.md")}
    assert pages == {"everyday-tables"} | {case.name for case in cases.CASES}
    for case in cases.CASES:
        text = (DOCS / "cases" / f"{case.name}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# {case.title}")
        assert "python docs/worked_cases.py" in text
        assert case.begin in text
        assert case.end in text
