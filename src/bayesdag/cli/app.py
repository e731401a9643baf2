"""The application: its help, and how refusals and warnings reach the user."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

app = typer.Typer(
    help="Bayesian causal discovery: what causes what, and how sure can you be?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command; refusals are one message on stderr and exit code 2."""
    with refusals_in_words():
        app()


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Refusals as one line on stderr, and exit code 2."""
    warnings.showwarning = _short_warning
    try:
        yield
    except ValueError as error:
        if not _is_refusal(error):
            raise
        typer.echo(f"bayesdag: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("bayesdag: stopped", err=True)
        sys.exit(130)


def _is_refusal(error: ValueError) -> bool:
    from bayesdag.errors import BayesdagError

    return isinstance(error, BayesdagError)


def _short_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"bayesdag: note: {message}", err=True)
