"""Measured data sets: what is marked, what is held out, and what is said where they are absent."""

import numpy as np
import pytest

from bayesdag.datasets.copula_pair import MARGINALS, CopulaPair
from bayesdag.datasets.light_tunnel import LightTunnel
from bayesdag.datasets.sachs_full import SachsFull
from bayesdag.errors import FileFormatError, InputError
from bayesdag.graphs import is_acyclic

both = pytest.mark.parametrize("kind", [SachsFull, LightTunnel])
D = 3


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small files in place of the measured ones: twelve conditions of ten rows."""
    rng = np.random.default_rng(0)
    (tmp_path / "measured").mkdir()
    arrays = {
        "X": np.exp(rng.normal(size=(120, D))).astype(np.float32),
        "columns": np.array(["lamp", "near", "far"]),
        "adj": np.triu(np.ones((D, D), dtype=np.int8), k=1),
        "adj20": np.tril(np.ones((D, D), dtype=np.int8), k=-1),
        "env": np.repeat(np.arange(12), 10),
        "set_mask": np.zeros((120, D), dtype=np.uint8),
    }
    arrays["set_mask"][10:20, 0] = 1
    unknown = np.zeros((D, D), dtype=np.int8)
    unknown[1, 2] = unknown[2, 1] = 1
    np.savez(tmp_path / "measured" / "sachs_full.npz", **arrays)
    np.savez(tmp_path / "measured" / "chamber_light.npz", **arrays, unknown=unknown)
    monkeypatch.setenv("BAYESDAG_DATA", str(tmp_path))
    return tmp_path


@both
def test_a_marking_gives_targets_or_conditions_or_nothing(folder, kind):
    nothing, targets, environment = (
        kind(marking=marking)() for marking in ("nothing", "targets", "environment")
    )
    assert nothing.train.interventions is None
    assert nothing.environment is None
    assert targets.train.interventions.sum() == 10
    assert targets.environment is None
    assert environment.train.interventions is None
    assert len(environment.environment) == environment.train.num_rows
    assert environment.environment[10] == 1


@both
def test_the_seed_chooses_rows_without_replacement(folder, kind):
    one, again, other = (kind(num_rows=30)(seed) for seed in (0, 0, 1))
    assert one.train.hash == again.train.hash != other.train.hash
    assert len(np.unique(one.train.values, axis=0)) == 30 == one.train.num_rows
    assert kind(num_rows=30).size == (11, 30)
    with pytest.raises(InputError, match="num_rows is 500, and there are"):
        kind(num_rows=500)()


def test_conditions_with_stronger_settings_are_held_out(folder):
    held_out, pooled = LightTunnel(marking="environment")(), LightTunnel(held_out=False)()
    assert set(held_out.environment) == set(range(6))
    assert held_out.test.num_rows == 60
    np.testing.assert_array_equal(held_out.test.scaling.scale, held_out.train.scaling.scale)
    assert pooled.test is None
    assert pooled.train.num_rows == 120


def test_what_nobody_knows_is_marked(folder):
    assert LightTunnel()().unknown.sum() == 2
    assert SachsFull()().unknown is None


def test_options_of_the_sachs_data(folder):
    plain, logs, other = SachsFull()(), SachsFull(logarithm=True)(), SachsFull(num_edges=20)()
    np.testing.assert_allclose(logs.train.values, np.log(plain.train.values), rtol=1e-6)
    np.testing.assert_array_equal(other.graph, plain.graph.T)
    with pytest.raises(InputError, match="there are graphs of 17 and of 20"):
        SachsFull(num_edges=18)


@both
def test_impossible_options_are_refused(kind):
    with pytest.raises(InputError, match="no marking is called 'some'; there are: nothing, "):
        kind(marking="some")
    with pytest.raises(InputError, match="num_rows is 1; it must be 2 or more"):
        kind(num_rows=1)


@both
def test_an_absent_file_is_asked_for_in_words(kind, tmp_path, monkeypatch):
    monkeypatch.delenv("BAYESDAG_DATA", raising=False)
    with pytest.raises(InputError, match=r"is not published with bayesdag; put it into measured/"):
        kind()()
    monkeypatch.setenv("BAYESDAG_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no measured/\w+\.npz in it"):
        kind()()


def test_damaged_and_incomplete_files_are_refused(folder):
    path = folder / "measured" / "sachs_full.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError, match=r"sachs_full\.npz is damaged"):
        SachsFull()()
    np.savez(path, X=np.eye(3))
    with pytest.raises(FileFormatError, match="has no array called columns"):
        SachsFull()()


def test_the_measured_files_are_what_the_descriptions_say(measured_folder):
    cells, light = SachsFull(marking="targets")(), LightTunnel(marking="environment")()
    assert cells.train.values.shape == (7466, 11)
    assert cells.graph.sum() == 17
    assert SachsFull(num_edges=20)().graph.sum() == 20
    assert is_acyclic(SachsFull(num_edges=20)().graph)
    assert 0 < cells.train.interventions.any(axis=1).sum() < 7466
    assert light.graph.sum() == 21
    assert light.test.num_rows == 4000
    assert light.unknown.sum() == 6
    assert not (light.graph.astype(bool) & light.unknown).any()


@pytest.mark.parametrize("marginal", MARGINALS)
def test_the_two_columns_of_a_pair_are_exchangeable(marginal):
    pair = CopulaPair(marginal, correlation=0.6, num_train=20_000)()
    ranks = np.argsort(np.argsort(pair.train.values, axis=0), axis=0)
    # Spearman's correlation under a Gaussian copula.
    expected = 6 / np.pi * np.arcsin(0.3)
    assert np.asarray(np.corrcoef(ranks.T))[0, 1] == pytest.approx(expected, abs=0.02)
    low, high = np.quantile(pair.train.values, [0.1, 0.9], axis=0)
    spread = high - low
    assert low[0] == pytest.approx(low[1], abs=0.06 * spread[0])
    assert high[0] == pytest.approx(high[1], abs=0.06 * spread[0])
    assert pair.unknown.sum() == 2


def test_pairs_of_one_seed_share_what_is_behind_their_marginals():
    plain, bent = CopulaPair("gaussian")(3), CopulaPair("lognormal")(3)
    np.testing.assert_allclose(np.log(bent.train.values), plain.train.values)
    assert plain.provenance["notes"] == bent.provenance["notes"]
    with pytest.raises(InputError, match="no marginal is called 'flat'"):
        CopulaPair("flat")
    with pytest.raises(InputError, match="must be between -1 and 1"):
        CopulaPair(correlation=1.0)
