"""An arm that has stopped itself: its episode is cut with the reason, and only a person's consent lets it go on."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import fake_workcell

from robot_rl.cell.arm_stop_judge import ArmStopJudge
from robot_rl.data.schema import Source
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import ARM, Supervision
from robot_rl.errors import ArmStoppedError

FORWARD = np.array([0.5, 0.0, 0.0], np.float32)


class Stops:
    def __init__(self):
        self.stopped, self.cure, self.recoveries = None, True, 0

    def recover(self):
        self.recoveries += 1
        if not self.cure:
            raise ArmStoppedError("the button is still pressed; release it")
        self.stopped = None


@pytest.fixture
def stops():
    return Stops()


@pytest.fixture
def cell(stops):
    return replace(fake_workcell(), stops=stops, judges=(ArmStopJudge(stops),), operator=None)


def test_without_a_person_the_episode_is_cut_and_the_next_one_does_not_begin(cell, stops):
    env = RobotEnv(cell)
    env.reset(seed=0)
    env.step(FORWARD)
    stops.stopped = "reflex"
    _, reward, terminated, truncated, info = env.step(FORWARD)
    step = info["step"].recorded
    assert (reward, terminated, truncated, info["step"].cut) == (0.0, False, True, "reflex")
    assert (step.source, step.action.tolist()) == (Source.HOLD, [0.0, 0.0, 0.0])
    with pytest.raises(ArmStoppedError, match="the arm is stopped: reflex"):
        env.reset(seed=1)
    assert stops.recoveries == 0, "a program never recovers on its own"


def test_a_person_consents_and_the_run_goes_on(cell, stops):
    supervision = Supervision(cell)
    env = RobotEnv(supervision.workcell(None))
    env.reset(seed=0)
    stops.stopped = "reflex"
    *_, truncated, info = env.step(FORWARD)
    assert (truncated, info["step"].cut) == (True, "reflex")
    assert [(hold.name, hold.reason) for hold in supervision.holds] == [(ARM, "reflex")]
    for _ in range(3):
        assert not supervision.wait(seconds=0.01)
    assert stops.recoveries == 0
    supervision.release(ARM)
    assert supervision.holds, "until the arm has recovered"
    supervision.wait(seconds=0.01)
    assert stops.recoveries == 1
    assert supervision.wait(seconds=0.01)
    env.reset(seed=1)
    assert not env.step(FORWARD)[3]


def test_a_recovery_that_fails_names_why_and_another_consent_is_needed(cell, stops):
    supervision = Supervision(cell)
    stops.stopped, stops.cure = "emergency stop", False
    supervision.wait(seconds=0.01)
    supervision.release(ARM)
    assert not supervision.wait(seconds=0.01)
    assert supervision.holds[0].reason == "the button is still pressed; release it"
    stops.cure = True
    assert not supervision.wait(seconds=0.01)
    assert stops.recoveries == 1
    supervision.release(ARM)
    supervision.wait(seconds=0.01)
    assert (stops.recoveries, supervision.holds) == (2, [])


def test_a_consent_without_a_stop_is_none_for_the_next_one(cell, stops):
    supervision = Supervision(cell)
    supervision.release(ARM)
    supervision.wait(seconds=0.01)
    stops.stopped = "reflex"
    supervision.wait(seconds=0.01)
    supervision.wait(seconds=0.01)
    assert stops.recoveries == 0


def test_forces_that_are_not_measured_are_not_observed(cell):
    assert "state/wrench" in RobotEnv(cell).observation_specs
    env = RobotEnv(replace(cell, measures_wrench=False))
    observation, _ = env.reset(seed=0)
    assert "state/wrench" not in env.observation_specs
    assert "state/wrench" not in observation
