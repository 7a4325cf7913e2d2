import dataclasses
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import zarr
from tagged import assert_same, episode, steps, valid
from zarr.storage import ZipStore

from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import verify
from robot_rl.errors import DataError, RunDirectoryError

TESTS = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{TESTS.parent}:{TESTS}:{TESTS / 'support'}", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.create(tmp_path / "episodes", {"task": "reach"}) as made:
        yield made


def episode_file(path, position=0):
    return path / "episodes" / f"{position:06d}.zarr.zip"


def some_episodes():
    H, P = Source.HUMAN, Source.POLICY
    return [
        episode(0, 25, sources=[P] * 10 + [H] * 5 + [P] * 10),
        episode(1, 1, end="truncated"),
        episode(2, 9, end="truncated"),
        dataclasses.replace(
            episode(3, 4, image_shape=(3, 5, 1)),
            observations={
                "state/double": np.linspace(0, 1, 15).reshape(5, 3) / 3,
                "state/scalar": -np.zeros(5, np.float32),
                "state/matrix": np.arange(45, dtype=np.float32).reshape(5, 3, 3),
                "state/flag": np.array([True, False, True, True, False]),
                "state/none": np.zeros((5, 0), np.float32),
                "state/int": np.array([[-1, 2**31 - 1]] * 5, np.int32),
                "images/dark": np.zeros((5, 2, 2, 3), np.uint8),
            },
            metadata={},
        ),
    ]


def test_episodes_come_back_bit_for_bit(store):
    written = some_episodes()
    for one in written:
        store.append(one)
    for reader in (store, EpisodeStore.open(store.path)):
        assert len(reader) == 4
        assert reader.ids() == [one.episode_id for one in written]
        for one, read in zip(written, reader.episodes(), strict=True):
            assert_same(one, read)
        assert_same(written[2], reader.read("episode-2"))
        assert reader.metadata == {"task": "reach"}
        assert reader.recovered == []


def test_read_arrays_can_be_changed_without_changing_the_store(store):
    store.append(episode(0, 5))
    read = store.read("episode-0")
    read.reward[:] = 7
    read.observations["images/wrist"][:] = 0
    assert_same(store.read("episode-0"), episode(0, 5))


def test_summaries_need_no_arrays(store):
    store.append(episode(0, 5))
    store.append(episode(1, 7, end="truncated"))
    store.append(dataclasses.replace(episode(2, 3), metadata={}))
    rows = EpisodeStore.open(store.path).summaries()
    assert rows == store.summaries()
    assert [(row.position, row.episode_id, row.length) for row in rows] == [
        (0, "episode-0", 5),
        (1, "episode-1", 7),
        (2, "episode-2", 3),
    ]
    assert [row.success for row in rows] == [True, False, None]
    assert rows[1].metadata == episode(1, 7, end="truncated").metadata


def test_any_zarr_reader_can_look_into_an_episode(store):
    store.append(episode(0, 25))
    group = zarr.open_group(ZipStore(episode_file(store.path), mode="r"), mode="r")
    frames = group["images/wrist"]
    assert frames.chunks == (10, 8, 6, 3)
    assert np.array_equal(frames[13], episode(0, 25).observations["images/wrist"][13])
    column = group.attrs["columns"]["reward"]
    assert np.array_equal(group[column["table"]][:, column["start"]], episode(0, 25).reward)


def test_a_fingerprint_is_of_the_data_and_not_of_the_time_of_writing(store, tmp_path):
    store.append(valid(3, 7))
    with zipfile.ZipFile(next(store.path.rglob("*.zip"))) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}, "zip for no time at all"
    again = valid(3, 7)
    for name, made in (("same", again), ("later", dataclasses.replace(again, stamp_obs=again.stamp_obs + 1))):
        with EpisodeStore.create(tmp_path / name, {}) as other:
            other.append(made)
            same = other.fingerprint("episode-3") == store.fingerprint("episode-3")
        assert same is (name == "same")


