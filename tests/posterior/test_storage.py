"""Files: the same numbers come back, and anything else is refused in words."""

import dataclasses
import errno
import os

import h5py
import jax
import numpy as np
import pytest
import xarray

from bayesdag import load
from bayesdag.errors import FileFormatError, InputError, WriteError
from bayesdag.posterior import array_index, storage
from tests.posteriors import linear, random_dags, random_linear, table


@pytest.fixture
def saved(tmp_path, seed):
    """A posterior with everything that can be saved, and its file."""
    posterior = random_linear(
        seed,
        marginals={"edge": np.full((4, 4), 0.1)},
        state={"leaf0": np.arange(6, dtype=np.int32).reshape(2, 3), "leaf1": np.array(7)},
        provenance={"notes": ["größer als 0"], "seed": 3, "method": {"plugin": "x", "k": 1}},
    )
    evidence = np.where(np.eye(4, dtype=bool), np.nan, np.arange(16.0).reshape(4, 4))
    posterior = dataclasses.replace(posterior, evidence=evidence)
    posterior.save(tmp_path / "result.nc")
    return posterior, tmp_path / "result.nc"


def test_everything_comes_back_unchanged(saved):
    posterior, path = saved
    again = load(path)
    for field in dataclasses.fields(posterior):
        before, after = getattr(posterior, field.name), getattr(again, field.name)
        if field.name == "model":
            assert before == after
            continue
        before, after = (jax.tree.flatten(value) for value in (before, after))
        assert before[1] == after[1], field.name
        for x, y in zip(before[0], after[0], strict=True):
            np.testing.assert_array_equal(x, y)
            assert np.asarray(x).dtype == np.asarray(y).dtype, field.name


def test_equal_results_have_equal_bytes_and_no_trace_of_the_machine(saved, tmp_path):
    posterior, path = saved
    posterior.save(tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == path.read_bytes()
    assert str(tmp_path).encode() not in path.read_bytes()


def test_the_file_follows_the_arviz_schema(saved):
    posterior, path = saved
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        graph = tree["posterior"]["graph"]
        assert graph.dims == ("chain", "draw", "source", "target")
        assert list(graph["source"].values) == list(posterior.names)
        assert tree["sample_stats"]["log_joint"].dims == ("chain", "draw")
        assert tree.attrs["inference_library"] == "bayesdag"
        np.testing.assert_array_equal(graph, posterior.graphs)
        for name, leaf in storage.flatten(posterior.params).items():
            np.testing.assert_array_equal(tree["params"][name], leaf)
        xarray.testing.assert_identical(tree.load(), posterior.to_datatree())


@pytest.mark.parametrize("chunk_bytes", [1, 100, 2**24])
def test_arrays_of_every_kind_and_size_come_back(seed, tmp_path, monkeypatch, chunk_bytes):
    """Also in many chunks, some of which stand out over the edge of the array."""
    monkeypatch.setattr(array_index, "_CHUNK_BYTES", chunk_bytes)
    rng = np.random.default_rng(seed)
    kinds = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
    state = {kind: rng.integers(0, 2, (3, 5, 7)).astype(kind) for kind in kinds}
    state |= {kind: rng.normal(size=(7, 3)).astype(kind) for kind in ("float16", "float32")}
    state |= {"empty": np.zeros((2, 0, 3)), "scalar": np.array(2.0), "nan": np.full(3, np.nan)}
    posterior = dataclasses.replace(random_linear(seed, num_draws=3), state=state)
    posterior.save(tmp_path / "kinds.nc")
    again = load(tmp_path / "kinds.nc")
    for name, array in state.items():
        np.testing.assert_array_equal(again.state[name], array, err_msg=name)
        assert again.state[name].dtype == array.dtype
    np.testing.assert_array_equal(again.graphs, posterior.graphs)


def test_an_array_of_text_is_refused_when_it_is_written(seed, tmp_path):
    posterior = dataclasses.replace(random_linear(seed), state={"words": np.array(["a", "b"])})
    with pytest.raises(InputError, match="words has entries of type"):
        posterior.save(tmp_path / "text.nc")
    assert not list(tmp_path.iterdir())


def test_a_truncated_file_is_refused_wherever_it_was_cut(saved, tmp_path):
    content = saved[1].read_bytes()
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        cut = tmp_path / "cut.nc"
        cut.write_bytes(content[: int(share * len(content))])
        with pytest.raises(FileFormatError, match="not a whole bayesdag result"):
            load(cut)


def test_a_damaged_file_is_refused(saved, tmp_path):
    """Bytes overwritten inside the data: compressed arrays no longer unpack."""
    content = bytearray(saved[1].read_bytes())
    damaged = tmp_path / "damaged.nc"
    with h5py.File(saved[1]) as file:
        start = file["posterior/graph"].id.get_chunk_info(0).byte_offset
    content[start : start + 8] = b"\xff" * 8
    damaged.write_bytes(content)
    with pytest.raises(FileFormatError, match="damaged.nc"):
        load(damaged)


@pytest.mark.parametrize("kind", ["text", "netcdf", "hdf5"])
def test_foreign_files_are_refused(tmp_path, kind):
    path = tmp_path / "foreign.nc"
    if kind == "text":
        path.write_text("a,b\n1,2\n")
    elif kind == "netcdf":
        xarray.Dataset({"x": ("t", np.arange(3))}).to_netcdf(path, engine="h5netcdf")
    else:
        with h5py.File(path, "w") as file:
            file["x"] = [1, 2]
    with pytest.raises(FileFormatError, match="foreign.nc"):
        load(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="no file .*check the name"):
        load(tmp_path / "nowhere.nc")
    with pytest.raises(FileFormatError, match="is a folder; name the result .* in it"):
        load(tmp_path)


def test_a_broken_write_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    posterior, path = saved
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WriteError, match="cannot write .*result.nc: the disk is full"):
        posterior.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_does_not_exist_is_named(saved, tmp_path):
    with pytest.raises(WriteError, match="nowhere does not exist"):
        saved[0].save(tmp_path / "nowhere" / "x.nc")


def test_a_large_posterior_is_small_on_disk(seed, tmp_path):
    """100 variables, 1000 draws, without functions: under 20 MB."""
    rng = np.random.default_rng(seed)
    graphs = random_dags(rng, (4, 250), 100, p=0.04)
    posterior = linear(graphs[:, :1], table(rng, 300, 100))
    bare = dataclasses.replace(
        posterior,
        graphs=graphs,
        weights=np.full((4, 250), 1e-3),
        params={},
        stats={"log_joint": rng.normal(size=(4, 250)), "num_edges": np.zeros((4, 250))},
    )
    bare.save(tmp_path / "large.nc")
    assert (tmp_path / "large.nc").stat().st_size < 20e6
    assert (load(tmp_path / "large.nc").graphs == graphs).all()
