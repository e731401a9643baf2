import numpy as np
import pytest

from bayesdag import data, plugins
from bayesdag.data import sortability
from bayesdag.datasets import catalogue
from bayesdag.datasets import example as greenhouse
from bayesdag.datasets.sachs import ARCHIVE, PROTEINS, Sachs
from bayesdag.datasets.syntren import Syntren
from bayesdag.errors import InputError
from bayesdag.graphs import cpdag, is_acyclic


def test_the_shipped_example_is_what_its_model_makes():
    for name, contents in greenhouse.regenerate().items():
        assert greenhouse.shipped(name) == contents, f"{name} is out of date"


def test_the_example_passes_the_checks_of_user_data_without_a_warning():
    benchmark = greenhouse.load_example()
    assert data.read(benchmark.train).values.shape == (400, 8)
    assert is_acyclic(benchmark.graph)
    np.testing.assert_array_equal(benchmark.graph, benchmark.truth.graph)


def test_the_example_needs_scaling_and_leaves_three_edges_to_knowledge():
    benchmark = greenhouse.load_example()
    assert sortability.varsortability(benchmark.train.values, benchmark.graph) < 0.4
    undirected = cpdag(benchmark.graph) & cpdag(benchmark.graph).T
    names = np.array(benchmark.train.names)
    assert set(names[undirected.any(axis=0)]) == {"light", "irrigation", "growth"}


def test_the_example_model_has_the_stated_levels_and_effects():
    benchmark = greenhouse.load_example()
    fresh = benchmark.sample(20_000, 0).values
    level = np.array([v.level for v in greenhouse.GREENHOUSE.values()])
    assert (np.abs(fresh.mean(axis=0) - level) < 4 * fresh.std(axis=0) / 20_000**0.5).all()
    dry, wet = (benchmark.sample(5, 0, {"irrigation": v}).values for v in (4.0, 5.0))
    effect = dict(zip(benchmark.train.names, (wet - dry).mean(axis=0), strict=True))
    assert effect["humidity"] == pytest.approx(4.5)
    assert effect["harvest"] == pytest.approx(1.5 * 0.03 + 4.5 * 0.3 * -0.06)
    assert effect["light"] == 0


@pytest.fixture
def published(data_folder, monkeypatch):
    monkeypatch.setenv("BAYESDAG_DATA", str(data_folder))
    return data_folder


def test_sachs_has_the_consensus_network(published):
    benchmark = Sachs()()
    assert benchmark.train.values.shape == (853, 11)
    # The 17 edges as the literature lists them.
    consensus = {
        "Raf": "Mek",
        "Mek": "Erk",
        "Erk": "Akt",
        "Plcg": "PIP2 PIP3",
        "PIP3": "PIP2",
        "PKA": "Raf Mek Erk Akt P38 Jnk",
        "PKC": "Raf Mek PKA P38 Jnk",
    }
    expected = {(cause, effect) for cause, many in consensus.items() for effect in many.split()}
    found = {(PROTEINS[i], PROTEINS[j]) for i, j in np.argwhere(benchmark.graph)}
    assert found == expected
    assert len(found) == 17
    assert is_acyclic(benchmark.graph)


def test_sachs_columns_carry_the_names_of_the_published_header(published):
    (header,) = ARCHIVE.arrays("sachs/sachs-header.npy")
    assert tuple(header.tolist()) == PROTEINS
    # Raf and Mek, Erk and Akt, PKC and P38 are the pairs known to move together in these cells.
    correlation = np.corrcoef(np.log(Sachs()().train.values).T)
    for one, other in [("Raf", "Mek"), ("Erk", "Akt"), ("PKC", "P38")]:
        assert correlation[PROTEINS.index(one), PROTEINS.index(other)] > 0.5


def test_sachs_bootstraps_are_drawn_with_replacement_and_test_on_the_rest(published):
    everything = {tuple(row) for row in Sachs()().train.values}
    one, other = (Sachs(num_bootstrap=800)(seed) for seed in (0, 1))
    assert one.train.num_rows == 800
    assert one.train.hash != other.train.hash
    chosen, rest = ({tuple(row) for row in x.values} for x in (one.train, one.test))
    assert chosen | rest == everything
    assert len(chosen) + len(rest) == len(everything)
    assert len(chosen) < 600  # 853 (1 - e^(-800/853)) = 519 on average


def test_sachs_logarithms_are_those_of_the_readings(published):
    raw, log = Sachs()().train.values, Sachs(logarithm=True)().train.values
    np.testing.assert_allclose(np.exp(log), raw)


def test_syntren_sets_have_the_published_edge_numbers(published):
    sets = [Syntren(index=index)() for index in range(1, 11)]
    assert [int(s.graph.sum()) for s in sets] == [24, 22, 26, 34, 23, 22, 20, 19, 23, 22]
    assert all(s.train.values.shape == (500, 20) for s in sets)
    assert all(is_acyclic(s.graph) for s in sets)
    # Few regulators control many genes, never the other way round: i -> j is graph[i, j].
    assert all(s.graph.sum(axis=1).max() > s.graph.sum(axis=0).max() for s in sets)


def test_syntren_splits_by_the_seed_and_loses_no_row(published):
    whole = Syntren(index=3)().train.values
    one, other = (Syntren(index=3, num_test=100)(seed) for seed in (0, 1))
    assert one.train.num_rows == 400
    assert one.test.num_rows == 100
    assert one.test.hash != other.test.hash
    together = np.concatenate([one.train.values, one.test.values])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(whole, axis=0))


def test_measurements_have_no_true_functions_to_sample(published):
    with pytest.raises(InputError, match="functions behind these measurements are not known"):
        Sachs()().sample(10, 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Syntren(index=0), "index is 0; the sets are numbered 1 to 10"),
        (lambda: Syntren(num_test=499), "num_test is 499; it must be 0 to 498"),
        (lambda: Sachs(num_bootstrap=1), "num_bootstrap is 1; it must be 2 or more"),
    ],
)
def test_impossible_settings_of_measurements_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_the_catalogue_lists_every_data_set_without_reading_one(monkeypatch):
    monkeypatch.setenv("BAYESDAG_DATA", "/nowhere")
    entries = {entry.name: entry for entry in catalogue()}
    assert set(entries) == set(plugins.names("datasets"))
    assert (entries["sachs"].variables, entries["sachs"].rows) == (11, 853)
    assert (entries["syntren"].variables, entries["syntren"].rows) == (20, 500)
    assert (entries["example"].variables, entries["example"].rows) == (8, 400)
    assert all(entry.description for entry in entries.values())


@pytest.mark.parametrize("name", ["example", "synthetic"])
def test_provenance_rebuilds_the_data_set(name):
    setting = plugins.load("datasets", name)()
    benchmark = setting(2)
    again = plugins.from_configuration(benchmark.provenance["dataset"])
    assert again == setting
    assert again(2).train.hash == benchmark.train.hash
    assert (benchmark.train.num_variables, benchmark.train.num_rows) == setting.size
