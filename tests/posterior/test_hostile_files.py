"""Files from strangers: damaged or made to do harm, they are refused in words."""

import dataclasses
import hashlib
import struct
import zlib

import h5py
import numpy as np
import pytest

from bayesdag import fitting, load
from bayesdag.errors import FileFormatError
from bayesdag.posterior import container
from tests.posteriors import random_linear
from tests.toys import toy_frame


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A posterior with everything that can be saved, and the bytes of its file."""
    path = tmp_path_factory.mktemp("hostile") / "result.nc"
    posterior = random_linear(
        7,
        marginals={"edge": np.full((4, 4), 0.1)},
        state={"leaf0": np.arange(6, dtype=np.int32).reshape(2, 3), "leaf1": np.array(7)},
        provenance={"notes": ["all well"], "seed": 3},
    )
    posterior.save(path)
    return posterior, path.read_bytes()


@pytest.fixture
def saved(written, tmp_path):
    """The posterior, and a file of it to be damaged."""
    (tmp_path / "result.nc").write_bytes(written[1])
    return written[0], tmp_path / "result.nc"


def rewritten(path, change=None, document=None):
    """The file with another index or document and a checksum that fits: an attacker's."""
    content = container.read(path)
    if change is not None:
        change(content.index)
    whole = bytes(content.document) if document is None else document
    path.write_bytes(container.pack(whole, content.index))
    return path


def test_a_file_of_a_newer_format_asks_for_an_upgrade(saved, monkeypatch):
    content = container.read(saved[1])
    document, index = content.document, content.index
    monkeypatch.setattr(container, "FORMAT", 3)
    saved[1].write_bytes(container.pack(document, index | {"version": "99.0"}))
    monkeypatch.undo()
    with pytest.raises(FileFormatError, match="has format 3, written by bayesdag 99.0.*Upgrade"):
        load(saved[1])


def test_a_file_without_a_checksum_is_refused_before_hdf5_sees_it(saved, monkeypatch):
    """Such as one of a development version, which are not read any more."""
    path = saved[1]
    path.write_bytes(container.read(path).document)
    monkeypatch.setattr(h5py, "File", None)
    with pytest.raises(FileFormatError, match="before 0.1.0.*fit again"):
        load(path)


def test_loading_never_calls_hdf5(saved, monkeypatch):
    monkeypatch.setattr(h5py, "File", None)
    assert load(saved[1]).names == saved[0].names


def test_a_plug_in_that_is_not_installed_is_named(saved):
    """A result of another machine may use a mechanism that this one does not have."""
    quantum = {"plugin": "mechanisms/quantum"}
    path = rewritten(saved[1], lambda index: index["attributes"].update(mechanism=quantum))
    with pytest.raises(FileFormatError, match="mechanisms/quantum"):
        load(path)


