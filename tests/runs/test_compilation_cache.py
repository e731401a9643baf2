"""Compiled programs are kept where the user has said, or nowhere, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bayesdag.runs import compilation_cache

PROGRAM = """
import jax
from bayesdag.runs import compilation_cache
compilation_cache._LEAST_SECONDS = 0.0
compilation_cache.enable()
print(jax.config.jax_compilation_cache_dir)
jax.jit(lambda x: x @ x)(jax.numpy.ones((3, 3))).block_until_ready()
"""


def run(**variables):
    """What a new process says, and what it complains of."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XDG_"))}
    source = str(Path(compilation_cache.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=clean | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": source} | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_programs_are_kept_in_the_users_cache_folder(tmp_path):
    said, complaints = run(XDG_CACHE_HOME=str(tmp_path))
    assert Path(said).parent == tmp_path / "bayesdag" / "programs"
    assert any(Path(said).iterdir())
    assert complaints == ""


def test_what_jax_was_told_is_not_contradicted(tmp_path):
    said, _ = run(JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine"), XDG_CACHE_HOME=str(tmp_path))
    assert said == str(tmp_path / "mine")
    assert not (tmp_path / "bayesdag").exists()


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert run(BAYESDAG_CACHE=str(tmp_path / "file" / "below")) == ("None", "")


@pytest.mark.parametrize("word", compilation_cache.OFF)
def test_nothing_is_kept_where_that_is_asked_for(monkeypatch, word):
    monkeypatch.setenv("BAYESDAG_CACHE", word.upper())
    assert compilation_cache.folder() is None


def test_the_oldest_programs_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", 25)
    for age in range(4):
        (tmp_path / f"{age}").write_bytes(bytes(10))
        os.utime(tmp_path / f"{age}", (1000 - age, 1000 - age))
    compilation_cache._make_room(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1"]
