"""The file of true edges: read before anything is fitted, and refused in words."""

import pytest

from bayesdag.cli.truth import read_edges
from bayesdag.errors import InputError

NAMES = ("a", "b", "c")


def test_edges_are_read_with_spaces_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("cause, effect, note\na, b, sure\n\nb,c\n", encoding="utf-8-sig")
    assert read_edges(path, NAMES).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the first line of edges.csv must be: cause,effect"),
        (b"a,b,c\n1,2,3\n", "the first line of edges.csv must be: cause,effect"),
        (b"cause,effect\na\n", "'a' in edges.csv has no effect beside it"),
        (b"cause,effect\na,z\n", "names 'z', no column of the table .there are: 'a', 'b', 'c'"),
        (b"cause,effect\na,b\nb,c\nc,a\n", "form a cycle"),
        (b"cause,effect\n\xff,b\n", "is not UTF-8 text .byte 13.; save it again"),
        (b"\x00\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, content, words):
    path = tmp_path / "edges.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_edges(path, NAMES)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist; check the name"):
        read_edges(tmp_path / "edges.csv", NAMES)
    with pytest.raises(InputError, match="is a folder; name the file in it"):
        read_edges(tmp_path, NAMES)
