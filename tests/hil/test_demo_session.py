"""Demonstrations by a person: what is kept, what is moved aside, what is said, and what a fault does."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC, fake_workcell

from robot_rl.clock import FakeClock
from robot_rl.data.schema import Source
from robot_rl.data.store.demo_quality import quality_warnings
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import E_STOP, Supervision
from robot_rl.errors import RobotRLError, UnknownNameError
from robot_rl.hil.demo_session import DemoSession
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.mapping import DeviceMap
from robot_rl.teleop.pushed import PushedDevice

LONG = replace(SPEC, max_steps=400)


class Paced(FakeClock):
    """Fast, but slow enough that a person's words fall into an episode."""

    def sleep_until(self, stamp):
        time.sleep(0.002)
        super().sleep_until(stamp)


class Desk:
    """A session in a thread of its own, and what it reported."""

    def __init__(self, path, episodes, spec=LONG):
        cell = fake_workcell(spec)
        cell.io.clock.__class__ = Paced
        self.io, self.supervision = cell.io, Supervision(cell)
        self.hand = PushedDevice("browser", ("x",), (), max_age=1e9, name="hand")
        person = DeviceOperator([(self.hand, DeviceMap(axes={"x": "x"}, smoothing=0.0))], spec, self.supervision)
        env = RobotEnv(self.supervision.workcell(person))
        self.store = EpisodeStore.create(path, {})
        self.phases, self.remarks, self.counts = [], [], []
        self.session = DemoSession(env, self.store, self.supervision, person, episodes=episodes, seed=0, reporter=self)
        self.failure = None
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            self.session.run(self._stop.is_set)
        except RobotRLError as error:
            self.failure = error

    def phase(self, name, text, requests):
        self.phases.append((name, requests))

    def remark(self, text):
        self.remarks.append(text)

    def kept(self, count, wanted):
        self.counts.append(count)

    def until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, (self.phases[-3:], self.remarks)
            time.sleep(0.002)

    def until_phase(self, name):
        self.until(lambda: self.phases and self.phases[-1][0] == name)

    def begin(self, steps=5):
        """Starts an attempt and leads it for some steps."""
        self.until_phase("ready")
        self.lead(steps, "start")

    def lead(self, steps, request=None):
        if request is not None:
            self.session.request(request)
        self.until_phase("waiting")
        before = len(self.io.commands)
        self.hand.push([0.4], [])
        self.until(lambda: len(self.io.commands) >= before + steps)

    def rest(self):
        self.hand.push([0.0], [])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        self.session.request("stop")
        self.thread.join()
        self.store.close()


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path / "demos", 2) as made:
        yield made
        assert made.failure is None


def aside(path):
    return sorted(file.parent.name for file in (path / "aside").glob("*/*.zip"))


def test_success_failure_discard_redo_and_finish(desk):
    desk.begin()
    desk.session.request("success")
    desk.rest()
    desk.begin()
    desk.session.request("failure")
    desk.rest()
    desk.until_phase("complete")
    assert [row.success for row in desk.store.summaries()] == [True, False]

    desk.session.request("redo")  # the failed one, at once
    desk.lead(5)
    desk.session.request("success")
    desk.rest()
    desk.until(lambda: desk.counts[-1] == 2)
    desk.session.request("finish")
    desk.thread.join(timeout=20)
    assert not desk.thread.is_alive()
    assert [(row.episode_id, row.success) for row in desk.store.summaries()] == [
        ("demonstration-0000", True),
        ("demonstration-0001", True),
    ]
    assert aside(desk.store.path) == ["0"]


