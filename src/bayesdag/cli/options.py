"""Arguments and options that several commands share, and how their text is read."""

import functools
import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Table = Annotated[Path, typer.Argument(help="CSV, Parquet or Excel file: one row per unit.")]
Result = Annotated[Path, typer.Argument(help="Result of `bayesdag fit` (.nc).")]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Compute independent tasks (cells; bags and averaged models of a fit) there: "
        "dask://HOST:PORT, ray://HOST:PORT, spark://HOST:PORT, or loky://4 for processes here."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Top = Annotated[int, typer.Option(min=0, help="Show so many lines.")]
Seed = Annotated[int, typer.Option(help="0 to 2**64 - 1; same seed, same answer.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there already.")]
Interventions = Annotated[
    str | None,
    typer.Option(help="File of the table's shape, or the column that names what was set."),
]
Environment = Annotated[
    list[str] | None,
    typer.Option(
        help="Column that says where a row comes from (numbers, text, yes and no): what each of "
        "its environments acts on becomes part of the answer. column=label: compare with that "
        "label; default: the most frequent one. Repeat for more columns."
    ),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        help="YAML file that says what columns hold, where looking would not tell: `visits: "
        "count`, `grade: [low, mid, high]`; also continuous, ordinal, binary, categorical."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Columns to leave out: names with commas between them; repeat."),
]
Only = Annotated[
    list[str] | None, typer.Option(help="Columns to keep, written as those of --drop.")
]
NaValues = Annotated[
    list[str] | None,
    typer.Option(help="What stands for a missing cell, beside empty ones: -9, ?, unknown; repeat."),
]
Log = Annotated[
    list[str] | None,
    typer.Option(help="Columns of which to take the natural logarithm; called log(...) then."),
]
Decimal = Annotated[
    str | None, typer.Option(help="',' where numbers are written with a decimal comma.")
]
# What `with_preparing` hands over: keywords of `read`.
Steps = dict[str, Any]
NoAssumedRoots = Annotated[
    bool,
    typer.Option(
        "--no-assumed-roots",
        help="Let the data decide whether columns called age, sex, year and the like have causes.",
    ),
]
Cause = Annotated[str, typer.Option(help="Column whose effect is wanted.")]
Outcome = Annotated[str, typer.Option(help="Column that it acts on.")]
EffectValues = Annotated[
    tuple[str, str] | None,
    typer.Option(
        help="Two values of the cause to compare, numbers or labels. Default: one standard "
        "deviation below and above its mean, both values of a binary column, or its first and "
        "last level."
    ),
]


PREPARING = {"drop": Drop, "only": Only, "na_values": NaValues, "log": Log, "decimal": Decimal}


def with_preparing(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all options that prepare a table, in the place of its argument `steps`."""

    @functools.wraps(command)
    def asked(**given: Any) -> None:
        steps = {name: given.pop(name) or None for name in PREPARING}
        command(**given, steps=steps)

    parameters = []
    for own in inspect.signature(command).parameters.values():
        one_by_one = [
            own.replace(name=name, annotation=option, default=None)
            for name, option in PREPARING.items()
        ]
        parameters += one_by_one if own.name == "steps" else [own]
    asked.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    asked.__annotations__ = {one.name: one.annotation for one in parameters}
    return asked


def settings(pairs: list[str]) -> dict[str, str]:
    """Settings of a method from name=value; the method knows their types."""
    from bayesdag.errors import InputError

    for pair in pairs:
        if "=" not in pair:
            raise InputError(
                f"--set takes name=value, for example --set num_samples=500; got {pair!r}"
            )
        if pair.startswith("preset="):
            raise InputError(f"a preset is no setting; use --preset {pair.partition('=')[2]}")
    return {
        name.replace("-", "_"): value for name, _, value in (pair.partition("=") for pair in pairs)
    }


def numbers(option: str, pairs: list[str] | None) -> dict[str, float] | None:
    """A mapping from name=number; None when there is none."""
    from bayesdag.errors import InputError

    numbers = {}
    for pair in pairs or []:
        name, _, value = pair.rpartition("=")
        try:
            numbers[name] = float(value)
        except ValueError:
            raise InputError(f"{option} takes name=number, not {pair!r}") from None
        if not math.isfinite(numbers[name]):
            raise InputError(f"{option} takes a finite number, not {pair!r}")
    return numbers or None


def number_or_label(said: str) -> float | str:
    """A number where it can be read as one; otherwise the label of a level."""
    try:
        return float(said)
    except ValueError:
        return said


def levels_or_numbers(option: str, pairs: list[str] | None) -> dict[str, float | str] | None:
    """A mapping from name=number or name=label; None when there is none."""
    from bayesdag.errors import InputError

    found: dict[str, float | str] = {}
    for pair in pairs or []:
        name, equals, value = pair.rpartition("=")
        if not equals or not value:
            raise InputError(f"{option} takes name=number or name=label, not {pair!r}")
        found[name] = number_or_label(value)
    return found or None


def check_suffix(out: Path) -> None:
    """Found before the fit, not after an hour of it."""
    from bayesdag.errors import InputError

    if out.is_dir():
        raise InputError(
            f"--out: {out} is a folder; name a file in it, such as {out / 'result.nc'}"
        )
    if out.suffix != ".nc":
        raise InputError(f"--out must end in .nc (netCDF), not {str(out)!r}")
    if not out.parent.is_dir():
        raise InputError(f"--out: there is no folder {out.parent}; make it first")


def path_or_name(text: str | None) -> str | Path | None:
    """A path where there is such a file, otherwise the name of a column."""
    return Path(text) if text is not None and Path(text).is_file() else text