def test_only_new_directories_and_only_stores(store, tmp_path):
    with pytest.raises(RunDirectoryError, match="is in use by process"):
        EpisodeStore.create(store.path)
    store.close()
    with pytest.raises(RunDirectoryError, match="already holds an episode store"):
        EpisodeStore.create(store.path)
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(RunDirectoryError, match=r"not empty: .*thesis\.txt"):
        EpisodeStore.create(tmp_path)
    with pytest.raises(DataError, match="no episode store there"):
        EpisodeStore.open(tmp_path)
    head = store.path / "store.json"
    head.write_text(head.read_text().replace('"version": 1', '"version": 99'))
    with pytest.raises(DataError, match=r"version 99, this program reads .* version 1"):
        EpisodeStore.open(store.path)
    head.write_text("{")
    with pytest.raises(DataError, match=r"store\.json: cannot be read"):
        EpisodeStore.open(store.path)


def test_an_interrupted_create_can_be_repeated_and_what_is_there_gone_on_with(tmp_path):
    (tmp_path / "s" / "episodes").mkdir(parents=True)
    (tmp_path / "s" / ".store.json.tmp").write_text("half")
    with EpisodeStore.create(tmp_path / "s") as made:
        made.append(episode(0, 2))
    assert len(EpisodeStore.open(tmp_path / "s")) == 1
    with EpisodeStore.open_or_create(tmp_path / "s", {}) as again, EpisodeStore.open_or_create(tmp_path / "n", {}) as n:
        again.append(episode(1, 2))
        assert (len(again), len(n)) == (2, 0)


def test_what_cannot_be_stored_is_refused(store):
    store.append(episode(0, 2))
    with pytest.raises(DataError, match="already holds episode episode-0"):
        store.append(episode(0, 3))
    for metadata in ({"x": np.float32(1)}, {"x": float("nan")}):
        with pytest.raises(DataError, match="episode-1: metadata must be JSON values"):
            store.append(dataclasses.replace(episode(1, 2), metadata=metadata))
    with pytest.raises(DataError, match="metadata must be JSON values"):
        EpisodeStore.create(store.path.parent / "other", {"x": object()})
    odd = {**episode(1, 2).observations, "depth": np.zeros((3, 1))}
    with pytest.raises(DataError, match=r"\['depth'\] are neither state/... nor images/..."):
        store.append(dataclasses.replace(episode(1, 2), observations=odd))
    with pytest.raises(DataError, match=r"no episode 'nope'; it holds 1 from episode-0 to episode-0"):
        store.read("nope")
    with pytest.raises(RunDirectoryError, match="open for reading only"):
        EpisodeStore.open(store.path).append(episode(1, 2))
    assert len(EpisodeStore.open(store.path)) == 1


def test_set_aside_moves_and_deletes_nothing(store):
    for number in range(5):
        store.append(episode(number, 3))
    assert store.set_aside(store.ids()[3:], "resumed from an older checkpoint") == store.path / "aside" / "0"
    assert store.ids() == ["episode-0", "episode-1", "episode-2"]
    assert store.set_aside([], "nothing there") is None
    with pytest.raises(DataError, match="no episode 'episode-3'"):
        store.set_aside(["episode-0", "episode-3"], "gone already")
    store.append(episode(9, 4))
    store.close()
    with EpisodeStore.open(store.path, write=True) as again:
        assert again.ids() == ["episode-0", "episode-1", "episode-2", "episode-9"]
        assert again.recovered == []
        again.set_aside(["episode-9"], "once more")
        aside = store.path / "aside"
        note = json.loads((aside / "0" / "reason.json").read_text())
        assert note["reason"] == "resumed from an older checkpoint"
        assert sorted(path.name for path in (aside / "0").iterdir()) == [
            "000003.zarr.zip",
            "000004.zarr.zip",
            "reason.json",
        ]
        assert (aside / "1" / "000003.zarr.zip").is_file()
    for name in ("000003.zarr.zip", "000004.zarr.zip"):  # moved back, they are part of the store again
        (aside / "0" / name).rename(store.path / "episodes" / name)
    assert EpisodeStore.open(store.path).ids() == [f"episode-{number}" for number in range(5)]


