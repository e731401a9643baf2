"""One name, one meaning: no two classes of the package share a name."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "bayesdag"


def homes_of_classes() -> dict[str, list[str]]:
    """The files that define a class of each name; classes within classes aside."""
    homes = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    return homes


def test_no_class_name_is_used_twice():
    assert {name: where for name, where in homes_of_classes().items() if len(where) > 1} == {}


def test_first_lines_of_docstrings_are_statements():
    questions = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        for node in [n for n in ast.walk(tree) if isinstance(n, kinds)]:
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if first.rstrip().endswith("?"):
                questions.append(f"{path.relative_to(SOURCE)}: {first}")
    assert questions == []
