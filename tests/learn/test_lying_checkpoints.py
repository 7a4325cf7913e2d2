"""Checkpoints whose checksum is right and whose index is not true: refused by name, without memory and without code."""

import hashlib
import os
import resource
import struct

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robot_rl.errors import CheckpointError
from robot_rl.learn.checkpoint import MAGIC, describe_checkpoint, load_checkpoint
from robot_rl.system.model_files import TRAINING

SIZES = struct.Struct("<QQ")
MEMORY = 200_000
"""What a refusal may take [kB]."""


def sealed(index, blobs=b"1234"):
    """A file around packed bytes of an index."""
    rest = len(index) + len(blobs) + 32
    content = MAGIC + SIZES.pack(rest, len(index)) + index + blobs
    return content + hashlib.sha256(content).digest()


def index(payload, **changed):
    facts = {"version": TRAINING.version, "kind": TRAINING.name, "metadata": {}, "payload": payload, **changed}
    return msgpack.packb({key: value for key, value in facts.items() if value is not ...})


def array(code, *entry):
    return msgpack.ExtType(code, msgpack.packb(entry))


def nested(depth):
    value = msgpack.ExtType(4, msgpack.packb([1]))
    for _ in range(depth):
        value = msgpack.ExtType(4, msgpack.packb([value]))
    return value


LIES = {
    "a huge tensor": index({"a": array(1, "float32", [10**12], 0, 4)}),
    "a type of torch that is none": index({"a": array(1, "load", [1], 0, 4)}),
    "an object": index({"a": array(2, "|O", [1], 0, 8)}),
    "beyond the end": index({"a": array(2, "<f4", [1], 4, 4)}),
    "before the start": index({"a": array(2, "<f4", [1], -4, 4)}),
    "the same bytes often": index({"a": [array(2, "<f4", [1], 0, 4)] * 1000}),
    "an unknown extension": index({"a": msgpack.ExtType(99, b"x")}),
    "no number": index({"a": msgpack.ExtType(5, b"x")}),
    "deep": index({"a": nested(300)}),
    "no payload": index(...),
    "a list": index([1]),
    "no kind": index({}, kind=...),
    "no mapping": msgpack.packb([1, 2]),
    "deep lists": b"\x91" * 100_000,
    "not msgpack": b"\xc1\xff",
    "nothing": b"",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_an_index_that_is_not_true_is_refused_at_little_cost(tmp_path, lie):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(sealed(lie))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (load_checkpoint, describe_checkpoint):
        with pytest.raises(CheckpointError, match="index is not true"):
            read(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY


VALUES = st.recursive(
    st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5) | st.binary(max_size=5),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), part, max_size=3)
        | st.builds(lambda code, value: array(code, *value), st.integers(0, 9), st.lists(part, max_size=4))
        | st.builds(
            lambda code, dtype, shape, start, size: array(code, dtype, shape, start, size),
            st.sampled_from([1, 2, 3]),
            st.sampled_from(["float32", "<f4", "|O", "U1", "int8"]),
            st.lists(st.integers(-1, 5), max_size=3),
            st.integers(-1, 5),
            st.integers(-1, 5),
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("code", [2, 3])
def test_text_of_characters_that_there_are_not_is_refused(tmp_path, code):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(sealed(index({"a": array(code, "U1", [], 0, 4)}), b"\xff\xff\xff\x7f"))
    with pytest.raises(CheckpointError, match="index is not true: a text of characters that there are not"):
        load_checkpoint(path)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(VALUES)
def test_whatever_the_index_holds_the_file_is_read_or_refused(tmp_path, value):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(sealed(index({"a": value})))
    for read in (describe_checkpoint, load_checkpoint):
        try:
            read(path)
        except CheckpointError:
            continue


def test_a_checkpoint_is_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "checkpoint.pt")
    with pytest.raises(CheckpointError, match="a FIFO"):
        load_checkpoint(tmp_path / "checkpoint.pt")