def test_leftovers_are_moved_aside_and_reported(store):
    store.append(episode(0, 3))
    store.close()
    leftover = store.path / "partial" / "000001.zarr.zip"
    leftover.write_bytes(episode_file(store.path).read_bytes()[:500])
    reader = EpisodeStore.open(store.path)
    assert (len(reader), reader.recovered, leftover.exists()) == (1, [], True)
    with EpisodeStore.open(store.path, write=True) as writer:
        assert len(writer.recovered) == 1
        assert "not completely written" in writer.recovered[0]
        writer.append(episode(1, 3))
    assert (store.path / "aside" / "0" / "000001.zarr.zip").stat().st_size == 500
    with EpisodeStore.open(store.path, write=True) as writer:
        assert (len(writer), writer.recovered) == (2, [])


def test_damage_is_never_read_as_data(store):
    """A flipped bit or a cut anywhere is either an error or harmless (zip keeps time stamps twice, for example)."""
    original = episode(0, 12)
    store.append(original)
    file = episode_file(store.path)
    intact = file.read_bytes()
    rng, errors = random.Random(0), 0
    for _ in range(150):
        damaged = bytearray(intact)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        file.write_bytes(damaged)
        try:
            read = EpisodeStore.open(store.path).read("episode-0")
        except DataError as error:
            assert str(file) in str(error)
            errors += 1
        else:
            assert_same(original, read)
    assert errors > 75
    for size in (0, 1, 100, len(intact) // 2, len(intact) - 1):
        file.write_bytes(intact[:size])
        with pytest.raises(DataError, match=r"damaged, or not an episode.*move that file out"):
            EpisodeStore.open(store.path)
    with pytest.raises(DataError, match="episode episode-0 cannot be read"):
        store.read("episode-0")


def test_files_that_do_not_belong_there_are_not_skipped(store):
    store.append(episode(0, 2))
    copy = episode_file(store.path, 1)
    copy.write_bytes(episode_file(store.path).read_bytes())
    with pytest.raises(DataError, match=r"000000\.zarr\.zip and 000001\.zarr\.zip are both episode episode-0"):
        EpisodeStore.open(store.path)
    copy.rename(store.path / "episodes" / "mine.zarr.zip")
    with pytest.raises(DataError, match="mine"):
        EpisodeStore.open(store.path)


WRITER = """
import itertools, sys
from tagged import episode
from robot_rl.data.store.store import EpisodeStore
store = EpisodeStore.open(sys.argv[1], write=True)
print("recovered", len(store.recovered), flush=True)
for number in itertools.count(len(store)):
    store.append(episode(number, 20, image_shape=(48, 48, 3)))
    print(number, flush=True)
"""


def start_writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    recovered = process.stdout.readline().split()
    assert recovered[:1] == ["recovered"]
    return process


def test_a_second_writer_is_refused_by_the_name_of_the_first_and_readers_are_free(store):
    store.close()
    process = start_writer(store.path)
    try:
        with pytest.raises(RunDirectoryError, match=f"is in use by process {process.pid}"):
            EpisodeStore.open(store.path, write=True)
        for _ in range(20):  # while it writes
            for read in EpisodeStore.open(store.path).episodes():
                assert_same(read, episode(read.metadata["number"], 20, image_shape=(48, 48, 3)))
            if len(EpisodeStore.open(store.path)) > 3:
                break
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
    EpisodeStore.open(store.path, write=True).close()  # the kernel dropped the lock


@contextmanager
def file_size_limit(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_file_size_limit_is_an_error_and_leaves_the_rest_intact(store):
    store.append(episode(0, 3))
    with file_size_limit(10_000), pytest.raises(RunDirectoryError, match=r"000001\.zarr\.zip"):
        store.append(episode(1, 30, image_shape=(32, 32, 3)))
    assert list((store.path / "partial").iterdir()) == []
    store.append(episode(1, 2))
    assert [read.episode_id for read in EpisodeStore.open(store.path).episodes()] == ["episode-0", "episode-1"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_an_error_and_leaves_the_rest_intact(small_disk):
    store = EpisodeStore.create(small_disk / "episodes")
    with pytest.raises(RunDirectoryError, match=rf"{small_disk}.*No space left on device; the disk is full"):
        for number in range(100):
            store.append(episode(number, 20, image_shape=(48, 48, 3)))
    assert len(store) > 2
    store.close()
    with EpisodeStore.open(small_disk / "episodes", write=True) as after:
        assert (len(after), after.recovered) == (len(store), [])
        for number, read in enumerate(after.episodes()):
            assert_same(read, episode(number, 20, image_shape=(48, 48, 3)))
        after.set_aside(after.ids()[-1:], "make no room")  # moving needs next to no space


def test_a_disk_that_fills_up_while_recording_loses_no_finished_episode_and_no_step_that_fitted(small_disk):
    path, number = small_disk / "episodes", 0
    (small_disk / "ballast").write_bytes(bytes(300_000))
    with EpisodeStore.create(path) as store:
        with pytest.raises(RunDirectoryError, match="the disk is full; make room"):
            while True:
                whole = episode(number, 20, image_shape=(48, 48, 3))
                store.begin(whole.episode_id)
                for step in steps(whole):
                    store.record(step)
                store.append(whole)
                number += 1
        finished = len(store)
    assert 2 < finished <= number + 1
    with EpisodeStore.open(path) as store:
        for one, read in enumerate(store.episodes()):
            assert_same(read, episode(one, 20, image_shape=(48, 48, 3)))
    if finished == number + 1:
        return  # the last episode did fit, its journal did not
    assert [file.suffix for file in (path / "partial").iterdir()] == [".journal"]
    (small_disk / "ballast").unlink()
    with EpisodeStore.open(path, write=True) as after:
        assert f"journal of episode-{finished}" in after.recovered[0]
        assert len(after.read(f"episode-{finished}")) >= 1


def test_a_read_only_disk_can_be_read_but_not_written(small_disk):
    path = small_disk / "episodes"
    writer = EpisodeStore.create(path)
    writer.append(episode(0, 3))
    writer.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert_same(EpisodeStore.open(path).read("episode-0"), episode(0, 3))
    with pytest.raises(RunDirectoryError, match="Read-only file system"):
        EpisodeStore.open(path, write=True)
    with pytest.raises(RunDirectoryError, match="Read-only file system"):
        EpisodeStore.create(small_disk / "another")


def test_a_directory_without_write_permission():
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path: only its owner may look into that
        path = Path(folder, "episodes")
        with EpisodeStore.create(path) as writer:
            writer.append(episode(0, 3))
        assert_same(EpisodeStore.open(path).read("episode-0"), episode(0, 3))
        inside = [Path(folder), path, *path.rglob("*")]
        for entry in inside:
            entry.chmod(0o555 if entry.is_dir() else 0o444)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)  # root may write everywhere, so be nobody
        try:
            assert_same(EpisodeStore.open(path).read("episode-0"), episode(0, 3))
            with pytest.raises(RunDirectoryError, match="Permission denied; not allowed; choose a directory"):
                EpisodeStore.open(path, write=True)
            with pytest.raises(RunDirectoryError, match="Permission denied; not allowed; choose a directory"):
                EpisodeStore.create(Path(folder, "another"))
        finally:
            if root:
                os.seteuid(0)
            for entry in inside:
                entry.chmod(0o755 if entry.is_dir() else 0o644)


def test_append_is_fast(store):
    bare = episode(0, 100)
    observations = {key: value for key, value in bare.observations.items() if key.startswith("state/")}
    seconds = []
    for number in range(15):
        one = dataclasses.replace(bare, episode_id=str(number), observations=observations)
        start = time.perf_counter()
        store.append(one)
        seconds.append(time.perf_counter() - start)
    print(f"append of 100 steps without images: {1e3 * min(seconds):.1f} ms")
    assert min(seconds) < 0.05  # 6 ms on an idle core


def test_a_store_takes_no_episode_without_an_end(tmp_path):
    whole = valid(0, 4)
    never = np.zeros(4, bool)
    open_ended = dataclasses.replace(whole, terminated=never, truncated=never)
    assert (whole.ended, open_ended.ended) == (True, False)
    with EpisodeStore.create(tmp_path / "store") as store:
        with pytest.raises(DataError, match="episode-0 ends neither terminated nor truncated; set truncated"):
            store.append(open_ended)
        store.append(whole)
    assert not verify(store.path).violations
