"""Signatures over a store: whatever is done to a signed file is named, and ordinary use goes on."""

import base64
import json
import os
import resource
import shutil
import sqlite3
import stat

import numpy as np
import pytest
from tagged import valid

from robot_rl.data.signature.keys import by_id, make_key, only_secret_key, read_public_key, read_secret_key
from robot_rl.data.signature.store_signature import compare_with_signature, sign_store
from robot_rl.data.store.edit import prune
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError, RunDirectoryError


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """The lab's key and a thief's, as (secret, public keys to trust)."""
    folder = tmp_path_factory.mktemp("keys")
    made = {}
    for name in ("lab", "thief"):
        secret, public, _ = make_key(name, folder / name)
        made[name] = read_secret_key(secret), by_id(read_public_key(public))
    return made


@pytest.fixture
def store(tmp_path):
    """A store with episodes, an overlay, labels and a record of what people did."""
    path = tmp_path / "store"
    with EpisodeStore.create(path, {"task": "reach"}) as made:
        for number in range(3):
            made.append(valid(number, 3))
        with OverlayWriter(path, "judge", {"model": "x"}) as writer:
            writer.write(made.read("episode-0"), made.fingerprint("episode-0"), np.ones(3, np.float32))
    (path / "labels").mkdir()
    with sqlite3.connect(path / "labels/labels.sqlite") as database:
        database.execute("CREATE TABLE label (name TEXT PRIMARY KEY, value REAL)")
        database.executemany("INSERT INTO label VALUES (?, ?)", [("b", 1.0), ("a", 0.0)])
    database.close()
    (path / "operator.jsonl").write_text('{"stop": 1}\n')
    return path


@pytest.fixture
def signed(store, keys):
    sign_store(store, keys["lab"][0], {})
    return store


def differences(path, keys):
    return {one.file: one.change for one in compare_with_signature(path, keys["lab"][1]).differences}


def test_a_signed_store_is_as_it_was_signed(signed, keys):
    state = compare_with_signature(signed, keys["lab"][1])
    assert (state.number, state.key, state.differences) == (0, *keys["lab"][1], [])
    files = [file for file in signed.rglob("*") if file.is_file() and file.suffix != ".lock"]
    assert state.files == len(files) - 1 == 7  # store.json, 3 episodes, overlay, labels, operator.jsonl


