"""Shapes are checked in the package under test, where a test first calls a function."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from bayesdag.sgmcmc import dagspace
from tests import shape_checks

pytest.importorskip("beartype")
from beartype import beartype  # noqa: E402


@pytest.mark.parametrize("test", ["first", "second"])
def test_a_wrong_shape_is_refused_in_every_test(test):
    with pytest.raises(Exception, match="Type-check error"):
        dagspace.rank_matrix(jnp.zeros((3, 2)))


def test_first_calls_are_checked_and_later_ones_run_as_they_are():
    def total(x: Float[np.ndarray, " n"]) -> float:
        return float(x.sum())

    checked = shape_checks._first_calls_checked(total, typechecker=beartype)
    for _ in range(shape_checks.CALLS):
        with pytest.raises(Exception, match="Type-check error"):
            checked(np.ones((2, 2)))
    assert checked(np.ones((2, 2))) == 4
    shape_checks.begin_test()
    with pytest.raises(Exception, match="Type-check error"):
        checked(np.ones((2, 2)))
