"""Keys: those of JAX, without its programs."""

import jax
import numpy as np
import pytest

from bayesdag.random import generator_of_step, key_of, split


@pytest.mark.parametrize("seed_of", [0, 7, 2**32 - 1, 2**40 + 3])
@pytest.mark.parametrize("num", [2, 3, 8])
def test_keys_are_those_of_jax(seed_of, num):
    upper, lower = divmod(seed_of, 2**32)
    expected = jax.random.key(lower)
    expected = jax.random.fold_in(expected, upper) if upper else expected
    found = key_of(seed_of)
    assert np.array_equal(jax.random.key_data(found), jax.random.key_data(expected))
    pieces = [jax.random.key_data(piece) for piece in split(found, num)]
    assert np.array_equal(pieces, jax.random.key_data(jax.random.split(expected, num)))


def test_steps_have_numbers_of_their_own(key):
    first, again, second = (generator_of_step(key, step).random(1000) for step in (3, 3, 4))
    assert np.array_equal(first, again)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert not np.isin(first, second).any()
