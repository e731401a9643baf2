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


@pytest.fixture
def command_in(command, monkeypatch):
    """The same in a folder, with room for wide tables."""

    def of(folder):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "200")
        return command

    return of


def answer(run, *arguments):
    """What a command prints that succeeds."""
    code, out, err = run(*arguments)
    assert code == 0, err
    return out
