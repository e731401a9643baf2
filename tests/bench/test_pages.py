"""Stored pages are what their cells say: nobody wrote in them, and none is of an earlier layout."""

from dataclasses import replace
from pathlib import Path

import pytest

from bayesdag.bench import Store, load_suite, suite_names, write_comparison, write_page

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "experiments/results", ROOT / "benchmarks/results")
PAGES = [
    path for folder in FOLDERS for path in sorted(folder.glob("*.md")) if path.stem in suite_names()
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_what_its_cells_say(path, tmp_path):
    wanted, store = load_suite(path.stem), Store(path.with_suffix(""))
    collected = [load_suite(name) for name in wanted.collects]
    parts = [part for one in collected for part in one.parts]
    whole = replace(wanted, parts=(*wanted.parts, *parts))
    stores = [Store(path.with_name(name)) for name in wanted.collects]
    write_page(tmp_path / path.name, path.stem, whole, store, *stores)
    assert (tmp_path / path.name).read_text() == path.read_text()


def test_the_comparison_is_what_the_cells_say(tmp_path):
    for path in FOLDERS[0].glob("*.jsonl.gz"):
        (tmp_path / path.name).symlink_to(path)
    write_comparison(tmp_path)
    for name in ("comparison.md", "comparison_rows.md", "coverage.md"):
        assert (tmp_path / name).read_text() == (FOLDERS[0] / name).read_text()
