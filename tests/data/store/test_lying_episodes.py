"""Episode files with true checksums and lying metadata: refused before anything is decoded, and no code runs."""

import io
import json
import os
import pickle
import resource
import struct
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tagged import episode, steps, valid

from robot_rl.data.store.codec import decode, encode, read_attributes
from robot_rl.data.store.journal import JOURNAL_SUFFIX, JournalWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import repair, verify
from robot_rl.errors import DataError

HONEST = encode(episode(0, 6))
GROUP, TABLE = "zarr.json", "steps_float32/zarr.json"
SIZES = st.one_of(st.integers(-5, 20), st.sampled_from([10**9, 10**12, 3 * 10**8, 2**63, 10**30]))
NONSENSE = st.one_of(
    SIZES,
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=5),
    st.lists(SIZES, max_size=4),
    st.just({}),
    st.just("U500000000"),
)
MEMORY = 100_000
"""What refusing a file of 20 kB may take besides [kB]."""


def unpacked(content=HONEST):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def with_lie(member, path, value):
    """The honest file, with one value of one member's metadata replaced."""
    files = unpacked()
    tree = json.loads(files[member])
    place = tree
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return packed({**files, member: json.dumps(tree).encode()})


def paths(tree, before=()):
    """All places in nested metadata."""
    if before:
        yield before
    branches = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in branches:
        yield from paths(value, (*before, key))


PLACES = [(name, path) for name, data in unpacked().items() if name.endswith(GROUP) for path in paths(json.loads(data))]


def test_the_unpacked_and_packed_file_is_read():
    assert np.array_equal(decode(packed(unpacked())).action, decode(HONEST).action)


@pytest.mark.parametrize(
    ("member", "path", "value"),
    [
        (TABLE, ("shape", 0), 10**12),
        (TABLE, ("shape",), [3 * 10**8, 13]),
        (TABLE, ("chunk_grid", "configuration", "chunk_shape", 0), 10**9),
        (TABLE, ("data_type",), "U500000000"),
        (TABLE, ("data_type",), {"name": "fixed_length_utf32", "configuration": {"length_bytes": 2 * 10**9}}),
        (TABLE, ("codecs", 1, "name"), "zstd"),
        (TABLE, ("codecs", 1, "configuration", "cname"), "zstd"),
        (TABLE, ("codecs", 1), {"name": "numcodecs.pickle", "configuration": {}}),
        (GROUP, ("attributes", "columns", "action", "dtype"), "U500000000"),
        (GROUP, ("attributes", "columns", "action", "shape"), [10**9]),
        (GROUP, ("attributes", "length"), 10**12),
        (GROUP, ("attributes", "length"), -5),
        (GROUP, ("attributes", "length"), "many"),
        (GROUP, ("attributes", "length"), None),
        (GROUP, ("attributes", "metadata"), []),
        (GROUP, ("attributes", "metadata"), None),
        (GROUP, ("attributes", "episode_id"), "a" * 100_000),
        (GROUP, ("attributes", "episode_id"), "\x1b[2J"),
        (GROUP, ("attributes", "episode_id"), 7),
        (GROUP, ("attributes", "episode_id"), "../../x"),
        (GROUP, ("attributes", "episode_id"), "a\\b"),
        ("images/wrist/zarr.json", ("fill_value",), -1),
        ("images/wrist/zarr.json", ("fill_value",), 2**63),
    ],
)
def test_a_lie_is_refused_in_one_line(member, path, value):
    with pytest.raises(DataError) as error:
        decode(with_lie(member, path, value))
    assert len(str(error.value)) < 400
    assert str(error.value).isprintable()


@given(st.data())
def test_whatever_the_metadata_hold_the_file_is_read_right_or_refused_at_little_cost(data):
    member, path = data.draw(st.sampled_from(PLACES))
    content = with_lie(member, path, data.draw(NONSENSE))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (decode, lambda content: read_attributes(io.BytesIO(content))):
        try:
            read(content)
        except DataError:
            continue
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY


def test_a_missing_chunk_is_damage_and_not_zeros():
    files = unpacked()
    del files["steps_float32/c/0/0"]
    with pytest.raises(DataError, match="chunks"):
        decode(packed(files))


def test_a_chunk_that_promises_more_than_its_array_is_refused():
    files = unpacked()
    chunk = bytearray(files["steps_float32/c/0/0"])
    chunk[4:8] = (2**31 - 1).to_bytes(4, "little")
    with pytest.raises(DataError, match="is not of the"):
        decode(packed({**files, "steps_float32/c/0/0": bytes(chunk)}))


