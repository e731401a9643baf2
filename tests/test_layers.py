"""A module imports only from layers below its own, and heavy packages stay in their rooms."""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "bayesdag"

# Bottom row first.
LAYERS = [
    {"_version"},
    {"errors", "text"},
    {"types"},
    {"plugins", "random"},
    {"graphs"},
    {"data", "knowledge", "runs"},
    {"model"},
    {"scores", "plot"},
    {"posterior", "metrics"},
    {"orders", "exact", "sgmcmc"},
    {"baselines"},
    {"methods", "datasets"},
    {"fitting"},
    {"report", "bench"},
    {"cli"},
    {"__init__", "__main__"},
]
ROW = {module: row for row, modules in enumerate(LAYERS) for module in modules}
MOST_AT_THE_ROOT = 10
# Plug-in families, whose files never import one another.
SEPARATE = {
    *("model/mechanisms", "model/noises", "model/priors"),
    *("sgmcmc/relaxations", "sgmcmc/samplers", "sgmcmc/edges"),
    *("sgmcmc/masks", "sgmcmc/gradients"),
    *("scores", "methods"),
}
# Methods made of other methods.
CHOOSERS = {"auto.py", "averaged.py", "bagged.py", "imputed.py"}
CONFINED = {
    "matplotlib": {"plot"},
    "jinja2": {"report"},
    "typer": {"cli"},
    "rich": {"cli", "runs"},
    "beartype": set(),
    "joblib": {"runs"},
    "distributed": {"runs"},
}
LAZY = {
    *("arviz_base", "arviz_stats", "pooch", "yaml", "h5py", "h5netcdf", "pyarrow", "matplotlib"),
    *("joblib", "distributed"),
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    """The module or plug-in folder a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def folder(dotted: str) -> str:
    """The plug-in folder that a dotted name points into, or an empty string."""
    parts = dotted.split(".")[1:]
    found = [f for f in SEPARATE if parts[: f.count("/") + 1] == f.split("/")]
    return found[0] if found else ""


def imports(nodes) -> set[str]:
    """Dotted names imported by some syntax nodes, `from x import y` as x.y."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def every_import(path: Path) -> set[str]:
    return imports(ast.walk(syntax(path)))


def broken_rules(path: Path, imported: set[str]) -> list[str]:
    """What is wrong with the package's own imports of one file."""
    home, wrong = room(path), []
    family = path.relative_to(SOURCE).parent.as_posix()
    for name in imported:
        if name.partition(".")[0] != "bayesdag":
            continue
        other = name.split(".")[1]
        other = other if other in ROW else "__init__"
        private = "._" in name or path.name.startswith("_")
        sibling = family in SEPARATE and folder(name) == family
        sibling = sibling and path.name not in CHOOSERS and not private
        if sibling or (other != home and ROW[other] >= ROW[home]):
            wrong.append(f"{path.relative_to(SOURCE)} must not import {name}")
    return wrong


def test_few_modules_stand_at_the_root():
    assert len(list(SOURCE.glob("*.py"))) <= MOST_AT_THE_ROOT


def test_every_module_belongs_to_a_row():
    rooms = {room(path) for path in modules()}
    assert rooms <= set(ROW), "a room without a row: a noun is missing or misplaced"


def test_a_module_imports_only_from_the_rows_below_it():
    assert [wrong for path in modules() for wrong in broken_rules(path, every_import(path))] == []


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("graphs/adjacency.py", "bayesdag.fitting.fit"),
        ("scores/bge.py", "bayesdag.scores.linear_gaussian.LinearGaussian"),
        ("methods/exact.py", "bayesdag.cli"),
        ("model/noises/gaussian.py", "bayesdag.model.noises.student_t.StudentT"),
        ("data/dataset.py", "bayesdag.knowledge.Knowledge"),
    ],
)
def test_the_rule_notices_an_upward_or_sideways_import(file, name):
    assert broken_rules(SOURCE / file, {name})


def out_of_place(path: Path, imported: set[str]) -> list[str]:
    """Heavy packages that a file imports outside their rooms."""
    tops = {name.partition(".")[0] for name in imported}
    found = [p for p, rooms in CONFINED.items() if p in tops and room(path) not in rooms]
    return [f"{path.relative_to(SOURCE)} must not import {package}" for package in found]


def too_early(path: Path, at_import: set[str]) -> list[str]:
    """Heavy packages that a file imports before it uses them."""
    tops = {name.partition(".")[0] for name in at_import}
    found = sorted(tops & LAZY)
    return [f"{path.relative_to(SOURCE)} must import {p} inside a function" for p in found]


def test_heavy_packages_stay_in_their_rooms():
    assert [wrong for path in modules() for wrong in out_of_place(path, every_import(path))] == []


def test_heavy_packages_are_imported_where_they_are_used():
    tops = {path: imports(syntax(path).body) for path in modules()}
    assert [wrong for path, names in tops.items() for wrong in too_early(path, names)] == []


def test_the_rules_notice_a_heavy_package():
    at = SOURCE / "graphs/adjacency.py"
    assert out_of_place(at, {"matplotlib.pyplot"})
    assert not out_of_place(SOURCE / "plot/axes.py", {"matplotlib.pyplot"})
    assert too_early(at, {"h5py.File"})


def prints(path: Path) -> bool:
    calls = (node for node in ast.walk(syntax(path)) if isinstance(node, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls)


def test_nothing_below_the_command_prints():
    assert [str(path) for path in modules() if room(path) != "cli" and prints(path)] == []
