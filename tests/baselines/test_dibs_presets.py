"""The presets of DiBS are the table of settings that the BayesDAG paper prints for it."""

import pytest

from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.model.priors.scale_free import ScaleFree

# α, bandwidths of latent embeddings, functions and noise scales, row by row as printed.
PRINTED = {
    "linear-er5": (0.02, 5, 1000, 1),
    "linear-sf5": (0.02, 15, 500, 1),
    "nonlinear-er20": (0.02, 5, 1500, 10),
    "nonlinear-sf20": (0.2, 5, 1500, 10),
    "nonlinear-er30": (0.2, 5, 500, 1),
    "nonlinear-sf30": (0.2, 5, 1000, 1),
    "nonlinear-er50": (0.2, 5, 500, 10),
    "nonlinear-sf50": (0.2, 5, 1500, 1),
    "syntren": (0.2, 5, 500, 10),
    "sachs": (0.2, 5, 500, 10),
}


def test_every_row_of_the_table_is_a_preset_and_nothing_else_is_called_published():
    presets = {name for name in DiBS.PRESETS if name.startswith("paper-")}
    assert presets == {f"paper-{name}" for name in PRINTED}


@pytest.mark.parametrize("name", PRINTED)
def test_a_preset_has_the_settings_that_are_printed(name):
    method = DiBS.PRESETS[f"paper-{name}"]
    widths = (method.latent_bandwidth, method.param_bandwidth, method.noise_bandwidth)
    assert (method.alpha, *widths) == PRINTED[name]
    assert (method.num_particles, method.num_steps) == (20, 10_000)
    assert (method.learning_rate, method.temperature) == (0.01, 0.1)
    linear, scale_free = name.startswith("linear"), "-sf" in name
    assert isinstance(method.mechanism, Linear if linear else MLP)
    assert isinstance(method.prior, ScaleFree if scale_free else ErdosRenyi)
    assert method.noise_variance is None  # inferred, which the comparison added
    assert method.score is None
