"""The application: its help, and how refusals, warnings and closed pipes reach the user."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from bayesdag._version import __version__
from bayesdag.text import printable

STOPPED = 130  # exit code after Ctrl-C

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def examples(*lines: str) -> str:
    """The end of a command's help: lines to copy, kept as they are."""
    return "\n".join(["\b", "Examples:", *(f"  bayesdag {line}" for line in lines)])


EXAMPLES = examples(
    "fit cells.csv --out cells.nc",
    "show cells.nc",
    "show cells.nc --variable Raf",
    "effect cells.nc --cause Raf --outcome Mek --values 0 1",
    "COMMAND --help                  (every command has examples)",
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"bayesdag {__version__}")
        raise typer.Exit
    return wanted


@app.callback(epilog=EXAMPLES)
def bayesdag(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Bayesian causal discovery: what causes what, and how certain that is."""
    del version


def run() -> None:
    """Run the command as a process of its own.

    After Ctrl-C it ends at once: threads of XLA may still compile, and an interpreter that is
    taken down around them crashes.
    """
    try:
        main()
    except SystemExit as ended:
        if ended.code != STOPPED:
            raise
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(STOPPED)


def main() -> None:
    """Run the command; refusals are one message on stderr and exit code 2."""
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        # A terminal that cannot show a letter shows its number, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")  # pyright: ignore
    if sys.argv[1:2] != ["bench"]:  # which times other programs as they are
        # Read when numpy is imported, which nobody has done yet. Matrices are small here, and
        # threads that wait for one another take longer than the work where a machine is busy.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with refusals_in_words():
        app()


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Refusals as one message on stderr, and exit code 2; a closed pipe ends in silence."""
    warnings.showwarning = _short_warning
    try:
        try:
            yield
        finally:
            _flush()
    except ValueError as error:
        if not _is_refusal(error):
            raise
        _complain(str(error))
        sys.exit(2)
    except MemoryError:
        _complain("not enough memory; ask for fewer columns, rows, draws or chains")
        sys.exit(2)
    except KeyboardInterrupt:
        _complain("stopped")
        sys.exit(STOPPED)
    except BrokenPipeError:
        _forget_stdout()
        sys.exit(141)  # what a command that a closed pipe ends says


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _forget_stdout() -> None:
    """Nobody reads any more: what is left goes nowhere, also when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _complain(message: str) -> None:
    lines = "\n".join(printable(line) for line in message.split("\n"))
    typer.echo(f"bayesdag: {lines}", err=True)


def _is_refusal(error: ValueError) -> bool:
    from bayesdag.errors import BayesdagError

    return isinstance(error, BayesdagError)


def _short_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"bayesdag: note: {printable(str(message))}", err=True)
