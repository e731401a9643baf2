"""Random numbers outside of JAX: which numpy generator belongs to a key."""

import jax
import numpy as np

from bayesdag.types import Key


def generator(key: Key) -> np.random.Generator:
    """A numpy generator that depends on nothing but `key`.

    Exact quantities are computed by numpy in float64; their draws come from here, so that
    one key still decides everything.
    """
    words = np.asarray(jax.random.key_data(key)).ravel()
    return np.random.default_rng(np.random.SeedSequence([int(word) for word in words]))
