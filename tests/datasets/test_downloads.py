import hashlib
import io
import logging.handlers
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from bayesdag.datasets import _download
from bayesdag.datasets._download import Archive
from bayesdag.errors import FileFormatError, InputError

pooch = pytest.importorskip("pooch")


def zipped(array: np.ndarray) -> bytes:
    """A zip file with one array in it."""
    member, archive = io.BytesIO(), io.BytesIO()
    np.save(member, array)
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("folder/data.npy", member.getvalue())
    return archive.getvalue()


GOOD = zipped(np.arange(12.0).reshape(4, 3))
ARCHIVE = Archive("small.zip", hashlib.sha256(GOOD).hexdigest())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)  # pyright: ignore[reportAttributeAccessIssue]
        body, promised = self.server.answers.get(self.path, (b"", None))  # pyright: ignore[reportAttributeAccessIssue]
        self.send_response(404 if promised is None else 200)
        self.send_header("Content-Length", str(promised or 0))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pyright: ignore[reportIncompatibleMethodOverride]
        """Tests stay quiet."""


@pytest.fixture
def server():
    """A web server of our own; what it answers and was asked are plain attributes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers = {"/small.zip": (GOOD, len(GOOD))}  # pyright: ignore[reportAttributeAccessIssue]
    server.requests = []  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def cache(server, tmp_path, monkeypatch):
    """An empty cache, and downloads that go to our own server."""
    monkeypatch.delenv("BAYESDAG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_download, "BASE", f"http://127.0.0.1:{server.server_port}/")
    return tmp_path


def files(folder) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_file_is_downloaded_once(server, cache):
    for _ in range(2):
        (array,) = ARCHIVE.arrays("folder/data.npy")
        np.testing.assert_array_equal(array, np.arange(12.0).reshape(4, 3))
    assert server.requests == ["/small.zip"]
    assert files(cache) == ["small.zip"]


def test_a_download_says_nothing_on_the_screen(cache):
    said = logging.handlers.BufferingHandler(capacity=100)
    logger = pooch.get_logger()
    logger.addHandler(said)
    ARCHIVE.path()
    logger.removeHandler(said)
    assert said.buffer == []


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(server, cache):
    wrong = bytes([GOOD[0] ^ 1]) + GOOD[1:]
    server.answers["/small.zip"] = (wrong, len(wrong))
    with pytest.raises(FileFormatError, match="not the published file.*nothing was kept"):
        ARCHIVE.path()
    assert files(cache) == []
    server.answers["/small.zip"] = (GOOD, len(GOOD))
    assert ARCHIVE.path().read_bytes() == GOOD


def test_a_missing_file_is_reported_in_words(server, cache):
    server.answers.clear()
    with pytest.raises(InputError, match=r"could not be downloaded.*404.*BAYESDAG_DATA"):
        ARCHIVE.path()
    assert files(cache) == []


def test_a_truncated_download_is_refused_and_nothing_is_kept(server, cache):
    server.answers["/small.zip"] = (GOOD[:50], len(GOOD))
    with pytest.raises((InputError, FileFormatError), match=r"small\.zip"):
        ARCHIVE.path()
    assert files(cache) == []


def test_an_answer_cut_short_without_a_word_is_refused_too(server, cache):
    server.answers["/small.zip"] = (GOOD[:50], 50)
    with pytest.raises(FileFormatError, match="checksum differs"):
        ARCHIVE.path()
    assert files(cache) == []


def test_a_server_that_is_gone_is_reported_in_words(cache, monkeypatch):
    monkeypatch.setattr(_download, "BASE", "http://127.0.0.1:9/")
    with pytest.raises(InputError, match="check the network"):
        ARCHIVE.path()
    assert files(cache) == []


def test_a_damaged_cache_is_downloaded_again(server, cache):
    path = ARCHIVE.path()
    path.write_bytes(b"damaged")
    assert ARCHIVE.path().read_bytes() == GOOD
    assert len(server.requests) == 2


def test_a_cache_that_cannot_be_written_is_reported_in_words(cache):
    (cache / "bayesdag").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"small\.zip could not be downloaded"):
        ARCHIVE.path()


def test_a_named_folder_is_used_and_the_network_is_not(server, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESDAG_DATA", str(tmp_path))
    (tmp_path / "small.zip").write_bytes(GOOD)
    assert ARCHIVE.path() == tmp_path / "small.zip"
    assert server.requests == []


def test_a_named_folder_without_the_file_is_refused_in_words(server, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESDAG_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no small\.zip in it; put the file there"):
        ARCHIVE.path()
    assert server.requests == []


def test_a_wrong_file_in_the_named_folder_is_refused(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESDAG_DATA", str(tmp_path))
    (tmp_path / "small.zip").write_bytes(GOOD + b" ")
    with pytest.raises(FileFormatError, match=r"small\.zip is not the published file"):
        ARCHIVE.path()


def test_pickled_objects_are_never_loaded(cache, tmp_path, monkeypatch):
    body = zipped(np.array([{"a": 1}], dtype=object))
    monkeypatch.setenv("BAYESDAG_DATA", str(tmp_path))
    (tmp_path / "small.zip").write_bytes(body)
    archive = Archive("small.zip", hashlib.sha256(body).hexdigest())
    with pytest.raises(ValueError, match="allow_pickle"):
        archive.arrays("folder/data.npy")


def test_the_published_files_come_over_the_network_just_as_from_a_folder(
    server, cache, data_folder
):
    from bayesdag.datasets.sachs import Sachs

    body = (data_folder / "sachs.zip").read_bytes()
    server.answers["/sachs.zip"] = (body, len(body))
    assert Sachs()().graph.sum() == 17
    assert server.requests == ["/sachs.zip"]
