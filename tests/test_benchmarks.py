"""The scripts that measure speed still fit the package, and their pages show what is kept."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[1] / "benchmarks"
WANTED = ("5000x20", "178x14", "2000x50", "cells.csv", "5000x10", "442x11", "5000x50x4")


@pytest.fixture(scope="module")
def stages() -> ModuleType:
    found = importlib.util.spec_from_file_location("stages", SCRIPTS / "stages.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_stage_that_is_timed_is_a_function_of_the_package(stages):
    missing = [f"{home}.{name}" for home, name, _ in stages.STAGES if not hasattr(home, name)]
    assert not missing
    assert hasattr(stages.crossfit, "networks")
    assert hasattr(stages.network_cache.NetworkCache, "_keep_better")


def test_the_page_of_profiles_shows_all_that_are_kept_by_size(stages, tmp_path, monkeypatch):
    stamp = {"commit": "0123456789", "changed": False, "device": "2 cores"}
    monkeypatch.setattr(stages.stamps, "provenance", lambda: stamp)
    profile = {
        "stages": [{"stage": "networks", "s": 2.0, "cpu_s": 1.0, "compiling_s": 0.0}],
        "workers": 1,
        "edges": 10,
        "batches": {"asked for, up to 1 parents": 3},
        "families": 30,
        "with_networks": 3,
        "in_one_fold": 1,
        "trained_again": 0,
        "better": 0,
    }
    for name in WANTED:
        workers = 2 if name == "442x11" else 1
        stages.keep(tmp_path / "stages.json", name, profile | {"workers": workers})
    page = (tmp_path / "stages.md").read_text()
    shown = [line[3:].partition(":")[0] for line in page.splitlines() if line.startswith("## ")]
    by_size = ["5000x10", "442x11", "178x14", "5000x20", "2000x50", "5000x50x4", "cells.csv"]
    assert shown == by_size
    assert page.count("2 processes, of which one is seen here") == 1
    assert page.count("Commit 0123456, 2 cores") == len(WANTED)
    assert set(json.loads((tmp_path / "stages.json").read_text())) == set(WANTED)


def test_profiles_of_this_repository_can_be_shown(stages, tmp_path):
    """Also those that were kept before processes were counted."""
    kept = json.loads((SCRIPTS / "results" / "stages.json").read_text())
    stages.write_page(tmp_path / "stages.json", kept)
    page = (tmp_path / "stages.md").read_text()
    assert all(f"## {name}: " in page for name in kept)


@pytest.mark.parametrize("name", ["178x14", "442x11", "5000x10", "5000x20", "2000x50"])
def test_tables_have_the_size_of_their_name(stages, name):
    rows, columns = map(int, name.split("x"))
    data, num_edges = stages.table(name)
    assert data.values.shape == (rows, columns)
    assert num_edges == 2 * columns
