import dataclasses
import json
import shutil

import numpy as np
import pytest
from tagged import assert_same, steps, valid

from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import check_episode, repair, verify
from robot_rl.errors import DataError, RunDirectoryError


@pytest.fixture
def path(tmp_path):
    with EpisodeStore.create(tmp_path / "episodes", {"task": "reach"}) as store:
        for number in range(4):
            store.append(valid(number, 3 + number))
    return store.path


def violations(path):
    return [(v.file, v.episode_id, v.field) for v in verify(path).violations]


def test_a_store_in_order_has_no_violations(path):
    assert dataclasses.astuple(verify(path)) == (4, [], [], [])


def change(whole, **columns):
    for name, value in columns.items():
        row, entry = value
        column = getattr(whole, name).copy()
        column[row] = entry
        whole = dataclasses.replace(whole, **{name: column})
    return whole


@pytest.mark.parametrize(
    ("change_of", "field", "problem"),
    [
        (lambda e: change(e, action=(2, 1.5)), "action", "up to 1.5, must lie in [-1, 1]"),
        (lambda e: change(e, reward=(1, 1e30)), "reward", "up to 1e+30, must be within 1e+06"),
        (lambda e: change(e, terminated=(-1, False), truncated=(-1, False)), "truncated", "neither terminated nor"),
        (lambda e: change(e, source=(1, 9)), "source", "values [9], valid: [0, 1, 2, 3]"),
        (lambda e: change(e, stamp_obs=(2, 5)), "stamp_obs", "does not increase at row 2"),
        (lambda e: change(e, stamp_action=(1, 2**61 + 99)), "stamp_action", "does not increase at row 2"),
        (lambda e: dataclasses.replace(e, reward=e.reward.astype(float)), "reward", "is float64, must be float32"),
        (lambda e: dataclasses.replace(e, action_policy=e.action_policy[:, :1]), "action_policy", "shape (4, 1)"),
    ],
)
def test_every_violation_names_its_field(change_of, field, problem):
    found = list(check_episode(change_of(valid(0, 4))))
    assert [(name, text) for name, text in found if name == field and problem in text], found


@pytest.mark.parametrize("key", ["state/a", "images/wrist"])
def test_observations_are_checked_too(key):
    whole = valid(0, 4)
    bad = whole.observations[key].astype(np.float32)
    bad[3] = np.nan
    ((field, problem),) = check_episode(dataclasses.replace(whole, observations={**whole.observations, key: bad}))
    assert field == key
    assert "row 3" in problem if key == "state/a" else "must be uint8" in problem


def test_everything_that_is_wrong_is_named_and_repair_moves_just_that(path):
    episodes = path / "episodes"
    with EpisodeStore.open(path, write=True) as store:
        store.append(change(valid(4, 5), action=(0, -3.0)))
        narrow = {**valid(5, 5).observations, "state/a": np.zeros((6, 7), np.float32)}
        store.append(dataclasses.replace(valid(5, 5), observations=narrow))
        store.begin("episode-6")
        for step in steps(valid(6, 5))[:4]:
            store.record(step)
        for name in ("good", "bad"):
            with OverlayWriter(path, name, {}) as writer:
                writer.write(valid(0, 3), store.fingerprint("episode-0"), np.arange(3.0))
    shutil.copy(episodes / "000000.zarr.zip", episodes / "000009.zarr.zip")
    (episodes / "mine.txt").write_text("hello")
    broken = episodes / "000001.zarr.zip"
    broken.write_bytes(broken.read_bytes()[:-100])
    (overlay,) = (path / "overlays" / "bad").glob("*.zip")
    overlay.write_bytes(b"")

    expected = [
        ("episodes/000001.zarr.zip", None, "file"),
        ("episodes/000004.zarr.zip", "episode-4", "action"),
        ("episodes/000009.zarr.zip", "episode-0", "episode_id"),
        ("episodes/mine.txt", None, "name"),
        ("episodes/000005.zarr.zip", "episode-5", "state/a"),
        (str(overlay.relative_to(path)), None, "file"),
    ]
    assert sorted(violations(path)) == sorted(expected)
    assert "journal of episode-6: 3 steps recovered" in verify(path).leftovers[0]
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name != "writer.lock"}

    verdict = repair(path)
    assert len(verdict.repaired) == 7
    assert violations(path) == []
    with EpisodeStore.open(path) as store:
        assert store.ids() == ["episode-0", "episode-2", "episode-3", "episode-6"]
        assert_same(store.read("episode-2"), valid(2, 5))
        assert store.read("episode-0", rewards="good").reward.tolist() == [0, 1, 2]
    now = {file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert all(content in now for content in before.values())  # nothing was deleted


def test_a_damaged_head_is_made_anew_but_another_version_is_refused(path):
    head = path / "store.json"
    head.write_text('{"format": "robot')
    assert violations(path) == [("store.json", None, "head")]
    repair(path)
    assert (violations(path), EpisodeStore.open(path).metadata) == ([], {})
    head.write_text(json.dumps({"format": "robot_rl episodes", "version": 2, "metadata": {}}))
    for check in (verify, repair):
        with pytest.raises(DataError, match="version 2, this program reads"):
            check(path)
    head.unlink()
    with pytest.raises(DataError, match="no episode store there"):
        repair(path)


def test_a_store_in_use_is_not_repaired(path):
    with EpisodeStore.open(path, write=True), pytest.raises(RunDirectoryError, match="in use by process"):
        repair(path)


def test_several_processes_find_what_one_finds_in_the_same_order(tmp_path):
    path = tmp_path / "store"
    with EpisodeStore.create(path, {"task": "reach"}) as store:
        for number in range(40):
            store.append(valid(number, 3))
    files = sorted((path / "episodes").iterdir())
    files[7].write_bytes(files[7].read_bytes()[:-90])
    files[33].write_bytes(files[32].read_bytes())
    seen = []
    one = verify(path)
    several = verify(path, jobs=2, on_episode=lambda done, total: seen.append((done, total)))
    assert several == one
    assert [violation.file for violation in one.violations] == [f"episodes/{files[n].name}" for n in (7, 33)]
    assert seen == [(n, 40) for n in range(1, 41)]


def test_an_end_without_an_end_and_a_reward_beyond_all_are_violations():
    whole = valid(0, 3)
    assert list(check_episode(whole)) == []
    open_end = dataclasses.replace(whole, truncated=np.zeros(3, bool), terminated=np.zeros(3, bool))
    assert [field for field, _ in check_episode(open_end)] == ["truncated"]
    assert [field for field, _ in check_episode(change(whole, reward=(1, 1e30)))] == ["reward"]
