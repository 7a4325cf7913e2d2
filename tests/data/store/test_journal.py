"""The journal and its recorder: what is read back of a file that ends anywhere, and a disk that is slow or full."""

import dataclasses
import resource
import struct
import threading
import time
import zlib

import numpy as np
import pytest
from tagged import assert_same, cut, episode, steps, valid

from robot_rl.data.store.journal import JournalWriter, read_journal
from robot_rl.data.store.recorder import StepRecorder
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import verify
from robot_rl.errors import DataError, RunDirectoryError, StepOrderError

INTERRUPTED = {"interrupted": True}


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.create(tmp_path / "episodes") as made:
        yield made


def write_journal(path, whole, *, finish=True, **options):
    writer = JournalWriter(path, whole.episode_id, {"task": "reach"}, **options)
    for step in steps(whole):
        writer.write(step)
    if finish:
        writer.finish(whole)
    writer.close()
    return path


@pytest.mark.parametrize("sync", [False, True])
def test_a_finished_journal_is_the_episode_bit_for_bit(sync, tmp_path):
    whole = dataclasses.replace(
        episode(3, 6),
        observations={
            "state/double": np.linspace(0, 1, 21).reshape(7, 3) / 3,
            "state/scalar": -np.zeros(7, np.float32),
            "state/flag": np.arange(7) % 2 == 0,
            "state/none": np.zeros((7, 0), np.float32),
            "images/wrist": episode(3, 6).observations["images/wrist"],
        },
        reward_source="classifier",
    )
    journal = read_journal(write_journal(tmp_path / "j", whole, sync=sync))
    assert (journal.complete, journal.unread, len(journal)) == (True, 0, 6)
    assert_same(journal.episode(), whole)


def test_a_cut_and_a_late_judge_are_in_what_is_recovered(store):
    """The robot is lost after the last step, or an operator judges the end; then the program is killed."""
    whole = dataclasses.replace(valid(3, 6, end="truncated"), reward_source="human")
    writer = JournalWriter(store.path / "partial" / "000000.journal", whole.episode_id, {})
    for step in steps(whole):
        writer.write(dataclasses.replace(step, truncated=False, reward_source="human" if step.index == 5 else "task"))
    writer.finish(whole)
    writer.close()
    store.close()
    with EpisodeStore.open(store.path, write=True) as recovered:
        assert_same(recovered.read(whole.episode_id), whole)
    assert verify(store.path).violations == []


def test_a_journal_cut_anywhere_gives_every_step_whose_outcome_is_in_it(tmp_path):
    whole = episode(1, 4, image_shape=(2, 2, 3))
    content = write_journal(tmp_path / "j", whole).read_bytes()
    ends = [write_journal(tmp_path / f"{n}", cut(whole, n, {}), finish=False).stat().st_size for n in range(1, 5)]
    assert ends == sorted(set(ends))
    for size in range(len(content)):
        (tmp_path / "cut").write_bytes(content[:size])
        journal = read_journal(tmp_path / "cut")
        records = sum(end <= size for end in ends)
        assert (len(journal) if journal else 0) == max(0, records - 1)
        if records > 1:
            assert not journal.complete
            assert_same(journal.episode(), cut(whole, records - 1, {"task": "reach"}))


def test_a_flipped_bit_ends_the_journal_and_is_never_read(tmp_path):
    whole = episode(1, 4, image_shape=(2, 2, 3))
    content = write_journal(tmp_path / "j", whole).read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        (tmp_path / "damaged").write_bytes(damaged)
        journal = read_journal(tmp_path / "damaged")
        if journal is not None and len(journal):
            assert not journal.complete
            assert journal.unread > 0
            assert_same(journal.episode(), cut(whole, len(journal), {"task": "reach"}))


def test_a_journal_of_another_version_is_refused_and_left_alone(store):
    path = write_journal(store.path / "partial" / "000000.journal", episode(0, 2))
    content = path.read_bytes()
    start = content.index(b'{"version"')
    kind, length, _ = struct.unpack("<BII", content[start - 9 : start])
    head = content[start : start + length].replace(b'"version": 1', b'"version": 7')
    frame = struct.pack("<BII", kind, length, zlib.crc32(head, zlib.crc32(bytes([kind]))))
    path.write_bytes(content[: start - 9] + frame + head + content[start + length :])
    store.close()
    with pytest.raises(
        DataError, match=r"000000\.journal: journal version 7 of schema 2, this program reads 1 of schema 1, 2 and 3"
    ):
        EpisodeStore.open(store.path, write=True)
    assert path.is_file()
    assert EpisodeStore.open(store.path).ids() == []


