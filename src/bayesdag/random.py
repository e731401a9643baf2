"""Random numbers: the key of a seed, and the numpy generator that belongs to a key."""

import jax
import numpy as np

from bayesdag.errors import InputError
from bayesdag.types import Key


def key_of(seed: int) -> Key:
    """The key of a seed; different seeds, different keys.

    JAX alone would drop all but the last 32 bits of a seed without a word.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed!r}; it must be a whole number from 0 to 2**64 - 1")
    upper, lower = divmod(int(seed), 2**32)
    key = jax.random.key(lower)
    return jax.random.fold_in(key, upper) if upper else key


def generator(key: Key) -> np.random.Generator:
    """A numpy generator that depends on nothing but `key`.

    Exact quantities are computed by numpy in float64; their draws come from here, so that
    one key still decides everything.
    """
    words = np.asarray(jax.random.key_data(key)).ravel()
    return np.random.default_rng(np.random.SeedSequence([int(word) for word in words]))
