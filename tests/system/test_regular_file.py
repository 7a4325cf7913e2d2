import os
import socket

import pytest

from robot_rl.system.checked_json import MAX_DEPTH, parse_json, read_object
from robot_rl.system.regular_file import read_regular


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (lambda path: os.symlink("/dev/zero", path), "a symbolic link"),
        (os.mkdir, "a directory"),
        (make_socket, "a socket"),
    ],
)
def test_only_regular_files_are_read(tmp_path, monkeypatch, make, kind):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    make("file")
    with pytest.raises(OSError, match=kind):
        read_regular(tmp_path / "file")


def test_a_regular_file_is_read(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    assert read_regular(tmp_path / "file") == b"content"


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_deep_json_is_a_value_error(depth, left, right):
    with pytest.raises(ValueError, match="deeper than"):
        parse_json(left * depth + "1" + right * depth)


def test_json_within_the_limit_is_read():
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


def test_a_file_of_something_else_is_no_object(tmp_path):
    (tmp_path / "file").write_text('{"a": 1}')
    assert read_object(tmp_path / "file") == {"a": 1}
    for content in ("[1]", '[["a", 1]]', "null", "{"):
        (tmp_path / "file").write_text(content)
        with pytest.raises(ValueError, match=r"is no JSON object|Expecting property name"):
            read_object(tmp_path / "file")
