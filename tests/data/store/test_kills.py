"""A process that records is killed with SIGKILL at random moments; whatever it had recorded is there, and is right."""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection

import pytest
from tagged import assert_same, cut, episode, steps

from robot_rl.data.store.store import EpisodeStore

pytestmark = pytest.mark.slow

RANDOM_KILLS, AIMED_KILLS = 60, 20
SHAPE = (48, 48, 3)


def length_of(number):
    return 3 + number % 14


def made(number):
    return episode(number, length_of(number), image_shape=SHAPE)


def keep_recording(path, done: Connection):
    """Records one episode after the other, and tells of every step that was taken and had time to be written."""
    multiprocessing.set_start_method("fork", force=True)  # the compressor's lock then leaves nothing behind when killed
    with EpisodeStore.open(path, write=True) as store:
        done.send(("recovered", tuple(store.recovered)))
        numbers = [int(name.removeprefix("episode-")) for name in store.ids()]
        number = 1 + max(numbers, default=-1)
        while True:
            whole = made(number)
            store.begin(whole.episode_id)
            for step in steps(whole):
                store.record(step)
                while store.load.waiting:  # at 10 Hz it is written long before the next
                    time.sleep(0.0002)
                done.send(("step", number, step.index))
            store.append(whole)
            done.send(("stored", number))
            number += 1


def messages(receiver):
    """What a killed process said; the last message may be half there."""
    said = []
    try:
        while receiver.poll():
            said.append(receiver.recv())
    except (EOFError, OSError):
        pass
    return said


@pytest.fixture(scope="module")
def processes():
    """Starts processes in which everything is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["zarr", "tagged", "test_kills"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the server imports what is preloaded
        yield context


def aim(path, kind):
    """Waits for a moment that random ones seldom hit: an episode's file is being written, or was renamed just now."""
    count, deadline = len(os.listdir(path / "episodes")), time.monotonic() + 20
    while time.monotonic() < deadline:
        if kind == "write" and any(name.endswith(".zip") for name in os.listdir(path / "partial")):
            return
        if kind == "rename" and len(os.listdir(path / "episodes")) > count:
            return
    raise AssertionError("nothing was written")


def test_kills_lose_at_most_the_newest_step_and_report_every_recovery(processes, tmp_path):
    path = tmp_path / "episodes"
    EpisodeStore.create(path).close()
    rng, found = random.Random(0), Counter()
    for kill in range(RANDOM_KILLS + AIMED_KILLS):
        receiver, sender = processes.Pipe(duplex=False)
        process = processes.Process(target=keep_recording, args=(path, sender), daemon=True)
        process.start()
        sender.close()
        assert receiver.poll(60)
        first = receiver.recv()
        assert first == ("recovered", ())
        if kill < RANDOM_KILLS:
            time.sleep(rng.uniform(0.0, 0.12))
        else:
            aim(path, ["write", "rename"][kill % 2])
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        said = messages(receiver)
        left = sorted(file.suffix for file in (path / "partial").iterdir())
        stored_before = len(EpisodeStore.open(path))

        with EpisodeStore.open(path, write=True) as after:
            assert len(after.recovered) == len(left)  # each is reported
            found.update([*left, *(["nothing to recover"] if len(after) == stored_before else [])])
            lengths = {row.episode_id: row for row in after.summaries()}
            for message in said:
                if message[0] == "stored":
                    assert lengths[f"episode-{message[1]}"].length == length_of(message[1])
                    assert "interrupted" not in lengths[f"episode-{message[1]}"].metadata
            if said and said[-1][0] == "step":
                _, number, index = said[-1]
                row = lengths.get(f"episode-{number}")
                assert (row.length if row else 0) >= index  # of steps 0 to index, the newest may be missing
    with EpisodeStore.open(path) as store:
        whole = interrupted = 0
        for read in store.episodes():
            expected = made(int(read.episode_id.removeprefix("episode-")))
            if "interrupted" in read.metadata:
                assert len(read) < len(expected)
                assert_same(read, cut(expected, len(read), {"interrupted": True}))
                interrupted += 1
            else:
                assert_same(read, expected)
                whole += 1
    print(f"{RANDOM_KILLS} + {AIMED_KILLS} kills: {whole} whole episodes, {interrupted} recovered; left: {dict(found)}")
    print("left behind:", dict(found))
    assert whole > RANDOM_KILLS / 4
    assert interrupted > RANDOM_KILLS / 4
