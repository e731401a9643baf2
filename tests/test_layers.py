"""A module imports only from layers below its own, and heavy packages stay in their rooms."""

import ast
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


def every_import(path: Path) -> set[str]:
    return imports(ast.walk(ast.parse(path.read_text())))


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


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_module_imports_only_from_the_rows_below_it(path):
    assert room(path) in ROW, f"{room(path)} has no row: a noun is missing or misplaced"
    assert broken_rules(path, every_import(path)) == []


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


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_packages_stay_in_their_rooms(path):
    tops = {name.partition(".")[0] for name in every_import(path)}
    for package, rooms in CONFINED.items():
        assert package not in tops or room(path) in rooms, f"{package} in {path.name}"
    at_import = {name.partition(".")[0] for name in imports(ast.parse(path.read_text()).body)}
    assert not at_import & LAZY, f"{path.name} must import {at_import & LAZY} inside a function"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_below_the_command_prints(path):
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    prints = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "print"]
    assert room(path) == "cli" or not prints
