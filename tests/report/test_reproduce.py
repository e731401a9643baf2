"""The command on the page makes the same settings again."""

import shlex
from dataclasses import replace

import pytest
import yaml

from bayesdag import fitting, plugins
from bayesdag.cli.options import settings
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.report import reproduce
from bayesdag.scores.linear_gaussian import LinearGaussian
from tests.posteriors import random_linear


def result_of(method, **more):
    provenance = {"method": plugins.configuration(method), "seed": 7, "knowledge": {}, **more}
    return replace(random_linear(0, d=3), provenance=provenance)


def rebuilt(command: str):
    """The method that the options of a command give."""
    words = shlex.split(command.replace("\\\n", " "))
    options = list(zip(words[3::2], words[4::2], strict=True))
    chosen = dict(options)
    pairs = [value for name, value in options if name == "--set"]
    return fitting.build_method(
        chosen["--method"], preset=chosen.get("--preset"), **settings(pairs)
    )


@pytest.mark.parametrize(
    "method",
    [
        Exact(),
        Exact(num_samples=77),
        Collapsed(),
        Collapsed(score=LinearGaussian(), num_chains=3),
        *Collapsed.PRESETS.values(),
        *(plugins.load("methods", name)() for name in plugins.names("methods")),
    ],
    ids=lambda method: repr(method)[:60],
)
def test_the_command_gives_the_same_method(method):
    command = reproduce.command(result_of(method), "t.csv", "r.nc")
    assert command.startswith("bayesdag fit t.csv --out r.nc")
    assert rebuilt(command) == method
    assert "--seed 7" in command


def test_what_the_command_line_cannot_say_is_said_in_python():
    method = Bagged(method=Exact(num_samples=50))
    code = reproduce.command(result_of(method), "t.csv", "r.nc")
    found = {}
    exec(code.partition("posterior =")[0], found)
    assert found["method"] == method
    compile(code, "code", "exec")


def test_knowledge_interventions_and_scaling_are_named():
    scaling = {"shift": [0.0, 0.0, 0.0], "scale": [1.0, 1.0, 1.0]}
    known = {"required": [["a", "b"]]}
    posterior = result_of(Exact(), knowledge=known, scaling=scaling)
    posterior = replace(posterior, summary=posterior.summary | {"num_rows_with_interventions": 3})
    command = reproduce.command(posterior)
    for words in ("--knowledge knowledge.yaml", "--interventions", "--scaling none"):
        assert words in command.replace("\\\n   ", "")
    assert yaml.safe_load(reproduce.knowledge(posterior)) == known


def test_file_names_are_quoted_and_merged_results_say_so():
    assert "'my table.csv'" in reproduce.command(result_of(Exact()), "my table.csv")
    assert "merge" in reproduce.command(result_of(Exact(), seed=[1, 2]))


def test_roots_assumed_by_names_are_assumed_again_and_no_knowledge_of_the_user():
    said = {"knowledge": {"assumed_roots": ["age"], "sinks": ["z"]}}
    result = result_of(Exact(), **said)
    assert yaml.safe_load(reproduce.knowledge(result)) == {"sinks": ["z"]}
    assert "--no-assumed-roots" not in reproduce.command(result, "t.csv", "r.nc")


def test_roots_that_were_not_assumed_are_not_assumed_again():
    summary = {"columns": {"age": {"kind": "continuous"}, "x": {}}}
    result = replace(result_of(Exact()), summary=summary)
    assert "--no-assumed-roots" in reproduce.command(result, "t.csv", "r.nc")
