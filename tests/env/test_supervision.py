"""A person's word reaches the control loop: hold at once, everything else at the end of the step."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC, fake_workcell

from robot_rl.data.schema import Source
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import E_STOP, PAUSE, Supervision

FORWARD = np.array([0.5, 0.0, 0.0], np.float32)


@pytest.fixture
def robot():
    cell = fake_workcell()
    return cell.io, Supervision(cell)


def environment(supervision, **options):
    return RobotEnv(supervision.workcell(None), **options)


def test_a_hold_stops_at_once_drops_commands_and_cuts_the_episode(robot):
    io, supervision = robot
    env = environment(supervision)
    env.reset(seed=0)
    env.step(FORWARD)
    commands, stops = len(io.commands), io.stops
    supervision.hold(E_STOP, "emergency stop")
    assert io.stops == stops + 1
    where = io.position()

    _, reward, terminated, truncated, info = env.step(FORWARD)
    assert len(io.commands) == commands
    np.testing.assert_allclose(io.position(), where)
    assert (reward, terminated, truncated, info["step"].cut) == (0.0, False, True, "emergency stop")
    step = info["step"].recorded
    assert (step.source, step.action.tolist(), step.action_policy[0]) == (Source.HOLD, [0.0, 0.0, 0.0], 0.5)


def test_a_hold_that_was_released_within_the_episode_still_ends_it(robot):
    _, supervision = robot
    env = environment(supervision)
    env.reset(seed=0)
    supervision.hold(PAUSE, "pause")
    supervision.release(PAUSE)
    assert env.step(FORWARD)[3]
    env.reset(seed=1)
    *_, truncated, info = env.step(FORWARD)
    assert (truncated, info["step"].cut, info["step"].recorded.source) == (False, None, Source.POLICY)


def test_the_arm_is_free_only_when_every_hold_is_released(robot):
    _io, supervision = robot
    supervision.hold(PAUSE, "pause")
    supervision.hold(E_STOP, "stop")
    assert [hold.name for hold in supervision.holds] == [E_STOP, PAUSE]
    supervision.release(E_STOP)
    assert not supervision.wait(seconds=0)
    supervision.release(PAUSE)
    assert supervision.wait(seconds=0)
    assert supervision.io.latest is not None, "while it waited, the robot was watched"


@pytest.mark.parametrize("success", [True, False])
def test_a_persons_judgement_counts_and_is_recorded_as_theirs(robot, success):
    _, supervision = robot
    env = environment(supervision)
    env.reset(seed=0)
    supervision.mark(success)
    _, reward, terminated, truncated, info = env.step(FORWARD)
    assert (reward, terminated, truncated) == (float(success), True, False)
    assert (info["step"].success, info["step"].failure) == (success, None if success else "operator")
    assert info["step"].recorded.reward_source == "operator"


def test_what_was_said_of_one_episode_does_not_count_for_the_next(robot):
    _, supervision = robot
    env = environment(supervision)
    supervision.mark(True)
    supervision.cut("reset")
    env.reset(seed=0)
    _, _, terminated, truncated, info = env.step(FORWARD)
    assert (terminated, truncated, info["step"].recorded.reward_source) == (False, False, "task")
    supervision.cut("reset")
    *_, terminated, truncated, info = env.step(FORWARD)
    assert (terminated, truncated, info["step"].cut, info["step"].recorded.source) == (
        False,
        True,
        "reset",
        Source.POLICY,
    )


def test_no_command_passes_a_hold_from_another_thread(robot):
    io, supervision = robot
    env = environment(supervision)
    go = threading.Event()

    def hold():
        go.wait()
        supervision.hold(E_STOP, "stop")
        held_at.append(len(io.commands))

    for seed in range(30):
        held_at = []
        env.reset(seed=seed)
        go.clear()
        thread = threading.Thread(target=hold)
        thread.start()
        go.set()
        for _ in range(SPEC.max_steps):
            if env.step(FORWARD)[3]:
                break
        thread.join()
        assert len(io.commands) == held_at[0]
        supervision.release(E_STOP)


def test_a_robot_that_stopped_talking_holds_and_goes_on_when_it_is_back(robot):
    io, supervision = robot
    env = environment(supervision)
    env.reset(seed=0)
    io.freeze()
    io.clock.sleep_until(io.clock.now() + 10**9)
    supervision.look()
    assert "state is" in supervision.holds[0].reason
    io.thaw()
    supervision.look()
    assert supervision.holds == []


class Deceived:
    """A judge who sees a success in every third step."""

    def __init__(self):
        self.steps = 0

    def begin(self):
        self.steps = 0

    def judge(self, outcome, observation, spec):
        self.steps += 1
        success = self.steps == 3
        return replace(outcome, success=success, reward=float(success), judge="classifier")


@pytest.fixture
def judged():
    cell = replace(fake_workcell(), judges=(Deceived(),))
    supervision = Supervision(cell)
    return cell.io, supervision, environment(supervision)


def third_step(env):
    env.reset(seed=0)
    env.step(FORWARD)
    env.step(FORWARD)
    return env.step(FORWARD)


def test_who_judges_is_asked_in_order_and_a_classifier_ends_episodes(judged):
    _, _, env = judged
    _, reward, terminated, _, info = third_step(env)
    assert (reward, terminated, info["step"].success, info["step"].recorded.reward_source) == (
        1.0,
        True,
        True,
        "classifier",
    )
    assert info["step"].recorded.reward_source == "classifier"
    assert info["step"].overruled is None


def test_a_success_that_only_a_classifier_saw_waits_for_the_person(judged):
    io, supervision, env = judged
    supervision.time_to_overrule, asked = 30.0, []

    def overrule():
        while not supervision.question:
            time.sleep(0.01)
        asked.append(supervision.question)
        supervision.mark(False)

    person = threading.Thread(target=overrule)
    person.start()
    stops = io.stops
    _, reward, terminated, _, info = third_step(env)
    person.join()
    assert (reward, terminated, info["step"].success, info["step"].failure) == (0.0, True, False, "operator")
    assert (info["step"].recorded.reward_source, info["step"].overruled) == ("operator", "classifier")
    assert asked == ["classifier: success. Failure within 30 s overrules it."]
    assert not supervision.question
    assert io.stops > stops  # the arm holds meanwhile


def test_whoever_says_nothing_agrees(judged):
    _, supervision, env = judged
    supervision.time_to_overrule = 0.05
    info = third_step(env)[-1]
    assert (info["step"].success, info["step"].recorded.reward_source, info["step"].overruled) == (
        True,
        "classifier",
        None,
    )


def test_a_success_that_no_classifier_saw_is_overruled_too(judged):
    _, supervision, env = judged
    env.reset(seed=0)
    supervision.mark(True)
    _, reward, terminated, _, info = env.step(FORWARD)
    assert (reward, terminated, info["step"].recorded.reward_source, info["step"].overruled) == (
        1.0,
        True,
        "operator",
        "classifier",
    )
