"""The file that a command writes: nothing is overwritten, nothing is lost.

Before the work: the file is new, or `--force` was given; the folder can be written and has
room; no other run writes the same file. After it: a result that cannot be written where it
belongs is written elsewhere, and a run that was stopped says what it left.
"""

import dataclasses
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayesdag.cli.app import STOPPED
from bayesdag.cli.output import say

if TYPE_CHECKING:
    from bayesdag.posterior import Posterior
    from bayesdag.types import Method


def produced(
    out: Path,
    run: Callable[["KeptProgress"], "Posterior"],
    *,
    num_bytes: int,
    find: Callable[[], "Posterior | None"] | None,
    partial: Path | None = None,
) -> "Posterior":
    """The result that belongs in `out`: found there, or made by `run` and written.

    Args:
        out: its file; no other run writes it meanwhile.
        run: makes the result, and reports how far it is.
        num_bytes: a rough estimate of its size, for which there must be room.
        find: what stands in `out`, where that is the asked-for result; refuses any other.
            None overwrites what is there.
        partial: the checkpoint of `run`.
    """
    from bayesdag.runs.files import check_room, locked

    with locked(out), stoppable(partial) as kept:
        found = None if find is None else find()
        if found is not None:
            _forget(partial)
            say(f"{out} holds this very result already; --force fits it again", True)
            return found
        check_room(out, num_bytes)
        posterior = run(kept)
        _save(posterior, out, partial)
        return posterior


def refuse_existing(out: Path, why: str = "it is there already") -> None:
    """Refuse to overwrite a file of whatever kind."""
    from bayesdag.errors import InputError

    if out.exists() or out.is_symlink():
        raise InputError(
            f"--out: {out} is not overwritten: {why}. Choose another name, or pass --force"
        )


def finished(out: Path, wanted: Mapping[str, Any], keep_state: bool = False) -> "Posterior | None":
    """The result in `out` if it has all the settings in `wanted`; another one is refused."""
    from bayesdag.errors import FileFormatError
    from bayesdag.posterior import load

    if not out.exists():
        return None
    try:
        found = load(out)
    except FileFormatError:
        return refuse_existing(out, "it is no result of this program")
    plain = json.loads(json.dumps(wanted))
    other = sorted(name for name in plain if found.provenance.get(name) != plain[name])
    if other:
        said = ", ".join("data" if name == "data_hash" else name for name in other)
        refuse_existing(out, f"it holds a result with another {said}")
    if keep_state and found.state is None:
        refuse_existing(out, "it holds this result without the state that extend needs")
    return found


def extended(out: Path, shorter: "Posterior", num_samples: int) -> "Posterior | None":
    """The result in `out` if it is `shorter` with as many more draws; another is refused."""
    same = ("data_hash", "seed", "knowledge", "scaling")
    wanted = {name: shorter.provenance[name] for name in same if name in shorter.provenance}
    found = finished(out, wanted)
    if found is not None and _uncounted(found) != _uncounted(shorter):
        refuse_existing(out, "it holds a result with another method")
    if found is not None and found.num_draws != shorter.num_draws + num_samples:
        refuse_existing(out, f"it holds a result of {found.num_draws} draws per chain")
    return found


def expected_bytes(method: "Method", num_variables: int) -> int:
    """A rough upper estimate of a result's size: graphs and functions of all draws.

    Linear results take 30 to 40 bytes per draw and variable, neural ones 80 and, with many
    parents, up to 500.
    """
    return 10**5 + 500 * _num_draws(method) * num_variables


def _save(posterior: "Posterior", out: Path, partial: Path | None) -> None:
    """Write the result; where that fails, keep it elsewhere and say where.

    Args:
        posterior: the finished result.
        out: where it belongs.
        partial: the checkpoint, which is not needed once the result is written.
    """
    from bayesdag.errors import WriteError

    try:
        posterior.save(out)
    except WriteError as error:
        place = _rescued(posterior, out)
        if place is not None:
            raise WriteError(f"{error}. The finished result is in {place}") from error
        kept = partial is not None and partial.exists()
        advice = f"; {partial} is kept: make room and repeat the command" if kept else ""
        raise WriteError(f"{error}, nor could it be kept elsewhere{advice}") from error
    # Only now: a kill between the two leaves the checkpoint, and the command ends the same.
    _forget(partial)


def _forget(partial: Path | None) -> None:
    if partial is not None:
        partial.unlink(missing_ok=True)


@dataclasses.dataclass
class KeptProgress:
    """Watches a run, and knows what its checkpoint holds: that was written just before.

    Attributes:
        partial: the file of the checkpoint.
    """

    partial: Path

    def __post_init__(self) -> None:
        self._seen = self._stamp()
        self._now = self._kept = ""

    def resume(self, template: object) -> None:
        """Nothing is kept here."""
        del template

    def chunk(self, step: int, total: int, state: object, stats: dict[str, float]) -> None:
        """Note how far the run is."""
        del state, stats
        self._note(f"step {step} of {total}")

    def report(self, words: str, *counts: object) -> None:
        """Note what is being done."""
        del counts
        self._note(words)

    def words(self) -> str:
        """Message of an interrupted run: what is kept, and how to go on."""
        self._note(self._now)
        if not self._seen:
            return "stopped before the first checkpoint: nothing was kept"
        age = max(0, round(time.time() - self._seen[0] / 1e9))
        far = f", {self._kept}" if self._kept else ""
        return (
            f"stopped; {self.partial} keeps what was done up to {age} s ago{far}. "
            "The same command goes on from there; remove the file to start afresh"
        )

    def _note(self, doing: str) -> None:
        now, self._now = self._stamp(), doing
        if now != self._seen:
            self._seen, self._kept = now, doing

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.partial.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


@contextmanager
def stoppable(partial: Path | None = None) -> Iterator[KeptProgress]:
    """Ctrl-C ends the command with exit code 130, and with what was kept in words."""
    kept = KeptProgress(partial or Path())
    try:
        yield kept
    except KeyboardInterrupt:
        said = "stopped: nothing was kept" if partial is None else kept.words()
        typer.echo(f"bayesdag: {said}", err=True)
        raise typer.Exit(STOPPED) from None


def _rescued(posterior: "Posterior", out: Path) -> Path | None:
    """Path at which the result could be written, or None."""
    from bayesdag.errors import WriteError

    for folder in (Path(tempfile.gettempdir()), Path.home()):
        place = folder / f"{out.stem}-{secrets.token_hex(4)}.nc"
        try:
            posterior.save(place)
        except WriteError:
            continue
        return place
    return None


def _uncounted(posterior: "Posterior") -> dict[str, Any]:
    """Settings of the method but for the number of draws, at whatever depth that stands."""

    def strip(config: Any) -> Any:
        if isinstance(config, list):
            return [strip(item) for item in config]
        if not isinstance(config, dict):
            return config
        return {name: strip(value) for name, value in config.items() if name != "num_samples"}

    return strip(json.loads(json.dumps(posterior.provenance.get("method", {}))))


def _num_draws(method: object) -> int:
    """Most draws that a method, or one of those it is made of, keeps."""
    if isinstance(method, tuple):
        return sum(map(_num_draws, method))
    if not dataclasses.is_dataclass(method):
        return 0
    inner = (getattr(method, field.name) for field in dataclasses.fields(method))
    # None: the number is left to the method that is chosen.
    own = getattr(method, "num_chains", 1) * (getattr(method, "num_samples", 0) or 0)
    return max(own, getattr(method, "num_bags", 1) * max(map(_num_draws, inner), default=0))