def test_the_one_that_is_redone_starts_from_the_same_scene(desk):
    desk.begin()
    desk.session.request("redo")
    desk.rest()
    desk.lead(5)
    desk.session.request("stop")
    desk.rest()
    desk.until(lambda: desk.counts[-1] == 1)
    first = desk.store.read("demonstration-0000")
    assert first.truncated[-1]
    assert first.metadata["cut"] == "stop"
    again = desk.store.path / "aside" / "0"
    restored = desk.store.path / "episodes" / "000007.zarr.zip"
    (next(again.glob("*.zip"))).rename(restored)
    (desk.store.path / "episodes" / "000000.zarr.zip").rename(again / "other.zip")
    with EpisodeStore.open(desk.store.path) as store:
        other = store.read("demonstration-0000")
    np.testing.assert_array_equal(other.observations["state/goal"][0], first.observations["state/goal"][0])


def test_an_attempt_that_is_held_is_moved_aside_and_nothing_is_reset_until_it_is_released(desk):
    desk.begin()
    desk.supervision.hold(E_STOP, "emergency stop")
    desk.rest()
    desk.until(lambda: any("was moved aside: emergency stop" in text for text in desk.remarks))
    time.sleep(0.2)
    assert desk.phases[-1][0] == "recording", "the next scene is not made ready while the arm is held"
    desk.session.request("start")
    desk.supervision.release(E_STOP)
    desk.lead(3)
    desk.session.request("success")
    desk.rest()
    desk.until(lambda: desk.counts[-1] == 1)


def test_recording_starts_with_the_first_movement_and_rest_is_no_command(desk):
    desk.until_phase("ready")
    desk.session.request("start")
    desk.until_phase("waiting")
    commands = len(desk.io.commands)
    time.sleep(0.1)
    assert len(desk.io.commands) == commands
    desk.lead(4)
    desk.rest()
    before = len(desk.io.commands)
    desk.until(lambda: len(desk.io.commands) >= before + 6)
    desk.session.request("success")
    desk.until(lambda: desk.counts[-1] == 1)
    source = desk.store.read("demonstration-0000").source.tolist()
    assert source[0] == Source.HUMAN
    assert source[-1] == Source.HOLD
    assert set(source) == {Source.HUMAN, Source.HOLD}


def test_a_request_that_does_not_fit_is_told(desk):
    desk.until_phase("ready")
    desk.session.request("success")
    desk.until(lambda: "cannot success now; possible: start" in desk.remarks)
    with pytest.raises(UnknownNameError, match="start, stop"):
        desk.session.request("dance")


def test_a_disk_that_is_full_ends_it_with_the_cure_and_what_was_kept_is_there(tmp_path, monkeypatch):
    import errno

    from robot_rl.data.store import store as store_module

    with Desk(tmp_path / "demos", 3) as desk:
        desk.begin()
        desk.session.request("success")
        desk.rest()
        desk.until(lambda: desk.counts[-1] == 1)
        desk.begin()

        def full(path, parts):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(store_module, "write_synced", full)
        desk.session.request("success")
        desk.until(lambda: desk.failure is not None)
        assert "the disk is full; make room" in str(desk.failure)
        stops = desk.io.stops
        assert stops > 0
    monkeypatch.undo()
    with EpisodeStore.open(tmp_path / "demos", write=True) as again:
        assert again.ids() == ["demonstration-0000", "demonstration-0001"], "the second one comes from its journal"


def test_quality_warnings(desk):
    desk.begin(steps=12)
    desk.session.request("success")
    desk.rest()
    desk.until(lambda: desk.counts[-1] == 1)
    good = desk.store.read("demonstration-0000")
    assert quality_warnings(good) == []
    paused = replace(good, source=np.where(np.arange(len(good)) < len(good) - 2, Source.HOLD, good.source))
    slow = replace(paused, stamp_obs=good.stamp_obs[0] + np.arange(len(good) + 1) * 300_000_000)
    assert "has a pause of" in quality_warnings(slow)[0]
    assert quality_warnings(replace(good, metadata={"success": False})) == ["it did not end in success"]
    assert "at its limit in 100%" in quality_warnings(replace(good, action=np.ones_like(good.action)))[0]
    assert "others about 3" in quality_warnings(good, [3, 3, 3])[0]
