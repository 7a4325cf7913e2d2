"""Checks of an arm that stands: a real driver in a thread, and observations with known faults."""

import numpy as np
import pytest
from standing_arm import StandingArm

from robot_rl.arm.own_checks import OwnCheck
from robot_rl.camera.source import Frame
from robot_rl.clock import NS_PER_S, WallClock
from robot_rl.doctor.standing.cameras import watch_cameras
from robot_rl.doctor.standing.measurements import judge_measurements
from robot_rl.doctor.standing.observation import ArmObservation, observe
from robot_rl.errors import CameraError
from robot_rl.geometry import Pose

QUATERNION = np.array([0.0, 1.0, 0.0, 0.0])


def judged(seen):
    results = {result.name: result for result in judge_measurements(seen)}
    assert all(result.cure for result in results.values() if result.severity != "ok")
    return results


def observation(*, arrivals=None, delay=0.001, drift=0.0, force=None, measures=("pose", "wrench"), **facts):
    arrivals = np.arange(0.0, 5.0, 0.01) if arrivals is None else np.asarray(arrivals)
    random = np.random.default_rng(0)
    poses = [
        (round(at * NS_PER_S), round((at - delay) * NS_PER_S), Pose(np.array([0.5, 0.0, 0.2 - drift * at]), QUATERNION))
        for at in arrivals
    ]
    force = (lambda: 0.1 * random.standard_normal(6)) if force is None else force
    wrenches = [(arrival, stamp, force()) for arrival, stamp, _ in poses]
    defaults = {"faults": (), "problems": (), "own": (), "seconds": 5.0, "max_age": 0.2}
    return ArmObservation({"pose": poses, "wrench": wrenches}, frozenset(measures), **(defaults | facts))


def test_a_driver_is_observed_and_closed():
    made = []

    def make(host):
        made.append(StandingArm(StandingArm.Config(), host))
        return made[0]

    seen = observe(make, 0.5, 0.2)
    results = judged(seen)
    assert results["arm firmware"].text == "version 5.9"
    assert results["arm faults"].severity == "ok" and "7 joints" in results["arm joints"].text
    assert {"pose", "twist", "wrench", "joints", "gripper"} <= seen.samples.keys()
    count = len(seen.samples["pose"])
    assert count > 10 and len(made[0].faults()) == 0


@pytest.mark.parametrize(
    ("facts", "name", "severity"),
    [
        ({}, "arm gap", "ok"),
        ({"arrivals": np.arange(0.0, 5.0, 0.05)}, "arm rate", "note"),
        ({"arrivals": [0.0, 0.01, 0.02, 0.12, 0.13], "seconds": 0.13}, "arm gap", "note"),
        ({"arrivals": [0.0, 0.01, 0.02, 0.5, 0.51]}, "arm gap", "fault"),
        ({"arrivals": np.arange(0.0, 1.0, 0.01)}, "arm gap", "fault"),  # silent for the other four seconds
        ({"arrivals": np.arange(0.0, 1.0, 0.01)}, "arm rate", "note"),
        ({"arrivals": [0.0]}, "arm gap", "fault"),
        ({"delay": 0.05}, "arm stamps", "note"),
        ({"delay": 0.5}, "arm stamps", "fault"),
        ({"delay": -1.0}, "arm stamps", "fault"),
        ({"drift": 0.001}, "arm at rest", "note"),
        ({"force": lambda: np.zeros(6)}, "wrench", "note"),
        ({"force": lambda: np.random.standard_normal(6) * 3}, "wrench", "note"),
        ({"force": lambda: np.array([0, 0, 9, 0, 0, 0]) + 0.01 * np.random.standard_normal(6)}, "wrench", "note"),
        ({"measures": ("pose",)}, "wrench", "note"),
        ({"measures": ("pose", "wrench", "twist")}, "arm state", "fault"),
        ({"faults": ("the brakes are closed; open them in Desk",)}, "arm faults", "fault"),
        ({"own": (OwnCheck("late cycles", "note", "3 %", 3.0, "%", "1 %", "a cable"),)}, "arm late cycles", "note"),
    ],
)
def test_each_fault_is_found(facts, name, severity):
    result = judged(observation(**facts))[name]
    assert result.severity == severity, result


def test_an_arm_that_reports_nothing_is_a_fault():
    seen = observation()
    empty = ArmObservation({}, seen.measures, (), (), (), 0.0, 0.2)
    assert judged(empty)["arm state"].severity == "fault"


class Camera:
    serial = ""

    def __init__(self, rate):
        self._rate, self._wall, self._next, self._frames = rate, WallClock(), None, 0

    def read(self):
        self._next = (self._wall.now() if self._next is None else self._next) + round(NS_PER_S / self._rate)
        self._wall.sleep_until(self._next)
        self._frames += 1
        return Frame(self._next, np.full((4, 4, 3), self._frames % 256, dtype=np.uint8))

    def close(self):
        pass


def test_cameras_are_watched_together():
    def unplugged():
        raise CameraError("camera side cannot be opened: unplugged")

    openers = {"wrist": lambda: Camera(20.0), "slow": lambda: Camera(5.0), "side": unplugged}
    results = {result.name: result for result in watch_cameras(openers, dict.fromkeys(openers, 20.0), 2.2)}
    assert results["camera wrist"].value == pytest.approx(20, abs=6)
    assert results["camera slow"].severity == "note"
    assert results["camera side"].severity == "fault" and "unplugged" in results["camera side"].text
