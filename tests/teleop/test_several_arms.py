"""A person at two arms: a device for each, one device that changes between them, and what cannot be led."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import ARMS_SPEC, SPEC, fake_arms, fake_workcell
from PIL import Image

from robot_rl.console.job_state import JobState
from robot_rl.console.scene import Geometry, SceneFacts
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.choice import join_grippers
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import NEXT_ARM, Supervision
from robot_rl.hil.operator_setup import OperatorOptions, OperatorSetup, led_arms
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.teleop.device import DeviceError
from robot_rl.teleop.device_operator import LET_GO
from robot_rl.teleop.mapping import DeviceMap
from robot_rl.teleop.pushed import PushedDevice
from robot_rl.teleop.several_arms import SeveralArmsOperator
from robot_rl.viz.demo_coverage import base_path, coverage

P, H, HOLD = Source.POLICY, Source.HUMAN, Source.HOLD
POLICY = np.array([0.0, 0.4, 0.0, 0.0, 0.4, 0.0], np.float32)
REST = round(LET_GO / ARMS_SPEC.control_period)
MAP = DeviceMap(axes={"x": "x", "y": "y"}, buttons={"close": "close", NEXT_ARM: "next"}, smoothing=0.0)


class Hand(PushedDevice):
    """A device that a test moves."""

    def __init__(self, name):
        super().__init__("browser", ("x", "y"), ("close", "next"), name=name, max_age=1e9)
        self.moves()

    def moves(self, x=0.0, y=0.0, *, close=False, following=False):
        self.push([x, y], [close, following])


class Rig:
    def __init__(self, own=(), shared=(), demonstrate=False, beside=()):
        cell, self.robots = fake_arms(replace(ARMS_SPEC, max_steps=200))
        self.supervision, self.chosen, self.pressed = Supervision(cell), [], []
        self.person = SeveralArmsOperator(
            {arm: [(device, MAP)] for arm, device in dict(own).items()},
            [(device, MAP) for device in shared],
            cell.task.spec,
            self.supervision,
            beside=[(device, MAP) for device in beside],
            on_press=self.press,
            on_chosen=self.chosen.append,
            clock=cell.clock,
        )
        self.env = RobotEnv(self.supervision.workcell(self.person), interventions=True, handover=HandoverLimits())
        self.env.reset(seed=0, options={"demonstrate": demonstrate})

    def press(self, role):
        self.pressed.append(role)
        if role == NEXT_ARM:
            self.person.choose_next()

    def step(self):
        *_, info = self.env.step(POLICY)
        return info["step"].recorded

    def sources(self):
        return tuple(Source(source) for source in self.step().arm_sources)


def test_each_arm_is_led_by_its_own_device_while_the_policy_keeps_the_other():
    left, right = Hand("left hand"), Hand("right hand")
    rig = Rig(own={"left": left, "right": right})
    assert rig.sources() == (P, P)
    right.moves(x=1.0)
    assert rig.sources() == (P, H)
    left.moves(y=1.0)
    assert rig.sources() == (H, H)
    right.moves()
    assert [rig.sources() for _ in range(REST + 1)] == [(H, HOLD)] * REST + [(H, P)]


def test_a_shared_device_leads_one_arm_and_then_the_next_by_a_button():
    device = Hand("hand")
    rig = Rig(shared=[device])
    device.moves(x=1.0)
    assert rig.sources() == (H, P)
    device.moves(x=1.0, following=True)
    assert rig.sources() == (H, P)  # the next step leads the other one
    assert [rig.sources() for _ in range(3)] == [(P, H)] * 3  # also while the button stays pressed
    assert (rig.chosen, rig.pressed, rig.person.chosen) == (["right"], [NEXT_ARM], "right")
    device.moves(x=1.0)
    rig.person.choose_next()
    assert rig.sources() == (H, P)
    assert rig.chosen == ["right", "left"]


def test_a_second_hand_leads_the_arm_beside_and_they_change_places():
    first, second = Hand("first"), Hand("second")
    rig = Rig(shared=[first], beside=[second])
    second.moves(x=1.0)
    assert rig.sources() == (P, H)
    first.moves(x=1.0)
    assert rig.sources() == (H, H)
    second.moves()
    for _ in range(REST + 1):
        sources = rig.sources()
    assert sources == (H, P)
    rig.person.choose_next()
    assert rig.sources() == (P, H)
    second.moves(x=1.0)
    assert rig.sources() == (H, H)


def test_an_arms_own_device_comes_before_a_shared_one():
    own, shared = Hand("own"), Hand("shared")
    rig = Rig(own={"left": own}, shared=[shared])
    shared.moves(x=1.0)
    assert rig.sources() == (H, P)
    own.moves(x=-1.0)
    for _ in range(12):
        step = rig.step()
    assert step.action[0] < 0.0
    own.moves()
    assert [rig.sources() for _ in range(REST + 2)] == [(HOLD, P)] * REST + [(H, P)] * 2


def test_in_a_demonstration_arms_that_nobody_leads_rest_and_a_gripper_keeps_its_hold():
    device = Hand("hand")
    rig = Rig(shared=[device], demonstrate=True)
    assert rig.sources() == (HOLD, HOLD)
    device.moves(close=True)
    step = rig.step()
    assert step.action[-1] == pytest.approx(join_grippers([-1.0, 0.0]))
    device.moves(x=1.0)
    rig.person.choose_next()
    step = rig.step()
    assert tuple(step.arm_sources) == (HOLD, H)
    assert step.action[-1] == pytest.approx(0.0)
    assert rig.robots["left"].commands[-1].gripper_width is None  # as it is


def test_what_was_led_is_drawn_for_each_arm_in_its_own_base_frame(tmp_path):
    left = Hand("hand")
    rig = Rig(own={"left": left}, demonstrate=True)
    left.moves(x=1.0)
    with EpisodeStore.create(tmp_path / "demos") as store:
        rollout = Rollout(rig.env, None, None, (0,), [StoreRecorder(store)])
        rollout.begin(0, "demonstration-0000", demonstrate=True)
        for number in range(5):
            rollout.step(deterministic=True, last=number == 4)
        (episode,) = store.episodes()
        ways = {arm: np.ptp(base_path(episode, arm), axis=0).max() for arm in ARMS_SPEC.arms}
        assert (ways["left"] > 0.01, ways["right"] < 1e-3) == (True, True)
        coverage(store, tmp_path / "coverage.png", title="two arms")
    with Image.open(tmp_path / "coverage.png") as picture:
        assert picture.height > 1.5 * picture.width * 4.6 / 9.5, "a row of panels for each arm"


def test_the_scene_shows_the_set_point_of_the_arm_that_is_led():
    left, right = Hand("left hand"), Hand("right hand")
    rig = Rig(own={"left": left, "right": right})
    scene = SceneFacts(Geometry(), rig.supervision)
    for _ in range(3):
        rig.step()
    latest = rig.supervision.io.latest
    for arm, robot in rig.robots.items():
        target = scene.at(latest, arm)["target"]["position"]
        assert target == pytest.approx(robot.commands[-1].T_base_target.position, abs=1e-4)
    assert scene.at(latest, "left")["target"] != scene.at(latest, "right")["target"]


def test_between_episodes_only_devices_that_lead_now_are_watched():
    own, shared = Hand("own"), Hand("shared")
    rig = Rig(own={"right": own}, shared=[shared])
    assert not rig.person.watch()
    for device in (own, shared):
        device.moves(x=1.0)
        assert rig.person.watch()
        device.moves()


def test_without_a_shared_device_there_is_no_next_arm():
    rig = Rig(own={"left": Hand("hand")})
    rig.person.choose_next()
    rig.step()
    assert rig.chosen == []


@pytest.fixture
def setup_of(tmp_path):
    """Returns the set-up of an operator with devices that are given as on the command line; a hand stands for each."""
    file = tmp_path / "map.yaml"
    file.write_text(f"axes: {{x: x, y: y}}\nbuttons: {{close: close, {NEXT_ARM}: next}}\n", encoding="utf-8")

    def make(cell, *devices):
        options = OperatorOptions(devices=devices, maps={"browser": file})
        led = led_arms(devices, cell.task.spec)
        hands = [(arm, Hand(given)) for arm, given in zip(led, devices, strict=True)]
        made = OperatorSetup(cell, options, JobState("demo", cell.task.spec), hands)
        made.connect()
        return made

    return make


def test_devices_are_given_by_arm_and_the_page_shows_which_arm_the_shared_one_leads(setup_of):
    made = setup_of(fake_arms()[0], "left=spacemouse", "gamepad")
    assert made.board.state()["chosen_arm"] == "left"
    assert made.board.requests == (NEXT_ARM,)
    made.request(NEXT_ARM)
    made.person.watch()
    assert made.board.state()["chosen_arm"] == "right"
    assert made.board.state()["remarks"][-1]["text"] == "the right arm is led from now on"
    assert setup_of(fake_arms()[0], "left=spacemouse", "right=gamepad").board.state()["chosen_arm"] is None


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (lambda: fake_arms()[0], "no arm is called lft: fake_arms has the arms left, right; give devices as ARM=KIND"),
        (fake_workcell, "no arm is called lft: fake_reach has one arm, without a name; give devices as KIND"),
    ],
)
def test_a_device_for_an_arm_that_is_not_there_is_refused(setup_of, cell, says):
    with pytest.raises(DeviceError, match=says):
        setup_of(cell(), "lft=spacemouse")


def test_one_arm_has_no_next_one(setup_of):
    made = setup_of(fake_workcell(SPEC), "gamepad")
    made.request(NEXT_ARM)
    assert made.board.requests == ()
    assert made.board.state()["remarks"][-1]["text"] == f"{SPEC.name} has one arm: no other one can be led"
