"""What is declared is used, and what is used is declared: in the package and in its tests."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Import name: distribution, where the two differ.
DISTRIBUTIONS = {"arviz_stats": "arviz-stats", "yaml": "pyyaml", "xdist": "pytest-xdist"}
# Distributions that another package loads on our behalf: where in the source we ask for it.
INDIRECT = {
    "pyarrow": "pd.read_parquet(",
}
# Tools of the extra `dev` that are called, not imported: where.
# What only one room needs, and asks for by the name of its extra where it is missing.
OPTIONAL = {"plot": {"matplotlib"}, "cluster": {"joblib", "distributed"}}
TOOLS = {
    "ruff": ("Makefile", "$(BIN)/ruff"),
    "pyright": ("Makefile", "$(BIN)/pyright"),
}
# Programs that other interpreters run, with packages of theirs.
FOREIGN = ROOT / "src" / "bayesdag" / "bench" / "external"


def declared(requirements: list[str]) -> set[str]:
    """Names of distributions, without versions and extras."""
    return {re.split(r"[\s\[<>=!~;]", text)[0].lower() for text in requirements}


def imported(folder: str) -> dict[str, set[str]]:
    """Distributions that the files of a folder import, with the files."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        if FOREIGN in path.parents:
            continue
        for name in _top_names(path):
            if name not in sys.stdlib_module_names | {"bayesdag", "tests"}:
                found.setdefault(DISTRIBUTIONS.get(name, name), set()).add(path.name)
    return found


def _top_names(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def source() -> str:
    return "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "src").rglob("*.py"))


NEEDED = declared(PROJECT["dependencies"])
EXTRAS = {name: declared(some) for name, some in PROJECT["optional-dependencies"].items()}


def test_what_the_package_imports_is_declared():
    known = NEEDED.union(*OPTIONAL.values())
    missing = {name: files for name, files in imported("src").items() if name not in known}
    assert missing == {}


@pytest.mark.parametrize("extra", OPTIONAL)
def test_what_is_optional_has_an_extra_that_the_error_names(extra):
    assert OPTIONAL[extra] == EXTRAS[extra]
    assert not OPTIONAL[extra] & NEEDED
    assert f"bayesdag[{extra}]" in source()


def test_what_is_declared_is_imported_or_asked_for_by_name():
    unused = NEEDED - set(imported("src")) - set(INDIRECT)
    assert unused == set()


@pytest.mark.parametrize("name", INDIRECT)
def test_what_another_package_loads_is_still_asked_for(name):
    assert name in NEEDED
    assert INDIRECT[name] in source()


def test_what_the_tests_import_is_declared():
    assert set(imported("tests")) - NEEDED - EXTRAS["dev"] == set()


def test_every_extra_is_used():
    assert set(EXTRAS) == {"cuda", "dev", "docs", "rivals", "excel", *OPTIONAL}
    assert "bayesdag[excel]" in source()
    settings = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    for name in EXTRAS["docs"] - {"sphinx"}:
        assert name.replace("-", "_") in settings
    assert EXTRAS["cuda"] <= NEEDED  # the same distribution, built for another device
    assert EXTRAS["dev"] - set(imported("tests")) == set(TOOLS)


def test_every_rival_is_run_by_a_program_of_its_own():
    names = {"causal-learn": "causallearn", "gcastle": "castle"}
    asked = set().union(*(_top_names(path) for path in FOREIGN.glob("*.py")))
    assert {names.get(rival, rival) for rival in EXTRAS["rivals"]} <= asked


def test_rivals_can_be_installed_beside_the_package():
    assert "numpy" in NEEDED  # 2 or newer; sdcd wants one before it, and has its own environment
    assert not {"sdcd", "sumu"} & EXTRAS["rivals"]


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_is_called(name):
    file, words = TOOLS[name]
    assert words in (ROOT / file).read_text(encoding="utf-8")