@pytest.mark.parametrize(
    "name", ["store.json", "episodes/000001.zarr.zip", "overlays/judge", "labels/labels.sqlite", "operator.jsonl"]
)
def test_any_bit_that_is_turned_is_named(signed, keys, name):
    file = signed / name
    if file.is_dir():
        (file,) = file.glob("*.zip")
    content = bytearray(file.read_bytes())
    content[4000 if file.suffix == ".sqlite" else len(content) // 2] ^= 1
    file.write_bytes(content)
    assert list(differences(signed, keys)) == [file.relative_to(signed).as_posix()]


def test_swapped_removed_added_and_copied_files_are_told_apart(signed, keys):
    episodes = signed / "episodes"
    one, two = (episodes / f"00000{number}.zarr.zip" for number in (0, 1))
    shutil.move(one, signed / "x")
    shutil.move(two, one)
    shutil.move(signed / "x", two)
    shutil.copy(episodes / "000002.zarr.zip", episodes / "000007.zarr.zip")
    shutil.rmtree(signed / "overlays")
    state = compare_with_signature(signed, keys["lab"][1])
    told = {one.file: (one.change, one.detail) for one in state.differences}
    assert told.pop("episodes/000000.zarr.zip") == ("swapped", "holds what was signed as episodes/000001.zarr.zip")
    assert told.pop("episodes/000001.zarr.zip") == ("swapped", "holds what was signed as episodes/000000.zarr.zip")
    change, detail = told.pop("episodes/000007.zarr.zip")
    assert change == "added"
    assert "a copy of episodes/000002.zarr.zip" in detail
    ((overlay, (change, _)),) = told.items()
    assert (overlay[:15], change) == ("overlays/judge/", "removed")


def test_recording_goes_on_and_signing_again_names_what_is_new(signed, keys):
    with EpisodeStore.open(signed, write=True) as opened:
        opened.append(valid(3, 3))
        with OverlayWriter(signed, "judge", {"model": "x"}) as writer:
            writer.write(opened.read("episode-3"), opened.fingerprint("episode-3"), np.ones(3, np.float32))
            overlay = f"overlays/judge/{opened.fingerprint('episode-3')}.zip"
    with open(signed / "operator.jsonl", "a") as record:
        record.write('{"stop": 2}\n')
    with sqlite3.connect(signed / "labels/labels.sqlite") as database:
        database.execute("INSERT INTO label VALUES ('0', 2.0)")
    database.close()
    new = {"episodes/000003.zarr.zip": "added", overlay: "added"}
    new |= {"operator.jsonl": "grown", "labels/labels.sqlite": "grown"}
    assert differences(signed, keys) == new
    with EpisodeStore.open(signed) as opened, OverlayWriter(signed, "half", {}, whole=True) as writer:
        writer.write(opened.read("episode-3"), opened.fingerprint("episode-3"), np.ones(3, np.float32))
        assert differences(signed, keys) == new, "what is still being made is not covered"
    again = sign_store(signed, keys["lab"][0], {})
    assert (again.number, {one.file: one.change for one in again.differences}) == (1, new)
    assert differences(signed, keys) == {}


def test_a_changed_label_is_no_growth(signed, keys):
    with sqlite3.connect(signed / "labels/labels.sqlite") as database:
        database.execute("UPDATE label SET value = 0.5 WHERE name = 'a'")
        database.execute("INSERT INTO label VALUES ('new', 0.0)")
    database.close()
    assert differences(signed, keys) == {"labels/labels.sqlite": "edited"}


def test_a_pruned_episode_is_told_from_a_removed_one(signed, keys):
    prune(signed, lambda row: row.episode_id == "episode-1", "blurred")
    assert differences(signed, keys) == {"episodes/000001.zarr.zip": "taken out"}
    shutil.rmtree(signed / "aside")
    assert differences(signed, keys) == {"episodes/000001.zarr.zip": "removed"}


def test_what_was_edited_is_signed_only_on_request(signed, keys):
    lab = keys["lab"][0]
    shutil.copy(signed / "episodes/000000.zarr.zip", signed / "episodes/000001.zarr.zip")
    with pytest.raises(DataError, match=r"changed since it was signed: episodes/000001\.zarr\.zip holds what"):
        sign_store(signed, lab, {})
    assert sign_store(signed, lab, {}, accept_changes=True).number == 1
    assert differences(signed, keys) == {}


def test_a_thief_can_sign_but_is_not_trusted(signed, keys):
    (signed / "operator.jsonl").write_text("")
    sign_store(signed, keys["thief"][0], keys["lab"][1], accept_changes=True)
    state = compare_with_signature(signed, keys["lab"][1])
    assert state.number is None
    assert "not trusted here" in state.differences[0].detail
    (signed / "signatures/000001.json").unlink()
    assert differences(signed, keys) == {"operator.jsonl": "edited"}


def test_signatures_that_are_altered_or_missing_are_named(signed, keys):
    for _ in range(2):
        sign_store(signed, keys["lab"][0], {})
    folder = signed / "signatures"
    (folder / "000001.json").rename(folder / "kept")
    assert differences(signed, keys) == {"signatures/000001.json": "signature"}
    (folder / "kept").rename(folder / "000001.json")
    shutil.copy(folder / "000000.json", folder / "000001.json")  # an older one in its place
    assert differences(signed, keys) == {"signatures/000001.json": "signature"}
    envelope = json.loads((folder / "000002.json").read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(b"operator.jsonl", b"operatox.jsonl")
    (folder / "000002.json").write_text(json.dumps(envelope | {"payload": base64.b64encode(payload).decode()}))
    state = compare_with_signature(signed, keys["lab"][1])
    assert state.number is None
    assert "was altered" in state.differences[0].detail


@pytest.mark.parametrize("content", [b"", b"[]", b'{"payload": 3}', b"[" * 10_000, b'{"payloadType": "x"}'])
def test_a_file_that_is_no_signature_is_named(signed, keys, content):
    (signed / "signatures/000000.json").write_bytes(content)
    assert differences(signed, keys) == {"signatures/000000.json": "signature"}


def test_links_and_fifos_are_named_and_not_followed(signed, keys):
    episode = signed / "episodes/000000.zarr.zip"
    episode.rename(signed.parent / "elsewhere")
    episode.symlink_to(signed.parent / "elsewhere")
    os.mkfifo(signed / "pipe")
    (signed / "folder").symlink_to(signed.parent)
    found = differences(signed, keys)
    assert found == {"episodes/000000.zarr.zip": "edited", "pipe": "added", "folder": "added"}
    with pytest.raises(DataError, match="nothing was signed"):
        sign_store(signed, keys["lab"][0], {}, accept_changes=True)


def test_a_store_without_a_signature_says_how_to_make_one(store, keys):
    with pytest.raises(DataError, match="is not signed; `robot-rl data sign"):
        compare_with_signature(store, keys["lab"][1])


def test_keys_are_private_and_never_overwritten(tmp_path):
    folder = tmp_path / "config/keys"
    secret, public, _ = make_key("lab", folder)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, secret, public)] == [0o700, 0o600, 0o644]
    assert only_secret_key(folder) == secret
    with pytest.raises(RunDirectoryError, match="no key is ever overwritten"):
        make_key("lab", folder)
    secret.chmod(0o640)
    with pytest.raises(DataError, match="others can read this key"):
        read_secret_key(secret)
    for wrong in (public, tmp_path / "missing"):
        with pytest.raises(DataError):
            read_secret_key(wrong)
    with pytest.raises(DataError, match="must consist of letters"):
        make_key("../lab", folder)
    make_key("second", folder)
    with pytest.raises(DataError, match="several keys"):
        only_secret_key(folder)


def test_a_file_that_is_no_key_is_not_told_to_change_its_permissions(tmp_path):
    (tmp_path / "passwd").write_text("root:x:0:0")
    with pytest.raises(DataError, match="not a secret key in PEM format"):
        read_secret_key(tmp_path / "passwd")


def test_a_key_for_which_there_is_no_room_is_not_in_the_way(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(RunDirectoryError, match=r"cannot write .*lab\.key"):
            make_key("lab", tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert make_key("lab", tmp_path)[0].exists()
