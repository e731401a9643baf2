"""The command in this process: what it prints and returns, without the start of another."""

import pytest

from bayesdag.cli.app import app, refusals_in_words


@pytest.fixture
def command(capsys):
    """Run the command here: its exit code, stdout and stderr."""

    def run(*arguments) -> tuple[int, str, str]:
        try:
            with refusals_in_words():
                app([str(argument) for argument in arguments])
        except SystemExit as stopped:
            return int(stopped.code or 0), *capsys.readouterr()
        return 0, *capsys.readouterr()

    return run
