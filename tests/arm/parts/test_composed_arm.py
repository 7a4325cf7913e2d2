"""An arm with parts: who measures what, in one thread, without the weight of the tool."""

import threading
import time

import numpy as np
import pytest
from arm_driver_contract import Host, Recorder
from scripted_arm import ScriptedArm, ScriptedArmConfig

from robot_rl.arm.parts.composed_arm import ComposedArm
from robot_rl.arm.parts.payload import GRAVITY, Payload, PayloadConfig
from robot_rl.geometry import Pose


class Gripper:
    def __init__(self):
        self.started, self.closed, self.width, self.fault, self.recovered = False, 0, 0.03, None, 0

    def start(self):
        self.started = True

    def move(self, width):
        self.width = width

    def faults(self):
        return [self.fault] if self.fault else []

    def recover(self):
        self.fault, self.recovered = None, self.recovered + 1

    def close(self):
        self.closed += 1


class Sensor(Gripper):
    """Reports from a thread of its own."""

    def start(self, receive):
        def run():
            while not self.closed:
                receive(time.time_ns(), np.arange(6.0))
                time.sleep(0.005)

        threading.Thread(target=run, daemon=True).start()


@pytest.fixture
def composed():
    arm = ScriptedArm(ScriptedArmConfig(), Host())
    gripper, sensor = Gripper(), Sensor()
    made = ComposedArm(arm, gripper, sensor, Payload(PayloadConfig()))
    made.arm, made.gripper, made.sensor = arm, gripper, sensor
    yield made
    made.close()


def test_the_parts_replace_what_the_arm_measures_and_all_comes_in_one_thread(composed):
    seen = Recorder()
    composed.start(seen)
    assert composed.measures == {"pose", "twist", "joints", "wrench", "gripper"}
    assert seen.has("pose", 20)
    assert seen.has("wrench", 20)
    assert seen.has("gripper", 20)
    assert len(seen.threads) == 1
    assert all(np.array_equal(wrench, np.arange(6.0)) for _, wrench in seen.parts["wrench"])
    assert {width for _, width in seen.parts["gripper"]} == {0.03}
    stamps = [stamp for stamp, _ in seen.parts["wrench"]]
    assert (np.diff(stamps) > 0).all()


def test_commands_go_to_the_part_that_is_meant(composed):
    composed.start(Recorder())
    composed.move_gripper(0.01)
    assert composed.gripper.width == 0.01
    composed.move_to(Pose.identity())
    composed.hold()
    assert composed.arm.told[-1] == "hold"


def test_a_fault_of_any_part_is_one_of_the_arm_and_only_that_part_recovers(composed):
    composed.start(Recorder())
    assert not composed.faults()
    composed.gripper.fault = "the gripper is too hot"
    assert composed.faults() == ["the gripper is too hot"]
    composed.recover()
    assert not composed.faults()
    assert (composed.gripper.recovered, composed.sensor.recovered) == (1, 0)


def test_all_are_released(composed):
    composed.start(Recorder())
    composed.close()
    assert composed.gripper.closed
    assert composed.sensor.closed


DOWN = Pose(np.zeros(3), np.array([0.0, 1.0, 0.0, 0.0]))


def test_the_weight_of_a_known_tool_is_taken_off_in_any_orientation():
    mass, center = 0.5, np.array([0.01, 0.0, 0.08])
    payload = Payload(PayloadConfig(payload_mass=mass, payload_center=tuple(center)))
    rng = np.random.default_rng(0)
    for _ in range(20):
        pose = Pose.from_rotvec(np.zeros(3), rng.normal(size=3))
        weight = pose.matrix.T @ (0, 0, -mass * GRAVITY)
        contact = rng.normal(size=6)
        measured = contact + np.concatenate((weight, np.cross(center, weight)))
        assert payload.contact(measured, pose) == pytest.approx(contact)
    assert payload.fault() is None


def test_a_tool_of_unknown_weight_must_not_tilt_but_may_turn_about_the_vertical():
    payload = Payload(PayloadConfig())
    payload.contact(np.zeros(6), DOWN)
    payload.contact(np.zeros(6), DOWN @ Pose.from_rotvec(np.zeros(3), np.array([0, 0, 1.0])))
    assert payload.fault() is None
    payload.contact(np.zeros(6), DOWN @ Pose.from_rotvec(np.zeros(3), np.array([0.3, 0, 0])))
    assert "tilted by 17 deg" in payload.fault()
    assert "set payload_mass and payload_center" in payload.fault()
    payload.restart()
    assert payload.fault() is None