@pytest.mark.parametrize("field", ["mechanism", "noise"])
@pytest.mark.parametrize(
    "config",
    [
        {"plugin": "cli.fit:demo", "out": "victim.txt"},
        {"plugin": "os:system", "command": "echo > victim.txt"},
        {"plugin": "datasets/synthetic"},
        {"plugin": "methods/empty"},
        {"plugin": "mechanisms/linear", "out": "victim.txt"},
        {"plugin": "noises/student_t", "degrees": "victim.txt"},
        {"plugin": "noises/student_t", "degrees": {"plugin": "noises/student_t"}},
    ],
)
def test_a_file_can_build_nothing_but_its_mechanism_and_noise(
    saved, field, config, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim.txt").write_text("mine")
    path = rewritten(saved[1], lambda index: index["attributes"].update({field: config}))
    with pytest.raises(FileFormatError, match="result.nc"):
        load(path)
    assert (tmp_path / "victim.txt").read_text() == "mine"


def test_the_method_of_a_file_is_plain_data_until_it_is_needed(saved):
    """Nothing in it is imported, called or checked by asking questions."""
    method = {"plugin": "cli.fit:demo", "out": "victim.txt"}
    path = rewritten(saved[1], lambda i: i["attributes"]["provenance"].update(method=method))
    posterior = load(path)
    assert posterior.provenance["method"] == method
    with pytest.raises(FileFormatError, match="cli.fit:demo"):
        fitting.extend(posterior, toy_frame(), 10)
    with pytest.raises(FileFormatError, match="cli.fit:demo"):
        fitting.log_scores(posterior, toy_frame(), np.zeros((4, 4)))


def at(*keys, to):
    """A change of one entry of an index."""

    def change(index):
        root, (*parents, last) = index, keys
        for key in parents:
            index = index[key]
        index[last] = to(root) if callable(to) else to

    return change


def place_of(name):
    return lambda index: index["arrays"][name]


def without(*keys):
    def change(index):
        *parents, last = keys
        for key in parents:
            index = index[key]
        del index[last]

    return change


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


GRAPH, WEIGHT = ("arrays", "posterior/graph"), ("arrays", "sample_stats/weight")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (at(*GRAPH, "shape", to=[2, 30, 4, 5]), "makes no sense"),
        (at(*GRAPH, "shape", to=[2**40, 30, 4, 4]), "makes no sense"),
        (at(*GRAPH, "chunk", to=[2**20, 2**20, 4, 4]), "makes no sense"),
        (at(*GRAPH, "chunk", to=[0, 0, 0, 0]), "makes no sense"),
        (at(*GRAPH, "shape", to=[-2, -30, 4, 4]), "makes no sense"),
        (at(*GRAPH, "shape", to=[True, 30, 4, 4]), "makes no sense"),
        (at(*GRAPH, "dtype", to="|O"), "makes no sense"),
        (at(*GRAPH, "dtype", to="|b1"), "not matrices of 4 by 4"),
        (at(*GRAPH, "dtype", to=["<f8"]), "makes no sense"),
        (at(*GRAPH, "parts", to=[[0, 100, 1]]), "does not unpack"),
        (at(*GRAPH, "parts", to=[[10**9, 100, 1]]), "makes no sense"),
        (at(*GRAPH, "parts", to=[[0, 960, 0]]), "entries other than 0 and 1"),
        (at(*GRAPH, "parts", to=[[0, 1, 1]]), "unpacks to another size"),
        (at(*GRAPH, "parts", to="everything"), "makes no sense"),
        (at(*GRAPH, "more", to=1), "makes no sense"),
        (without(*GRAPH, "parts"), "makes no sense"),
        (without(*GRAPH), "no graphs"),
        (without(*WEIGHT), "no weights"),
        (at("arrays", "state/again", to=[]), "makes no sense"),
        (at("arrays", to=[]), "lists no arrays"),
        (at("arrays", "elsewhere/leaf", to=place_of("state/leaf0")), "belong nowhere"),
        (at("arrays", "params/x", to=place_of("state/leaf0")), "where .2, 30. belongs"),
        (at("arrays", "marginals/x", to=place_of("sample_stats/weight")), "where .4, 4. belongs"),
        (at("arrays", "evidence/x", to=place_of("sample_stats/weight")), "where .4, 4. belongs"),
        (at("arrays", "evidence/x", to=place_of("state/leaf0")), "where .4, 4. belongs"),
        (at("arrays", "sample_stats/weight", to=place_of("sample_stats/log_joint")), "sum to 1"),
        (at("arrays", "sample_stats/weight", to=place_of("sample_stats/num_edges")), "sum to 1"),
        (at("arrays", "scaling/scale", to=place_of("scaling/shift")), "not positive"),
        (without("arrays", "scaling/scale"), "which units"),
        (at("names", to=["a", "a", "b", "c"]), "two have the same"),
        (at("names", to=["a", "b", "c", 4]), "no names"),
        (at("names", to=["a", "b", "c"]), "not matrices of 3 by 3"),
        (at("names", to="abcd"), "no names"),
        (without("names"), "no names"),
        (at("names", 0, to="a" * 20_000), "longer than"),
        (without("attributes"), "what was fitted"),
        (without("attributes", "noise"), "what was fitted"),
        (at("attributes", "summary", to=[]), "not a mapping"),
        (at("attributes", "provenance", "notes", to=[1]), "not text"),
        (at("attributes", "provenance", "notes", to="all well"), "another type"),
        (at("attributes", "provenance", "seed", to=["a"]), "not a whole number"),
        (at("attributes", "provenance", "temperature", to="warm"), "another type"),
        (at("attributes", "provenance", "deep", to=deep(100)), "nested more than"),
    ],
)
def test_what_is_no_posterior_is_refused_although_its_checksum_fits(saved, change, words):
    path = rewritten(saved[1], change)
    with pytest.raises(FileFormatError, match=words):
        load(path)


def test_an_index_of_endless_depth_is_refused(saved):
    path = saved[1]
    document = bytes(container.read(path).document)
    text = b'{"names":' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    footer = struct.pack(">8sIQQ", b"bayesdag", container.FORMAT, len(document), len(text))
    body = document + text + footer
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(FileFormatError, match="index cannot be read"):
        load(path)


def test_a_bomb_is_refused_before_it_is_unpacked(saved):
    """A thousand times a gigabyte in one small stream, and a hundred arrays on the same bytes."""
    path = saved[1]
    stream = zlib.compress(bytes(2**22), 9)
    document = bytes(container.read(path).document) + stream
    place = {"dtype": "<f8", "parts": [[len(document) - len(stream), len(stream), 1]]}

    def bomb(num_entries, copies=1):
        size = {"shape": [num_entries], "chunk": [num_entries]}
        return lambda index: index["arrays"].update(
            {f"state/{k}": place | size for k in range(copies)}
        )

    for change, words in [
        (bomb(2**40), "makes no sense"),
        (bomb(2**15), "unpacks to another size"),
        (bomb(2**19, copies=100), "overlap"),
    ]:
        before = path.read_bytes()
        with pytest.raises(FileFormatError, match=words):
            load(rewritten(path, change, document))
        path.write_bytes(before)
    rewritten(path, bomb(2**19), document)
    assert load(path).state["0"].shape == (2**19,)


def test_a_graph_with_a_cycle_is_refused(saved, tmp_path):
    posterior = saved[0]
    graphs = posterior.graphs.copy()
    graphs[1, 3, :2, :2] = [[0, 1], [1, 0]]
    dataclasses.replace(posterior, graphs=graphs).save(tmp_path / "cycle.nc")
    with pytest.raises(FileFormatError, match="a graph has a cycle"):
        load(tmp_path / "cycle.nc")
