"""Everything that the documents tell a reader to type works, and every path in them exists."""

import re
import shlex
import shutil
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayesdag
from bayesdag import plugins
from bayesdag.cli.app import app
from bayesdag.data import kinds
from bayesdag.knowledge import Knowledge
from bayesdag.report.glossary import as_markdown
from tests.toys import toy_frame

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def short_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=short_name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the tables that the documents mention, which commands start in."""
    example = ROOT / "src/bayesdag/datasets/files/greenhouse.csv"
    shutil.copy(example, tmp_path / "greenhouse.csv")
    cells().to_csv(tmp_path / "cells.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def cells() -> pd.DataFrame:
    """As many rows and columns as in the contracts of methods: their compiled programs serve."""
    return toy_frame().set_axis(["Raf", "Mek", "Erk", "Akt"], axis=1)


def blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return BLOCK.findall(path.read_text())


def run(line: str) -> str:
    """What a command prints; anything but success fails the test."""
    words = shlex.split(line, comments=True)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, f"{line}\n{done.output}"
    return done.output


def is_printed(line: str, printed: str) -> bool:
    """Whether some printed line has the same words, and numbers that are nearly the same."""
    return any(is_like(line.split(), other.split()) for other in printed.splitlines())


def is_like(words: list[str], others: list[str]) -> bool:
    if len(words) != len(others):
        return False
    numbers = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
    return all(
        abs(float(word) - float(other)) < 0.02
        if numbers.fullmatch(word) and numbers.fullmatch(other)
        else word == other
        for word, other in zip(words, others, strict=True)
    )


@every_document
def test_commands_and_code_in_documents_run_and_print_what_they_show(path, folder):
    printed, names = "", {"frame": cells()}  # blocks of one document go on from one another
    for language, text in blocks(path):
        if language == "python":
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".* cells are missing")
                exec(compile(text, str(path), "exec"), names)
        elif language == "yaml":
            read_knowledge(text, folder)
        elif text.startswith("bayesdag "):
            printed = "".join(run(line) for line in text.splitlines())
        elif text.startswith("pip "):
            assert set(re.findall(r"'\.\[(\w+)\]'", text)) <= set(EXTRAS)
        elif not text.startswith("make "):
            missing = [line for line in text.splitlines() if not is_printed(line, printed)]
            assert missing == [], f"{path.name} shows what is not printed:\n{printed}"


def read_knowledge(text: str, folder: Path) -> None:
    """A block that begins with its file's name is that file; any other is read as it is."""
    name = re.match(r"# (\S+\.yaml)\n", text)
    file = folder / (name[1] if name else "knowledge.yaml")
    file.write_text(text)
    if file.name == "kinds.yaml":
        assert kinds.declarations(file)
    else:
        assert Knowledge.read(file) != Knowledge()


@every_document
def test_every_make_target_in_documents_exists(path):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for _, text in blocks(path):
        assert set(re.findall(r"^make (\w+)", text, re.MULTILINE)) <= targets


@every_document
def test_every_link_to_a_file_leads_somewhere(path):
    wanted = {path.parent / target for target in LINK.findall(path.read_text())}
    assert [str(target) for target in wanted if not target.is_file()] == []


def test_every_page_is_in_the_contents():
    listed = {"index"}
    for page in (ROOT / "docs").rglob("*.md"):
        for tree in re.findall(r":::\{toctree\}\n(.*?)\n:::", page.read_text(), re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            home = page.parent.relative_to(ROOT / "docs")
            listed |= {(home / name).as_posix() for name in names}
    pages = {p.relative_to(ROOT / "docs").with_suffix("").as_posix() for p in DOCUMENTS[1:]}
    assert pages == listed


def test_every_stored_table_has_a_page():
    stored = {path.stem for path in (ROOT / "experiments/results").glob("*.md")}
    assert stored <= {path.stem for path in (ROOT / "docs/results").glob("*.md")}


def test_every_page_of_results_shows_stored_tables():
    included = re.compile(r"^:::\{include\} (\S+)$", re.MULTILINE)
    for path in (ROOT / "docs/results").glob("*.md"):
        for name in included.findall(path.read_text()):
            assert (path.parent / name).resolve().exists(), f"{path.name} includes {name}"


def test_every_public_name_has_an_example():
    text = (ROOT / "docs" / "api.md").read_text()
    code = "\n".join(block for language, block in BLOCK.findall(text) if language == "python")
    for name in bayesdag.__all__:
        assert f"bayesdag.{name}" in code, name
        assert name == "__version__" or f"}} bayesdag.{name}\n" in text


def test_every_method_has_a_page():
    pages = "\n".join(p.read_text() for p in (ROOT / "docs" / "methods").glob("*.md"))
    for name in plugins.names("methods"):
        assert f"bayesdag.methods.{name}." in pages


def test_the_glossary_of_the_site_is_that_of_the_report():
    assert (ROOT / "docs" / "glossary.md").read_text() == as_markdown()


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=short_name)
def test_every_module_that_a_document_names_exists(path):
    named = set(re.findall(r"`([\w/]+\.py)`", path.read_text())) - {"foo.py"}
    homes = (ROOT, ROOT / "src/bayesdag")
    missing = {n for n in named if "foo" not in n and not any((h / n).is_file() for h in homes)}
    assert missing == set()


def test_the_blocks_are_found():
    assert sum(len(blocks(path)) for path in DOCUMENTS) > 10
    assert np.isfinite(cells().to_numpy()).all()
