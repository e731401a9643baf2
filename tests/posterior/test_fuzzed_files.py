"""Damage at random: no file hangs, crashes, or loads as something else.

Loading runs in the test's own process: a crash would end the test run, and an alarm ends
what takes too long.
"""

import dataclasses
import hashlib
import json
import signal
from contextlib import contextmanager

import numpy as np
import pytest

from bayesdag import load
from bayesdag.errors import FileFormatError
from bayesdag.graphs import is_acyclic
from bayesdag.posterior import container
from tests.posteriors import random_linear


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a small result."""
    path = tmp_path_factory.mktemp("fuzz") / "small.nc"
    posterior = random_linear(3, num_draws=5, d=3, provenance={"notes": ["all well"], "seed": 3})
    dataclasses.replace(posterior, state={"leaf0": np.arange(3)}).save(path)
    return path.read_bytes()


@contextmanager
def at_most(seconds: int):
    """An alarm interrupts even code that never ends, if it is Python's."""

    def late(*_):
        raise TimeoutError(f"not done after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def flipped(rng: np.random.Generator, content: bytes) -> bytes:
    """One to eight bits the other way round."""
    damaged = np.frombuffer(content, np.uint8).copy()
    where = rng.integers(len(damaged), size=rng.integers(1, 9))
    damaged[where] ^= np.uint8(1) << rng.integers(8, size=len(where)).astype(np.uint8)
    return damaged.tobytes()


def truncated(rng: np.random.Generator, content: bytes) -> bytes:
    """Some bytes of the start, or of the end."""
    cut = int(rng.integers(len(content)))
    return content[:cut] if rng.random() < 0.5 else content[cut:]


def spoiled(rng: np.random.Generator, content: bytes) -> bytes:
    """A run of bytes overwritten, doubled or left out."""
    start, length = int(rng.integers(len(content))), int(rng.integers(1, 200))
    kinds = (rng.bytes(length), b"", content[start : start + length] * 2, bytes(length))
    return content[:start] + kinds[rng.integers(4)] + content[start + length :]


def refused_by_its_checksum(rng, whole, path, times) -> None:
    for _ in range(times):
        damaged = (flipped, truncated, spoiled)[rng.integers(3)](rng, whole)
        if damaged == whole:
            continue
        path.write_bytes(damaged)
        with at_most(5), pytest.raises(FileFormatError, match="damaged.nc"):
            load(path)


def refused_or_a_posterior(rng, whole, path, times) -> int:
    """How many of the attacker's files load; each that does is a posterior like any other."""
    loaded = 0
    for _ in range(times):
        document, index = map(bytes, parts(whole))
        kind = rng.integers(3)
        if kind == 0:
            document = (flipped, spoiled)[rng.integers(2)](rng, document)
        elif kind == 1:
            index = (flipped, spoiled)[rng.integers(2)](rng, index)
        else:
            index = json.dumps(mutated(rng, json.loads(index))).encode()
        path.write_bytes(sealed(document, index))
        try:
            with at_most(5):
                posterior = load(path)
        except FileFormatError:
            continue
        assert_valid(posterior)
        loaded += 1
    return loaded


STRANGE = (None, True, -1, 0, 2**70, 1e308, float("nan"), "", "mechanisms/linear", [], {}, [[]])


def mutated(rng: np.random.Generator, value):
    """Plain data with one entry, at any depth, replaced, left out or doubled."""
    inner = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not inner:
        return STRANGE[rng.integers(len(STRANGE))]
    key = inner[rng.integers(len(inner))]
    if isinstance(value[key], dict | list) and rng.random() < 0.8:
        value[key] = mutated(rng, value[key])
    elif rng.random() < 0.2:
        del value[key]
    else:
        value[key] = STRANGE[rng.integers(len(STRANGE))]
    return value


def parts(whole: bytes) -> tuple[bytes, bytes]:
    """The netCDF document and the text of the index."""
    _, _, num_document, num_index = container._FOOTER.unpack(whole[-container._END : -32])
    return whole[:num_document], whole[num_document : num_document + num_index]


def sealed(document: bytes, index: bytes) -> bytes:
    """A file with a footer and a checksum that fit it."""
    lengths = len(document), len(index)
    body = document + index + container._FOOTER.pack(b"bayesdag", container.FORMAT, *lengths)
    return body + hashlib.sha256(body).digest()


def assert_valid(posterior) -> None:
    shape, d = posterior.graphs.shape[:2], len(posterior.names)
    assert posterior.graphs.shape == (*shape, d, d)
    assert set(np.unique(posterior.graphs)) <= {0, 1}
    assert is_acyclic(posterior.graphs).all()
    assert posterior.weights.shape == shape
    assert posterior.weights.sum() == pytest.approx(1)
    assert (posterior.weights >= 0).all()
    probabilities = posterior.edge_matrix()
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert posterior.describe()
    assert len(posterior.edge_table(3, with_error=True)) <= 3


def test_a_sample_of_damaged_files_is_refused(whole, tmp_path, seed):
    refused_by_its_checksum(np.random.default_rng(seed), whole, tmp_path / "damaged.nc", 200)


def test_a_sample_of_damaged_files_with_a_checksum_that_fits_is_refused_or_valid(
    whole, tmp_path, seed
):
    rng = np.random.default_rng(seed)
    loaded = refused_or_a_posterior(rng, whole, tmp_path / "damaged.nc", 100)
    assert loaded < 100  # the damage is seen at all


@pytest.mark.slow
def test_a_thousand_damaged_files_are_refused(whole, tmp_path, seed):
    refused_by_its_checksum(np.random.default_rng(seed), whole, tmp_path / "damaged.nc", 1000)


@pytest.mark.slow
def test_a_thousand_damaged_files_with_a_checksum_that_fits_are_refused_or_valid(
    whole, tmp_path, seed
):
    rng = np.random.default_rng(seed)
    assert refused_or_a_posterior(rng, whole, tmp_path / "damaged.nc", 1000) < 1000