class RunsCode:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_no_code_of_an_older_zarr_format_is_run(tmp_path):
    array = {"zarr_format": 2, "shape": [6, 13], "chunks": [6, 13], "dtype": "|O", "fill_value": None, "order": "C"}
    array |= {"compressor": None, "filters": [{"id": "pickle", "protocol": 5}]}
    attributes = json.loads(unpacked()[GROUP])["attributes"]
    files = {".zgroup": json.dumps({"zarr_format": 2}), ".zattrs": json.dumps(attributes)}
    for table in {column["table"] for column in attributes["columns"].values()}:
        files |= {f"{table}/.zarray": json.dumps(array), f"{table}/0.0": pickle.dumps(RunsCode(tmp_path / "ran"))}
    for content in (packed(files), packed({**unpacked(), **files})):
        with pytest.raises(DataError):
            decode(content)
    assert not (tmp_path / "ran").exists()


def test_one_lying_episode_stops_neither_the_check_nor_the_repair_of_the_others(tmp_path):
    with EpisodeStore.create(tmp_path / "store") as store:
        for number in range(3):
            store.append(valid(number, 6))
    file = sorted((tmp_path / "store/episodes").iterdir())[1]
    file.write_bytes(with_lie(TABLE, ("shape", 0), 10**12))
    verdict = verify(tmp_path / "store")
    assert verdict.episodes == 2
    assert [violation.file for violation in verdict.violations] == [f"episodes/{file.name}"]
    repair(tmp_path / "store")
    assert verify(tmp_path / "store").violations == []
    with EpisodeStore.open(tmp_path / "store") as store:
        assert len(store) == 2


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path), lambda path: os.symlink("000000.zarr.zip", path)]
)
def test_what_is_no_regular_file_is_named_and_moved_aside(tmp_path, make):
    with EpisodeStore.create(tmp_path / "store") as store:
        store.append(valid(0, 6))
    make(tmp_path / "store/episodes/000001.zarr.zip")
    found = verify(tmp_path / "store").violations
    assert [violation.file for violation in found] == ["episodes/000001.zarr.zip"]
    assert "must be a regular file" in found[0].problem
    with pytest.raises(DataError, match="must be a regular file"):
        EpisodeStore.open(tmp_path / "store")
    repair(tmp_path / "store")
    assert verify(tmp_path / "store").violations == []


@pytest.mark.parametrize("depth", [200, 900, 100_000])
def test_deep_facts_are_refused_before_anybody_lists_them(tmp_path, depth):
    with EpisodeStore.create(tmp_path / "store") as store:
        store.append(valid(0, 6))
        file = store.path / "episodes/000000.zarr.zip"
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    files = unpacked()
    files[GROUP] = files[GROUP].replace(b'"metadata": {', b'"metadata": {"deep": ' + nested + b",", 1)
    file.write_bytes(packed(files))
    assert "deeper than" in verify(store.path).violations[0].problem
    with pytest.raises(DataError, match="deeper than"):
        EpisodeStore.open(store.path)


@pytest.mark.parametrize(
    "head",
    [
        {"layout": [["action", "|O", [1]]]},
        {"layout": [["action", "<f4", [10**12]]]},
        {"layout": "many"},
        {"layout": [["state/a", "U9", []]]},
        {"metadata": [1]},
        {"episode_id": "\x1b[2J"},
        {"episode_id": 7},
    ],
)
def test_a_journal_that_lies_is_a_violation_and_is_moved_aside(tmp_path, head):
    with EpisodeStore.create(tmp_path / "store") as store:
        store.append(valid(0, 6))
    begun = valid(1, 3)
    file = tmp_path / f"store/partial/{begun.episode_id}{JOURNAL_SUFFIX}"
    writer = JournalWriter(file, begun.episode_id, {})
    for step in steps(begun):
        writer.write(step)
    writer.close()
    content = file.read_bytes()
    magic, frame = content.index(b"\n") + 1, struct.Struct("<BII")
    kind, length, _ = frame.unpack(content[magic : magic + frame.size])
    facts = json.loads(content[magic + frame.size :][:length]) | head
    payload = json.dumps(facts).encode()
    file.write_bytes(
        content[:magic] + frame.pack(kind, len(payload), zlib.crc32(payload, zlib.crc32(bytes([kind])))) + payload
    )
    assert [violation.field for violation in verify(tmp_path / "store").violations] == ["journal"]
    repair(tmp_path / "store")
    assert verify(tmp_path / "store").violations == []
