"""What outlives a run: its state in a file or in memory, and who watches it."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from bayesdag.errors import FileFormatError
from bayesdag.runs.files import write_whole
from bayesdag.types import Announcer, Monitor, StatusReporter


@dataclass
class Checkpoint:
    """Keeps the state of a run in a file, and hands it back to the same run.

    Attributes:
        path: the file; it is replaced as a whole, so a kill leaves the last good one.
        settings: everything that decides the outcome; a file of other settings is refused.
        every: seconds between two writes. Wall time decides only *when* a state is kept,
            never what it is, so an interrupted run still ends in the same bytes.
    """

    path: Path
    settings: dict[str, Any]
    every: float = 10.0
    _written: float = field(default=float("-inf"), repr=False)

    def resume(self, template: Any) -> Any | None:
        """The state an interrupted run left, in the structure of `template`, or None."""
        if not self.path.is_file():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                told = json.loads(str(file["settings"]))
                leaves = [file[f"leaf{k}"] for k in range(int(file["num_leaves"]))]
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise FileFormatError(
                f"{self.path} is not a checkpoint ({error}); remove it to start afresh"
            ) from error
        self._refuse_other_settings(told)
        return _unpack(template, leaves)

    def chunk(self, step: int, total: int, state: Any, stats: dict[str, float]) -> None:
        """Keep `state`, unless one was kept a moment ago."""
        del stats
        now = time.monotonic()
        if now - self._written < self.every and step < total:
            return
        self._written = now
        leaves = _pack(state)
        arrays = {f"leaf{k}": leaf for k, leaf in enumerate(leaves)}
        told = {"settings": json.dumps(self.settings, sort_keys=True), "num_leaves": len(leaves)}
        write_whole(self.path, lambda to: _savez(to, told | arrays))

    def _refuse_other_settings(self, told: dict[str, Any]) -> None:
        mine = json.loads(json.dumps(self.settings))
        if told == mine:
            return
        different = sorted(k for k in told.keys() | mine.keys() if told.get(k) != mine.get(k))
        raise FileFormatError(
            f"{self.path} belongs to a run with another {', '.join(different)}; "
            "repeat that command to resume it, or remove the file to start afresh"
        )


@dataclass
class Keeper:
    """Keeps the end of a run in memory, and hands it to a longer one.

    Attributes:
        kept: everything needed to go on, as plain arrays; None before the end of a first run.
    """

    kept: dict[str, np.ndarray] | None = None

    def resume(self, template: Any) -> Any | None:
        """The end of the shorter run, with room for the draws of the longer one."""
        if self.kept is None:
            return None
        saved = [self.kept[f"leaf{k}"] for k in range(len(self.kept))]
        wanted = _pack(template)
        if len(saved) != len(wanted):
            raise FileFormatError("the saved state is of another version of the method; fit again")
        leaves = [_with_room(like, leaf) for like, leaf in zip(wanted, saved, strict=True)]
        return _unpack(template, leaves)

    def chunk(self, step: int, total: int, state: Any, stats: dict[str, float]) -> None:
        """Keep the last state of all."""
        del stats
        if step >= total:
            self.kept = {f"leaf{k}": leaf for k, leaf in enumerate(_pack(state))}


@dataclass
class MonitorGroup:
    """Several monitors as one; the first that has a state to resume from supplies it."""

    monitors: tuple[Monitor, ...]

    def resume(self, template: Any) -> Any | None:
        """The first state that one of them kept."""
        return next((s for m in self.monitors if (s := m.resume(template)) is not None), None)

    def chunk(self, step: int, total: int, state: Any, stats: dict[str, float]) -> None:
        """Tell all of them."""
        for monitor in self.monitors:
            monitor.chunk(step, total, state, stats)

    def report(self, words: str, done: int | None = None, total: int | None = None) -> None:
        """Tell those who want to hear it."""
        for monitor in self.monitors:
            if isinstance(monitor, StatusReporter):
                monitor.report(words, done, total)

    def announce(self, words: str) -> None:
        """Tell those who say it."""
        for monitor in self.monitors:
            if isinstance(monitor, Announcer):
                monitor.announce(words)


def _pack(state: Any) -> list[np.ndarray]:
    return [np.asarray(_plain(leaf)) for leaf in jax.tree.leaves(state)]


def _with_room(like: np.ndarray, leaf: np.ndarray) -> np.ndarray:
    """`leaf` at the start of an array of the longer run's shape."""
    if like.shape == leaf.shape:
        return leaf
    longer = np.array(like)
    longer[: len(leaf)] = leaf
    return longer


def _unpack(template: Any, leaves: list[np.ndarray]) -> Any:
    wanted, structure = jax.tree.flatten(template)
    restored = [
        jax.random.wrap_key_data(jnp.asarray(leaf)) if _is_key(like) else leaf
        for like, leaf in zip(wanted, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, restored)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _savez(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)
