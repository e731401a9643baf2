"""Expected duration of a fit, before it starts: roughly, and what would make it faster.

Methods know from experience how long they took on two cores or on one accelerator
(`experiments/results`); a short timing of this machine turns that into a range. Data differ
more than machines do, so a range is all that is claimed.
"""

import time

import numpy as np

from bayesdag.types import Announcer, Duration, Timed

LONG = 30.0  # seconds; a shorter fit needs no warning
# Real fits of equal size have taken from a half to twice the typical time.
LOW, HIGH = 0.6, 1.8
# What `_seconds_of_work` was on the two cores on which methods were timed, and by how much at
# most a moment's measurement may change an estimate.
REFERENCE_SECONDS, MOST = 0.006, 4.0


def announce(monitor: object, method: object, num_rows: int, num_variables: int) -> None:
    """Report how long the fit will take, if it is long and can be estimated."""
    if isinstance(method, Timed):
        expected = method.expected_duration(num_rows, num_variables)
        announce_duration(monitor, expected, num_rows, num_variables)


def announce_duration(
    monitor: object, expected: Duration, num_rows: int, num_variables: int
) -> None:
    """Report this duration, if it is long."""
    if not isinstance(monitor, Announcer) or expected.seconds < LONG:
        return
    factor = 1.0 if expected.on_accelerator else slowness()
    low, high = (expected.seconds * factor * share for share in (LOW, HIGH))
    if high >= LONG:
        monitor.announce(
            f"this fit of {num_variables} columns and {num_rows} rows takes about "
            f"{spoken_range(low, high)} on this machine (a rough estimate); faster: "
            f"{', '.join(expected.faster)}"
        )


def spoken_range(low: float | int, high: float | int) -> str:
    """Two times in seconds as one range in a fitting unit.

    >>> spoken_range(200, 500), spoken_range(20, 70), spoken_range(4000, 12000)
    ('3-8 minutes', '20-70 seconds', '1-3 hours')
    """
    for unit, name in ((3600, "hours"), (60, "minutes")):
        if high >= 2 * unit:
            return f"{max(1, round(low / unit))}-{round(high / unit)} {name}"
    return f"{round(low)}-{round(high)} seconds"


def slowness() -> float:
    """Slowness of this machine, as busy as it is, relative to the machines of experience."""
    factor = min(_seconds_of_work() for _ in range(5)) / REFERENCE_SECONDS
    return float(np.clip(factor, 1 / MOST, MOST))


def _seconds_of_work() -> float:
    """A moment of the kind of arithmetic that fits consist of, on one core."""
    started = time.perf_counter()
    np.exp(np.linspace(-1, 1, 1_000_000)).sum()
    return time.perf_counter() - started
