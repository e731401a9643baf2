"""What the command says of itself: version, examples, methods with their settings."""

import dataclasses
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bayesdag import __version__, plugins
from bayesdag.cli import app
from bayesdag.cli.method_help import describe, meanings

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


def answer(*arguments) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_version_is_told():
    assert answer("--version") == f"bayesdag {__version__}\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_examples(command):
    text = answer(*command.split(), "--help")
    _, _, examples = text.partition("Examples:\n")
    assert f"  bayesdag {command}" in examples


@pytest.mark.parametrize("name", plugins.names("methods"))
def test_every_setting_of_every_method_has_a_default_and_a_meaning(name):
    found = json.loads(answer("methods", name, "--json"))
    method = plugins.load("methods", name)
    fields = [field.name for field in dataclasses.fields(method)]
    assert [row["setting"] for row in found["settings"]] == fields
    assert all(row["meaning"] and row["default"] for row in found["settings"])
    assert set(found["presets"]) == set(getattr(method, "PRESETS", {}))


def test_settings_are_shown_with_what_a_preset_changes():
    text = answer("methods", "collapsed")
    assert "num_samples" in text
    assert "num_starts=2" in text
    assert describe("collapsed").presets["quick"][0].startswith("num_chains=")


def test_meanings_are_read_from_the_docstring():
    @dataclasses.dataclass
    class Some:
        """A thing.

        Attributes:
            first: what it is, over
                two lines: with a colon.
            second: another.

        Other:
            third: not an attribute.
        """

        first: int = 1
        second: int = 2

    assert meanings(Some) == {
        "first": "what it is, over two lines: with a colon.",
        "second": "another.",
    }


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["methods"], ["fit", "--help"]])
def test_what_needs_no_computation_does_not_wait_for_jax_or_pandas(arguments):
    code = (
        "import sys, bayesdag.cli as c\n"
        f"sys.argv = ['bayesdag', *{arguments}]\n"
        "try: c.main()\n"
        "except SystemExit: pass\n"
        "sys.exit(str({'jax', 'pandas', 'scipy'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
