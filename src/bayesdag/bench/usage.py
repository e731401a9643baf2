"""CPU time and memory of this process and of those that it has started.

A fit may share its work among processes; what they use is its cost, too.
"""

import contextlib
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_AFTER_NAME = ")"  # in /proc/PID/stat: then state, parent, group, …
_PARENT, _TIMES = 1, slice(11, 15)  # own user and system time, and that of children that ended


def cpu_seconds() -> float:
    """User and system time so far, children included.

    That of this process is counted in nanoseconds, that of others in ticks of the system.
    """
    ended = os.times()
    ticks = sum(sum(map(int, facts[_TIMES])) for _, facts in _descendants())
    others = ended.children_user + ended.children_system + ticks / os.sysconf("SC_CLK_TCK")
    return time.process_time() + others


def most_bytes() -> float:
    """The most that this process has held, and each of those that it has started, added up."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own = kilobytes if sys.platform == "darwin" else 1024 * kilobytes
    return float(own + sum(_most_held(number) for number, _ in _descendants()))


def _descendants() -> Iterator[tuple[int, list[str]]]:
    """Numbers of processes and their facts; none where the system does not say."""
    found: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended meanwhile
            text = (folder / "stat").read_text()
            found[int(folder.name)] = text.rpartition(_AFTER_NAME)[2].split()
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        children = [number for number, facts in found.items() if int(facts[_PARENT]) == parent]
        waiting += children
        yield from ((number, found[number]) for number in children)


def _most_held(number: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0
