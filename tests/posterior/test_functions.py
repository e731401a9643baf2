"""Functions on edges: what a draw says, where the band lies, and what points show."""

import numpy as np
import pytest

from bayesdag.fitting import fit
from bayesdag.posterior.functions import function_bands
from tests.posteriors import linear, random_linear, table
from tests.toys import toy_frame

CHAIN = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=np.int8)


def columns(posterior):
    return posterior.summary["columns"]


def test_the_function_of_a_linear_edge_is_its_line_in_original_units():
    data = table(np.random.default_rng(1), 50, 3)
    posterior = linear(np.broadcast_to(CHAIN, (1, 1, 3, 3)), data)
    (band,) = function_bands(posterior._ensemble, columns(posterior), [("a", "c")])
    params, scaling = posterior.params["mechanism"], posterior.model.scaling
    slope = params["weights"][0, 0, 0, 2] * scaling.scale[2] / scaling.scale[0]
    middle = np.interp(data.values[:, 0].mean(), band.x, band.mean)
    assert np.polyfit(band.x, band.mean, 1)[0] == pytest.approx(slope, rel=1e-4)
    # At the means of all parents a centred linear model predicts its bias.
    bias = params["bias"][0, 0, 2] * scaling.scale[2] + scaling.shift[2]
    assert middle == pytest.approx(bias, abs=1e-4 * scaling.scale[2])
    assert band.x[0] == data.values[:, 0].min()
    assert band.x[-1] == data.values[:, 0].max()


def test_only_draws_with_the_edge_count_and_edges_without_draws_are_left_out():
    posterior = random_linear(0, d=4)
    ensemble = posterior._ensemble
    graphs = ensemble.flat_graphs.copy()
    assert 0 < graphs[:, 0, 1].mean() < 1
    (band,) = function_bands(ensemble, columns(posterior), [("a", "b")])
    weights = ensemble.params["mechanism"]["weights"].reshape(-1, 4, 4)[graphs[:, 0, 1] == 1, 0, 1]
    scaling = ensemble.model.scaling
    slopes = weights * scaling.scale[1] / scaling.scale[0]
    found = (band.mean[-1] - band.mean[0]) / (band.x[-1] - band.x[0])
    assert slopes.min() - 1e-3 <= found <= slopes.max() + 1e-3
    graphs[:, 0, 1] = 0
    without = random_linear(0, d=4, weights=np.where(posterior.graphs[:, :, 0, 1] == 1, 0.0, 1.0))
    assert function_bands(without._ensemble, columns(without), [("a", "b")]) == []


def test_partial_residuals_lie_around_the_function_and_set_cells_are_left_out():
    frame = toy_frame(200)
    posterior = fit(frame, "exact", num_samples=60, progress=False)
    values, observed = frame.to_numpy(), np.ones((200, 4), dtype=bool)
    observed[:20, 2] = False
    (band,) = function_bands(
        posterior._ensemble,
        columns(posterior),
        [("soil", "crop")],
        values=values,
        observed=observed,
    )
    assert len(band.rows) == 180
    gap = band.partial_residuals - np.interp(values[band.rows, 1], band.x, band.mean)
    assert abs(gap.mean()) < 0.02
    # crop = soil - 0.8 rain + 0.9 noise: what is left is the noise, not rain.
    assert gap.std() == pytest.approx(0.9 * 0.1, rel=0.2)
    assert abs(np.corrcoef(gap, values[band.rows, 0])[0, 1]) < 0.2


def test_the_band_holds_what_it_says():
    posterior = random_linear(5, num_draws=400, d=3, weights=None)
    wide, narrow = (
        function_bands(posterior._ensemble, columns(posterior), [("a", "b")], band=level)[0]
        for level in (0.9, 0.3)
    )
    assert (wide.low <= narrow.low).all()
    assert (wide.high >= narrow.high).all()
    assert (wide.low <= wide.mean).all()
    assert (wide.mean <= wide.high).all()
