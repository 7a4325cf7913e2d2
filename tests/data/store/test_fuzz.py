"""500 damaged stores: each is read right, repaired on request, or refused with an error that says why."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged import COLUMNS, cut, steps, valid

from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import repair
from robot_rl.errors import RobotRLError

WHOLE = {f"episode-{number}": valid(number, 2 + number, image_shape=(2, 2, 3)) for number in range(3)}
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LABELS = np.arange(2.0)
FILES = (
    "store.json",
    "episodes/000000.zarr.zip",
    "episodes/000001.zarr.zip",
    "partial/000002.journal",
    "overlays/vlm/*.zip",
)
FUTURE = {b'"version": 1': b'"version": 2', b'"schema_version":2': b'"schema_version":3'}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Two episodes, one of them labelled, and a third that was being recorded."""
    path = tmp_path_factory.mktemp("fuzz") / "template"
    with EpisodeStore.create(path, {"task": "reach"}) as store:
        for name in ("episode-0", "episode-1"):
            store.append(WHOLE[name])
        with OverlayWriter(path, "vlm", {}) as writer:
            writer.write(WHOLE["episode-0"], store.fingerprint("episode-0"), LABELS)
        store.begin("episode-2")
        for step in steps(WHOLE["episode-2"]):
            store.record(step)
    return path


@st.composite
def damage(draw):
    """One thing that happens to one file."""
    kind = draw(
        st.sampled_from(["truncate", "flip", "flip", "overwrite", "rename", "swap", "remove", "future", "extend"])
    )
    return kind, draw(st.sampled_from(FILES)), draw(st.integers(0, 10**9)), draw(st.binary(min_size=1, max_size=40))


def inflict(path, kind, name, number, noise):
    (file,) = path.glob(name)
    content = bytearray(file.read_bytes())
    place = number % len(content)
    if kind == "truncate":
        file.write_bytes(content[:place])
    elif kind == "flip":
        content[place] ^= 1 << (number // len(content) % 8)
        file.write_bytes(content)
    elif kind == "overwrite":
        content[place : place + len(noise)] = noise
        file.write_bytes(content)
    elif kind == "extend":
        file.write_bytes(content + noise)
    elif kind == "rename":
        other = ["000007.zarr.zip", "7.zarr.zip", "000000.zarr.zip.bak", "x.journal", "store2.json"][number % 5]
        file.rename(file.with_name(other))
    elif kind == "swap":
        (other,) = path.glob(FILES[number % len(FILES)])
        other.write_bytes(content)
    elif kind == "remove":
        file.unlink()
    else:
        for old, new in FUTURE.items():
            content = content.replace(old, new)
        file.write_bytes(content)


def same_columns(one, other):
    arrays = [(getattr(one, name), getattr(other, name)) for name in COLUMNS]
    arrays += [(one.observations[key], other.observations[key]) for key in other.observations]
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in arrays)


def check(store):
    """Whatever can be read is what was recorded."""
    for episode_id in store.ids():
        read = store.read(episode_id)
        whole = WHOLE[episode_id]
        interrupted = read.metadata.get("interrupted")
        expected = cut(whole, len(read), {}) if interrupted else whole
        assert len(read) <= len(whole)
        assert read.observations.keys() == whole.observations.keys()
        assert same_columns(read, expected)
        assert read.metadata == ({"interrupted": True} if interrupted else whole.metadata)
        if (store.path / "overlays" / "vlm" / f"{store.fingerprint(episode_id)}.zip").exists():
            assert store.read(episode_id, rewards="vlm").reward.tolist() == LABELS.tolist()


def attempt(what, outcomes, path, work):
    """Counts how it went; any error but ours goes through and fails the test."""
    try:
        work()
        outcomes[f"{what}: fine"] += 1
        return True
    except RobotRLError as error:
        assert str(error)
        assert str(path) in str(error)
        outcomes[f"{what}: refused"] += 1
        return False


def use(path, *, write):
    with EpisodeStore.open(path, write=write) as store:
        check(store)


@pytest.mark.slow
def test_500_damaged_stores(template):
    outcomes = Counter()

    @settings(
        max_examples=500,
        deadline=None,
        derandomize=True,
        database=None,
    )
    @given(st.lists(damage(), min_size=1, max_size=2), st.sampled_from(["read", "write", "repair"]))
    def one(damages, what):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            path = Path(shutil.copytree(template, Path(folder, "store")))
            for number, single in enumerate(damages):
                try:
                    inflict(path, *single)
                except (ValueError, ZeroDivisionError):
                    assert number > 0  # the first damage left nothing of that name, or nothing in it
            if what != "repair":
                attempt(what, outcomes, path, lambda: use(path, write=what == "write"))
            elif attempt(what, outcomes, path, lambda: repair(path)):
                use(path, write=False)  # what is left is in order

    one()
    print("500 damaged stores:", dict(sorted(outcomes.items())))
    assert outcomes.total() >= 500
    assert len(outcomes) == 6
