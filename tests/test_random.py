"""Keys: those of JAX, without its programs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag.random import fold_in, generator, generator_of_step, jax_key, key_of, split, words_of
from bayesdag.types import HostKey


@pytest.mark.parametrize("seed_of", [0, 7, 2**32 - 1, 2**40 + 3])
@pytest.mark.parametrize("num", [2, 3, 8])
def test_keys_are_those_of_jax(seed_of, num):
    upper, lower = divmod(seed_of, 2**32)
    expected = jax.random.key(lower)
    expected = jax.random.fold_in(expected, upper) if upper else expected
    found = key_of(seed_of)
    assert jax_key(found) == expected
    pieces = [jax_key(piece) for piece in split(found, num)]
    assert (jnp.stack(pieces) == jax.random.split(expected, num)).all()
    assert jax_key(fold_in(found, num)) == jax.random.fold_in(expected, num)


def test_a_key_decides_the_same_numbers_whoever_made_it(key):
    own: Any = HostKey(words_of(key))
    assert split(own) == split(key)
    assert generator(own).random() == generator(key).random()
    assert generator_of_step(own, 3).random() == generator_of_step(key, 3).random()


def test_steps_have_numbers_of_their_own(key):
    first, again, second = (generator_of_step(key, step).random(1000) for step in (3, 3, 4))
    assert np.array_equal(first, again)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.15
    assert not np.isin(first, second).any()
