"""What every data set promises: the same seed, the same rows, with a truth that is a DAG."""

import importlib

import numpy as np
import pytest

from bayesdag import plugins
from bayesdag.datasets import catalogue
from bayesdag.graphs import is_acyclic

every_dataset = pytest.mark.parametrize("name", plugins.names("datasets"))


@pytest.fixture
def benchmark(name, request, monkeypatch):
    """Seed 0; what is downloaded elsewhere is read from the data folder, if there is one."""
    module = importlib.import_module(f"bayesdag.{plugins.FAMILIES['datasets']}.{name}")
    if hasattr(module, "ARCHIVE"):
        monkeypatch.setenv("BAYESDAG_DATA", str(request.getfixturevalue("data_folder")))
    if hasattr(module, "FILE"):  # never published, so it may be missing from the folder
        request.getfixturevalue("measured_folder")
    return plugins.load("datasets", name)()


@every_dataset
def test_the_same_seed_gives_the_same_rows(benchmark):
    first, second = benchmark(0), benchmark(0)
    assert first.train.hash == second.train.hash
    np.testing.assert_array_equal(first.graph, second.graph)


@every_dataset
def test_names_and_shapes_agree(benchmark):
    found = benchmark(0)
    d = found.train.num_variables
    assert len(set(found.train.names)) == d
    assert found.graph.shape == (d, d)
    assert benchmark.size == (d, found.train.num_rows)
    assert np.isfinite(found.train.values).all()


@every_dataset
def test_the_true_graph_is_acyclic_and_is_that_of_the_model(benchmark):
    found = benchmark(0)
    if found.unknown is None:
        assert is_acyclic(found.graph)
    if found.truth is not None:
        np.testing.assert_array_equal(found.truth.graph, found.graph)


@every_dataset
def test_it_is_documented_and_listed(name):
    dataset = plugins.load("datasets", name)
    assert (dataset.__doc__ or "").partition("\n")[0].endswith(".")
    entry = next(entry for entry in catalogue() if entry.name == name)
    assert entry.description
