"""A person takes over by moving or by holding a button, rests, hands back, and loses a device."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fakes import SPEC, fake_workcell
from virtual_devices import VirtualHid

from robot_rl.data.schema import Source
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.teleop.device_operator import LET_GO, DeviceOperator
from robot_rl.teleop.mapping import DeviceMap, default_map
from robot_rl.teleop.pushed import PushedDevice
from robot_rl.teleop.spacemouse import SpaceMouse

POLICY = np.array([0.0, 1.0, 0.0], np.float32)
REST = round(LET_GO / SPEC.control_period)
MAP = DeviceMap(axes={"x": "x", "y": "y"}, buttons={"take": "take"}, smoothing=0.0)


def hand(name="hand"):
    return PushedDevice("browser", ("x", "y"), ("take",), name=name, max_age=1e9)


class Rig:
    """An environment on a fake robot with a person; the machine's clock is the robot's."""

    def __init__(self, *hands, demonstrate=False):
        cell = fake_workcell(replace(SPEC, max_steps=200))
        self.supervision = Supervision(cell)
        self.pressed = []
        self.person = DeviceOperator(
            hands, cell.task.spec, self.supervision, clock=cell.io.clock, on_press=self.pressed.append
        )
        supervised = self.supervision.workcell(self.person)
        self.env = RobotEnv(supervised, interventions=True, handover=HandoverLimits())
        self.env.reset(seed=0, options={"demonstrate": demonstrate})

    def step(self):
        *_, self.truncated, self.info = self.env.step(POLICY)
        return self.info["step"].recorded

    def sources(self, count):
        return [self.step().source for _ in range(count)]


def test_moving_takes_over_and_letting_go_hands_back_after_a_while():
    device = hand()
    rig = Rig((device, MAP))
    assert rig.sources(3) == [Source.POLICY] * 3
    device.push([1.0, 0.0], [False])
    step = rig.step()
    assert (step.source, rig.person.leading) == (Source.HUMAN, "hand")
    np.testing.assert_array_equal(step.action_policy, POLICY)
    device.push([0.0, 0.0], [False])
    assert rig.sources(REST + 2) == [Source.HOLD] * REST + [Source.POLICY] * 2
    assert rig.person.leading is None


def test_a_short_rest_is_no_hand_back():
    device = hand()
    rig = Rig((device, MAP))
    for _ in range(3):
        device.push([1.0, 0.0], [False])
        assert rig.step().source == Source.HUMAN
        device.push([0.0, 0.0], [False])
        assert rig.sources(REST - 1) == [Source.HOLD] * (REST - 1)


def test_with_engage_hold_only_the_button_counts_and_letting_go_hands_back_at_once():
    device = hand()
    rig = Rig((device, replace(MAP, engage="hold")))
    device.push([1.0, 0.0], [False])
    assert rig.step().source == Source.POLICY
    device.push([1.0, 0.0], [True])
    assert rig.step().source == Source.HUMAN
    device.push([0.0, 0.0], [True])
    assert rig.sources(REST + 3) == [Source.HOLD] * (REST + 3), "a held button holds the arm, however long"
    device.push([1.0, 0.0], [False])
    assert rig.step().source == Source.POLICY


def test_while_demonstrating_nobody_but_the_person_leads():
    device = hand()
    rig = Rig((device, MAP), demonstrate=True)
    assert rig.sources(REST + 5) == [Source.HOLD] * (REST + 5)
    device.push([0.0, 1.0], [False])
    assert rig.step().source == Source.HUMAN


def test_of_two_devices_the_first_that_moves_leads_until_it_rests():
    left, right = hand("left"), hand("right")
    rig = Rig((left, MAP), (right, MAP))
    right.push([0.0, 1.0], [False])
    rig.step()
    left.push([1.0, 0.0], [False])
    step = rig.step()
    assert rig.person.leading == "right"
    assert step.action[0] == 0.0
    right.push([0.0, 0.0], [False])
    rig.sources(REST + 1)
    rig.step()
    assert rig.person.leading == "left"


def test_buttons_are_told_once_however_long_they_are_pressed():
    device = PushedDevice("browser", ("x",), ("a",), max_age=1e9)
    rig = Rig((device, DeviceMap(axes={"x": "x"}, buttons={"success": "a"})))
    device.push([0.0], [False])
    rig.step()
    device.push([0.0], [True])
    rig.sources(3)
    assert rig.pressed == ["success"]


def test_buttons_that_are_part_of_the_motion_ask_for_nothing():
    device = PushedDevice("browser", ("x",), ("a", "b", "c"), max_age=1e9)
    rig = Rig((device, DeviceMap(axes={"x": "x"}, buttons={"slow": "a", "close": "b", "start": "c"})))
    device.push([0.0], [False] * 3)
    rig.step()
    device.push([0.0], [True] * 3)
    rig.step()
    assert rig.pressed == ["start"]


def test_a_spacemouse_unplugged_while_leading_holds_and_resumes_when_it_is_back():
    hid = VirtualHid()
    rig = Rig((SpaceMouse(hid.connect), replace(default_map("spacemouse"), smoothing=0.0)))
    hid.move(translation=(0.0, -0.9, 0.0))  # away from the person: the base's x
    step = rig.step()
    assert (step.source, step.action[0] > 0) == (Source.HUMAN, True)
    hid.plugged = False
    step = rig.step()
    assert (rig.truncated, step.source) == (True, Source.HOLD)
    assert "SpaceMouse is unplugged; holding until it is back" in rig.info["step"].cut
    assert not rig.supervision.wait(seconds=0)
    rig.person.watch()
    assert rig.supervision.holds
    hid.plugged = True
    assert rig.person.watch() is False
    assert rig.supervision.wait(seconds=0)
    rig.env.reset(seed=1)
    assert rig.step().source == Source.POLICY


def test_a_spare_device_may_be_unplugged():
    hid, device = VirtualHid(), hand()
    rig = Rig((device, MAP), (SpaceMouse(hid.connect), default_map("spacemouse")))
    device.push([1.0, 0.0], [False])
    rig.step()
    hid.plugged = False
    assert rig.step().source == Source.HUMAN
    assert not rig.supervision.holds


def test_of_two_devices_of_one_model_the_lost_one_holds_though_the_other_responds():
    hids = VirtualHid(), VirtualHid()
    rig = Rig(*((SpaceMouse(hid.connect), replace(default_map("spacemouse"), smoothing=0.0)) for hid in hids))
    hids[0].move(translation=(0.0, -0.9, 0.0))
    assert rig.step().source == Source.HUMAN
    hids[0].plugged = False
    assert (rig.step().source, rig.truncated) == (Source.HOLD, True)
    rig.person.watch()
    assert rig.supervision.holds
    hids[0].plugged = True
    rig.person.watch()
    assert not rig.supervision.holds


@pytest.mark.parametrize("speed", [1.0, -1.0])
def test_take_over_and_hand_back_stay_below_the_limit_of_acceleration(speed):
    device = hand()
    rig = Rig((device, MAP))
    limit = HandoverLimits().linear
    steps = []
    for axes in ([0.0, 0.0],) * 3 + ([speed, 0.0],) * 8 + ([0.0, 0.0],) * (REST + 8):
        device.push(axes, [False])
        steps.append(rig.step())
    velocities = np.array([step.action for step in steps]) * SPEC.action_translation / SPEC.control_period
    changes = np.linalg.norm(np.diff(velocities, axis=0), axis=1) / SPEC.control_period
    led = np.array([step.source != Source.POLICY for step in steps])
    handovers = np.flatnonzero(np.diff(led))
    assert len(handovers) == 2
    for t in handovers:
        assert 0.5 * limit < changes[t : t + 5].max() <= limit * (1 + 1e-4)
    # Letting go is the person's own command: it stops at once, whatever the limit.
    (let_go,) = np.flatnonzero([a.source == Source.HUMAN and b.source == Source.HOLD for a, b in pairwise(steps)])
    assert not velocities[let_go + 1].any()
