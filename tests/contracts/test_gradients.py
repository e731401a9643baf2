"""What every estimate of the gradient in the mask logits promises, on terms that are known.

Log terms that are linear in the entries have an exact gradient of log E[exp(term)].
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.sgmcmc import mask_gradients
from bayesdag.sgmcmc.mask_gradients import MaskDraws, MaskGradient

ALL = [plugins.load("gradients", name)() for name in plugins.names("gradients")]
every_estimate = pytest.mark.parametrize("estimate", ALL, ids=plugins.names("gradients"))
NUM_MASKS, NUM_REPEATS = 8, 2000
LOGITS = jnp.array([[0.0, 0.4, -0.5], [0.3, 0.0, 0.2], [-0.2, 0.6, 0.0]])
GAINS = jnp.array([[0.0, 1.0, -0.8], [0.7, 0.0, 0.5], [-0.6, 0.9, 0.0]])


def exact_gradient():
    """∇ Σ log(1 - σ + σ exp(gain)), entry by entry."""
    chance = np.asarray(jax.nn.sigmoid(LOGITS), np.float64)
    gain = np.exp(np.asarray(GAINS, np.float64))
    return chance * (1 - chance) * (gain - 1) / (1 - chance + chance * gain)


def draws(key):
    key_masks, key_choice = jax.random.split(key)
    noise, masks = mask_gradients.draw(key_masks, LOGITS, NUM_MASKS)
    log_terms = (masks * GAINS[None]).sum(axis=1)
    chosen = mask_gradients.choose(key_choice, log_terms)
    return MaskDraws(noise, masks, log_terms, chosen, GAINS)


@pytest.fixture
def found(estimate, key):
    one = jax.jit(jax.vmap(lambda k: estimate(LOGITS, draws(k))))
    return np.asarray(one(jax.random.split(key, NUM_REPEATS)), np.float64)


@every_estimate
def test_it_is_an_estimate_of_the_gradient(estimate, found):
    assert isinstance(estimate, MaskGradient)
    assert np.isfinite(found).all()


@every_estimate
def test_its_mean_points_the_way_of_the_exact_gradient(estimate, found):
    """None is unbiased at few masks, so sizes may differ; the sign of no clear entry may."""
    mean, error = found.mean(axis=0), found.std(axis=0) / NUM_REPEATS**0.5
    exact = exact_gradient()
    clear = np.abs(mean) > 4 * error
    assert clear.sum() >= 4, "the test would see nothing"
    assert (np.sign(mean[clear]) == np.sign(exact[clear])).all()
    assert (mean * exact).sum() / np.linalg.norm(mean) / np.linalg.norm(exact) > 0.9
