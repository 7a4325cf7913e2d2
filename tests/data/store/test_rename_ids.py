"""Stores with ids that were valid once: refused with the cure, and the cure loses nothing."""

import dataclasses
import io
import json
import zipfile

import numpy as np
import pytest
from tagged import valid

from robot_rl.data.schema import LONGEST_ID, check_id
from robot_rl.data.store.rename_ids import valid_id
from robot_rl.data.store.reward_overlays import OverlayWriter, fingerprint, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import repair, verify
from robot_rl.errors import EpisodeIdError

OLD = {0: "lab/one", 1: ".hidden", 2: "lab_one"}


def with_id(content, episode_id):
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "zarr.json":
                tree = json.loads(data)
                tree["attributes"]["episode_id"] = episode_id
                data = json.dumps(tree).encode()
            new.writestr(name, data)
    return made.getvalue()


@pytest.fixture
def older(tmp_path):
    """A store as an older version wrote it, with rewards of a labeller for its first episode."""
    path = tmp_path / "older"
    with EpisodeStore.create(path, {"task": "t"}) as store:
        for number in OLD:
            store.append(valid(number, 5 + number))
    for number, name in OLD.items():
        file = path / "episodes" / f"{number:06d}.zarr.zip"
        file.write_bytes(with_id(file.read_bytes(), name))
    with OverlayWriter(path, "judged", {"by": "me"}) as writer:
        mark = fingerprint((path / "episodes" / "000000.zarr.zip").read_bytes())
        writer.write(valid(0, 5), mark, np.arange(5), terminated=True)
    return path


def test_an_old_id_is_refused_with_the_command_that_renames(older):
    with pytest.raises(EpisodeIdError, match=r"'lab/one'; `robot-rl data verify --repair` gives it another id"):
        EpisodeStore.open(older)
    assert [v.file for v in verify(older).violations] == ["episodes/000000.zarr.zip", "episodes/000001.zarr.zip"]


def test_a_repair_renames_and_keeps_steps_overlays_and_the_files_as_they_were(older):
    before = {file.name: file.read_bytes() for file in (older / "episodes").iterdir()}
    verdict = repair(older)
    assert "'lab/one' is 'lab_one+' now" in verdict.repaired[0]
    assert "'.hidden' is '_hidden' now" in verdict.repaired[1]
    assert verify(older).violations == []
    with EpisodeStore.open(older) as store:
        assert store.ids() == ["lab_one+", "_hidden", "lab_one"]
        assert [row.facts.metadata.get("renamed_from") for row in store.summaries()] == ["lab/one", ".hidden", None]
        for number, name in enumerate(store.ids()):
            assert np.array_equal(store.read(name).action, valid(number, 5 + number).action)
        overlay = read_overlay(older, "judged", store.fingerprint("lab_one+"))
    assert (overlay.reward.tolist(), overlay.terminated, overlay.provenance) == ([0, 1, 2, 3, 4], True, {"by": "me"})
    kept = {file.name: file.read_bytes() for file in (older / "aside").glob("*/*.zip")}
    assert kept == {name: before[name] for name in ("000000.zarr.zip", "000001.zarr.zip")}
    assert repair(older).repaired == []


def test_what_else_is_wrong_with_a_renamed_episode_moves_it_aside(older):
    with EpisodeStore.create(older.parent / "wild", {"task": "t"}) as store:
        store.append(dataclasses.replace(valid(1, 6), reward=np.full(6, 1e30, np.float32)))
    content = (older.parent / "wild" / "episodes" / "000000.zarr.zip").read_bytes()
    (older / "episodes" / "000001.zarr.zip").write_bytes(with_id(content, ".hidden"))
    repair(older)
    assert verify(older).violations == []
    with EpisodeStore.open(older) as store:
        assert store.ids() == ["lab_one+", "lab_one"]


def test_an_episode_that_is_damaged_besides_is_moved_aside(older):
    file = older / "episodes" / "000001.zarr.zip"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    assert len(repair(older).repaired) == 2
    with EpisodeStore.open(older) as store:
        assert store.ids() == ["lab_one+", "lab_one"]


@pytest.mark.parametrize("wanted", ["a/b\\c", "..", "", "x" * 1000, "tab\there", ".", "/"])
def test_every_text_becomes_a_valid_id_that_is_free(wanted):
    first = valid_id(wanted, ())
    check_id(first)
    second = valid_id(wanted, {first})
    check_id(second)
    assert second != first
    assert len(second) <= LONGEST_ID
