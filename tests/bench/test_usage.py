"""What a measurement counts: this process, and those that it has started."""

import subprocess
import sys
import time

from bayesdag.bench import usage

BUSY = """
import sys, time
filled = b"x" * 200_000_000
while time.process_time() < 1.0:
    pass
print("done", flush=True)
sys.stdin.read()
"""


def test_time_and_memory_of_processes_that_are_still_there_count():
    before, held, own = usage.cpu_seconds(), usage.most_bytes(), time.process_time()
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert usage.most_bytes() - held > 150e6
    spent = usage.cpu_seconds() - before - (time.process_time() - own)
    assert 0.9 < spent < 3.0
    process.communicate()
    later = usage.cpu_seconds() - before - (time.process_time() - own)
    assert later > spent - 0.05  # one that has ended does not take its time with it


def test_work_of_less_than_a_tick_of_the_system_counts():
    start = time.process_time()
    before = usage.cpu_seconds()
    while time.process_time() - start < 0.002:
        pass
    assert usage.cpu_seconds() > before