def test_steps_that_cannot_be_one_episode_are_refused(tmp_path):
    first, second, _ = steps(episode(0, 3))
    for wrong, message in [
        (steps(episode(1, 3))[1], "step 1 of episode-1 cannot follow 1 steps of episode-0"),
        (first, "step 0 of episode-0 cannot follow 1"),
        (
            dataclasses.replace(second, observation={**second.observation, "state/a": np.zeros(2, np.float32)}),
            r"state/a of step 1 is float32 \(2,\), was float32 \(1,\)",
        ),
        (dataclasses.replace(second, observation={"state/a": second.observation["state/a"]}), "images/wrist"),
    ]:
        writer = JournalWriter(tmp_path / "j", "episode-0", {})
        writer.write(first)
        with pytest.raises(DataError, match=message):
            writer.write(wrong)
        writer.close()
        (tmp_path / "j").unlink()
    with pytest.raises(DataError, match="metadata must be JSON values"):
        JournalWriter(tmp_path / "j", "episode-0", {"x": object()}).write(first)


class SlowJournal(JournalWriter):
    """A disk that takes the second step, and the others only when told to."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.reached, self.released = threading.Event(), threading.Event()

    def write(self, step):
        if step.index == 1:
            self.reached.set()
            assert self.released.wait(20)
        super().write(step)


def test_a_slow_disk_never_blocks_control_and_is_noticed(tmp_path):
    whole = episode(0, 12)
    journal = SlowJournal(tmp_path / "j", "episode-0", {})
    recorder = StepRecorder(journal, capacity=4)
    for step in steps(whole)[:2]:
        recorder.add(step)
    assert journal.reached.wait(20)
    for step in steps(whole)[2:]:
        recorder.add(step)  # returns although nobody takes it
    assert (recorder.load.queue_peak, recorder.load.not_journalled) == (5, 6)  # one of them is being written
    journal.released.set()
    recorder.finish(whole)
    read = read_journal(tmp_path / "j")
    assert (read.complete, len(read), recorder.error) == (False, 5, None)
    assert_same(read.episode(), cut(whole, 5, {}))


class BrokenJournal(JournalWriter):
    """A program error in the thread."""

    def write(self, step):
        raise AssertionError("cannot happen")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_neither_blocks_nor_passes_unnoticed(tmp_path):
    whole = episode(0, 12)
    recorder = StepRecorder(BrokenJournal(tmp_path / "j", "episode-0", {}), capacity=2)
    for step in steps(whole):
        recorder.add(step)
    recorder.finish(whole)
    assert "ended by an error of the program" in str(recorder.error)


# ---------------------------------------------------------------------- in a store


def record(store, whole, length=None):
    store.begin(whole.episode_id, {"task": "reach"})
    for step in steps(whole)[:length]:
        store.record(step)


def test_a_recorded_episode_leaves_no_journal(store):
    record(store, episode(0, 5))
    deadline = time.monotonic() + 20
    while store.load.waiting:
        assert time.monotonic() < deadline
    assert [path.name for path in (store.path / "partial").iterdir()] == ["000000.journal"]
    store.append(episode(0, 5))
    assert list((store.path / "partial").iterdir()) == []
    assert store.load.queue_peak >= 1
    assert store.load.not_journalled == 0
    with EpisodeStore.open(store.path) as reader:
        assert_same(reader.read("episode-0"), episode(0, 5))


@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupted_episode_is_recovered_and_reported(keep, store):
    store.append(episode(0, 3))
    record(store, episode(1, 9), 7)
    store.close()
    assert EpisodeStore.open(store.path).ids() == ["episode-0"]  # a reader leaves it alone
    with EpisodeStore.open(store.path, write=True, keep_interrupted=keep) as after:
        (report,) = after.recovered
        assert "journal of episode-1: 6 steps recovered, the newest is lost" in report
        expected = cut(episode(1, 9), 6, {"task": "reach", "interrupted": True})
        aside = store.path / "aside" / "0"
        assert (aside / "000001.journal").is_file()
        if keep:
            assert "it is episode 1 of the store" in report
            assert_same(after.read("episode-1"), expected)
            after.append(episode(2, 2))
        else:
            assert f"as an episode it lies in {aside}" in report
            assert after.ids() == ["episode-0"]
            (aside / "000001.zarr.zip").rename(store.path / "episodes" / "000001.zarr.zip")
            assert_same(EpisodeStore.open(store.path).read("episode-1"), expected)
            after.append(dataclasses.replace(episode(1, 9), episode_id="again"))
    with EpisodeStore.open(store.path, write=True) as once_more:
        assert once_more.recovered == []


def test_an_episode_that_had_ended_is_recovered_whole_also_where_interrupted_ones_are_not_kept(store):
    store.close()
    write_journal(store.path / "partial" / "000000.journal", episode(1, 9))
    with EpisodeStore.open(store.path, write=True, keep_interrupted=False) as after:
        assert "complete, all 9 steps recovered; it is episode 0" in after.recovered[0]
        assert_same(after.read("episode-1"), episode(1, 9))
    assert not (store.path / "aside").exists()


def test_a_journal_whose_episode_was_stored_is_not_recovered_twice(store):
    store.append(episode(1, 9))
    store.close()
    write_journal(store.path / "partial" / "000001.journal", episode(1, 9))
    with EpisodeStore.open(store.path, write=True) as after:
        assert "journal of episode-1, which was stored" in after.recovered[0]
        assert after.ids() == ["episode-1"]
    assert not (store.path / "aside").exists()
    other = dataclasses.replace(episode(1, 9), action=-episode(1, 9).action)  # another recording of that name
    write_journal(store.path / "partial" / "000001.journal", other)
    with EpisodeStore.open(store.path, write=True) as after:
        assert_same(after.read("episode-1"), episode(1, 9))
    assert_same(read_journal(store.path / "aside" / "0" / "000001.journal").episode(), other)


def test_a_recovery_that_was_itself_interrupted_is_not_done_twice(store):
    record(store, episode(1, 9), 7)
    store.close()
    EpisodeStore.open(store.path, write=True).close()
    (store.path / "aside" / "0" / "000000.journal").rename(store.path / "partial" / "000000.journal")
    with EpisodeStore.open(store.path, write=True) as after:
        assert "journal of episode-1, which was stored" in after.recovered[0]
        assert after.ids() == ["episode-1"]
    assert (store.path / "aside" / "1" / "000000.journal").is_file()


def test_a_journal_of_one_step_is_kept_but_is_no_episode(store):
    record(store, episode(1, 9), 1)
    store.close()
    with EpisodeStore.open(store.path, write=True) as after:
        assert "holds no step whose outcome is known" in after.recovered[0]
        assert after.ids() == []
    assert (store.path / "aside" / "0" / "000000.journal").is_file()


def test_an_episode_that_is_not_appended_is_recovered_by_the_next(store):
    record(store, episode(0, 5), 4)
    record(store, episode(1, 5))
    store.append(episode(1, 5))
    assert store.ids() == ["episode-0", "episode-1"]
    assert_same(store.read("episode-0"), cut(episode(0, 5), 3, {"task": "reach"} | INTERRUPTED))
    assert "journal of episode-0: 3 steps recovered" in store.recovered[0]


def test_recording_out_of_order_is_refused(store):
    with pytest.raises(StepOrderError, match="begin"):
        store.record(steps(episode(0, 1))[0])
    record(store, episode(0, 5))
    with pytest.raises(DataError, match="episode-0 is being recorded"):
        store.append(episode(1, 5))
    store.append(episode(0, 5))
    with pytest.raises(DataError, match="already holds episode episode-0"):
        store.begin("episode-0")
    with pytest.raises(RunDirectoryError, match="open for reading only"):
        EpisodeStore.open(store.path).begin("episode-1")


def test_a_journal_that_cannot_be_written_is_an_error_after_the_episode_was_stored(store):
    whole = episode(0, 40, image_shape=(24, 24, 3))
    flat = {**whole.observations, "images/wrist": np.zeros((41, 24, 24, 3), np.uint8)}
    whole = dataclasses.replace(whole, observations=flat)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))  # the journal is raw, the episode compressed
    try:
        record(store, whole)
        with pytest.raises(RunDirectoryError, match=r"000000\.journal: File too large; .*raise the limit"):
            store.append(whole)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_same(EpisodeStore.open(store.path).read("episode-0"), whole)
    assert list((store.path / "partial").iterdir()) == []
    assert_same(store.read("episode-0"), whole)
