"""Random numbers: the key of a seed, and the numpy generator that belongs to a key.

Keys split as those of JAX do, so that one key decides the same whoever uses it; but they are
made and split without JAX, and become keys of JAX (`jax_key`) where it draws the numbers.
"""

from typing import Any, cast

import numpy as np

from bayesdag.errors import InputError
from bayesdag.types import HostKey, Key
from bayesdag.types.late_imports import jax

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def key_of(seed: int) -> Key:
    """The key of a seed; different seeds, different keys.

    JAX alone would drop all but the last 32 bits of a seed without a word.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed!r}; it must be a whole number from 0 to 2**64 - 1")
    upper, lower = divmod(int(seed), 2**32)
    key = _host_key((0, lower))
    return fold_in(key, upper) if upper else key


def jax_key(key: Key) -> Key:
    """The same key for `jax.random`."""
    if isinstance(cast(Any, key), HostKey):
        return cast(Any, jax).random.wrap_key_data(np.array(words_of(key), np.uint32))
    return key


def generator(key: Key) -> np.random.Generator:
    """A numpy generator that depends on nothing but `key`.

    Exact quantities are computed by numpy in float64; their draws come from here, so that
    one key still decides everything.
    """
    return np.random.default_rng(np.random.SeedSequence(words_of(key)))


def generator_of_step(key: Key, step: int) -> np.random.Generator:
    """A numpy generator of one step of a run, whatever the steps before it have drawn."""
    words = np.random.SeedSequence(words_of(key)).generate_state(2, np.uint64)
    return np.random.Generator(np.random.Philox(key=words, counter=[0, 0, 0, step]))


def split(key: Key, num: int = 2) -> list[Key]:
    """The keys that `jax.random.split` gives."""
    numbers = np.arange(num, dtype=np.uint32)
    return [_host_key(pair) for pair in _hashed(key, np.zeros_like(numbers), numbers)]


def fold_in(key: Key, number: int) -> Key:
    """The key that `jax.random.fold_in` gives."""
    return _host_key(_hashed(key, np.zeros(1, np.uint32), np.array([number], np.uint32))[0])


def words_of(key: Key) -> tuple[int, int]:
    """The two words of a key."""
    if isinstance(own := cast(Any, key), HostKey):
        return own.words
    first, second = np.asarray(jax.random.key_data(key)).ravel().tolist()
    return first, second


def _host_key(words: tuple[int, int]) -> Key:
    return cast(Any, HostKey(words))


def _hashed(key: Key, x: np.ndarray, y: np.ndarray) -> list[tuple[int, int]]:
    first, second = (np.uint32(word) for word in words_of(key))
    pairs = zip(*(part.tolist() for part in _threefry(first, second, x, y)), strict=True)
    return list(pairs)


def _threefry(
    first: np.uint32, second: np.uint32, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Threefry 2x32 with 20 rounds (Salmon et al., 2011, "Parallel random numbers")."""
    keys = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    x, y = x + first, y + second
    for group in range(5):
        for turn in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << np.uint32(turn)) | (y >> np.uint32(32 - turn))
            y = x ^ y
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
