"""Random numbers: the key of a seed, and the numpy generator that belongs to a key."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayesdag.errors import InputError
from bayesdag.types import Key
from bayesdag.types.late_imports import late

if TYPE_CHECKING:
    import jax
else:
    jax = late("jax")

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def key_of(seed: int) -> Key:
    """The key of a seed; different seeds, different keys.

    JAX alone would drop all but the last 32 bits of a seed without a word.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed!r}; it must be a whole number from 0 to 2**64 - 1")
    upper, lower = divmod(int(seed), 2**32)
    # What `jax.random.key` gives; that would compile a program for it.
    key = _key_with(np.array([0, lower], dtype=np.uint32))
    return jax.random.fold_in(key, upper) if upper else key


def generator(key: Key) -> np.random.Generator:
    """A numpy generator that depends on nothing but `key`.

    Exact quantities are computed by numpy in float64; their draws come from here, so that
    one key still decides everything.
    """
    return np.random.default_rng(np.random.SeedSequence(_words_of(key)))


def generator_of_step(key: Key, step: int) -> np.random.Generator:
    """A numpy generator of one step of a run, whatever the steps before it have drawn."""
    words = np.random.SeedSequence(_words_of(key)).generate_state(2, np.uint64)
    return np.random.Generator(np.random.Philox(key=words, counter=[0, 0, 0, step]))


def split(key: Key, num: int = 2) -> list[Key]:
    """The keys that `jax.random.split` gives, without compiling a program for each number."""
    first, second = (np.uint32(word) for word in _words_of(key))
    numbers = np.arange(num, dtype=np.uint32)
    pairs = np.stack(_threefry(first, second, np.zeros_like(numbers), numbers), axis=1)
    return [_key_with(pair) for pair in pairs]


def _key_with(words: np.ndarray) -> Key:
    return cast(Any, jax).random.wrap_key_data(words)


def _words_of(key: Key) -> list[int]:
    return [int(word) for word in np.asarray(jax.random.key_data(key)).ravel()]


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
