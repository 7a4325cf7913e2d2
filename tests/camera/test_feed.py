"""A camera that freezes, is unplugged, or is not there: what the feed says, hands on, and does about it."""

import itertools
import threading
import time

import numpy as np
import pytest

from robot_rl.camera.feed import CameraFeed, FeedLimits
from robot_rl.camera.source import Frame
from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.errors import CameraError, ConfigError

PERIOD = NS_PER_S // 10


class Camera:
    """A camera that can be unplugged, and its sensor stopped; each frame holds its number."""

    def __init__(self):
        self.clock = FakeClock(NS_PER_S)
        self.there, self.frozen, self.number, self.serial = True, False, 0, "0042"
        self.lock = threading.Lock()

    def open(self):
        if not self.there:
            raise CameraError("it is not there")
        return self

    def read(self):
        time.sleep(0.001)
        with self.lock:
            self.clock.sleep_until(self.clock.now() + PERIOD)
            if not self.there:
                raise CameraError("no more frames; check its cable")
            self.number += not self.frozen
            return Frame(self.clock.now(), np.full((4, 4, 3), self.number % 251, np.uint8))

    def skip(self, frames):
        with self.lock:
            self.clock.sleep_until(self.clock.now() + frames * PERIOD)

    def close(self):
        pass


@pytest.fixture
def camera():
    return Camera()


@pytest.fixture
def feed(camera):
    made = Feed(camera)
    yield made
    made.feed.close()


class Feed:
    def __init__(self, camera):
        self.frames, self.faults, self.refuse = [], [], None
        limits = FeedLimits(rate=10.0, frozen_after=1.0, silent_after=0.5, retry=0.01)
        self.feed = CameraFeed("wrist", camera.open, self.take, self.faults.append, limits, camera.clock)
        self.feed.start()

    def take(self, frame):
        if self.refuse:
            raise self.refuse
        self.frames.append(frame)

    def sees(self, condition):
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end, (self.faults, self.feed.state())
            time.sleep(0.002)

    def goes_on(self):
        count = len(self.frames)
        self.sees(lambda: len(self.frames) > count + 3)
        assert self.feed.state().fault is None


def test_frames_are_handed_on_in_order_with_their_stamps(feed):
    feed.goes_on()
    seen = list(feed.frames)
    assert [int(f.image[0, 0, 0]) for f in seen] == list(range(1, len(seen) + 1))
    assert all(b.stamp - a.stamp == PERIOD for a, b in itertools.pairwise(seen))
    state = feed.feed.state()
    assert (state.dropped, state.opened, feed.feed.serial) == (0, 1, "0042")


def test_the_rate_is_counted_by_the_stamps(feed):
    feed.sees(lambda: len(feed.frames) > 30)
    assert feed.feed.state().rate == pytest.approx(10.0, abs=0.6)


def test_frames_that_are_missing_are_counted(camera, feed):
    feed.goes_on()
    camera.skip(7)
    feed.goes_on()
    assert feed.feed.state().dropped == 7


def test_a_frozen_camera_is_named_opened_again_and_silent_until_its_picture_changes(camera, feed):
    feed.goes_on()
    camera.frozen = True
    feed.sees(lambda: feed.faults)
    assert "camera wrist is frozen: its picture has not changed for 1 s" in feed.faults[0]
    assert "unplug it" in feed.faults[0]
    handed_on = len(feed.frames)
    feed.sees(lambda: feed.feed.state().opened >= 4)
    assert len(feed.frames) == handed_on
    assert feed.feed.state().fault == feed.faults[0]
    assert len(feed.faults) == 1, "the same fault is said once"
    camera.frozen = False
    feed.goes_on()


def test_an_unplugged_camera_is_named_and_goes_on_when_it_is_back(camera, feed):
    feed.goes_on()
    camera.there = False
    feed.sees(lambda: "it is not there" in feed.faults)
    assert "check its cable" in feed.faults[0]
    camera.there = True
    feed.goes_on()
    assert feed.feed.state().opened == 2


def test_a_camera_that_is_not_there_at_the_start_may_come_later(camera):
    camera.there = False
    feed = Feed(camera)
    feed.sees(lambda: feed.faults)
    assert feed.feed.state().age == float("inf")
    camera.there = True
    feed.goes_on()
    feed.feed.close()


def test_a_driver_that_hangs_is_noticed(camera, feed):
    feed.goes_on()
    with camera.lock:
        camera.clock.sleep_until(camera.clock.now() + NS_PER_S)
        assert "has given no frame for 1.0 s" in feed.feed.state().fault


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ConfigError("no use for it"), "no use for it"),
        (OSError("the disk is full"), "camera wrist: OSError: the disk is full"),
    ],
)
def test_what_the_reader_cannot_use_is_a_fault_until_it_can(feed, raised, said):
    feed.goes_on()
    feed.refuse = raised
    feed.sees(lambda: feed.faults == [said])
    feed.refuse = None
    feed.goes_on()
