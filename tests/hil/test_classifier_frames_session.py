"""A person labels frames with a button while leading the arm; a script strays on purpose."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC, FakeOperator, fake_workcell
from test_demo_session import Paced

from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.hil.classifier_frames_session import ButtonJudge, FrameSession
from robot_rl.reward.classifier.frames import LabelledStore
from robot_rl.reward.classifier.record import FrameCount, StrayHabit, StrayingOperator
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.mapping import DeviceMap
from robot_rl.teleop.pushed import PushedDevice

LONG = replace(SPEC, max_steps=4000)


class Labeller:
    """A session in a thread of its own, with somebody who presses buttons."""

    def __init__(self, path, wanted):
        cell, button = fake_workcell(LONG), ButtonJudge()
        cell.io.clock.__class__ = Paced
        supervision = Supervision(replace(cell, judges=(button,)))
        hand = PushedDevice("browser", ("x",), (), max_age=1e9, name="hand")
        person = DeviceOperator([(hand, DeviceMap(axes={"x": "x"}, smoothing=0.0))], LONG, supervision)
        self.store, self.phases, self.remarks = EpisodeStore.create(path, {}), [], []
        self.count = FrameCount(self.store)
        env = RobotEnv(supervision.workcell(person))
        self.session = FrameSession(
            env, self.count, button, supervision, person, wanted=wanted, seed=0, reporter=self, observers=[self]
        )
        self.steps = 0
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self.session.run, args=(self._stop.is_set,))

    def phase(self, name, text, requests):
        self.phases.append(name)

    def remark(self, text):
        self.remarks.append(text)

    def kept(self, count, wanted):
        pass

    def on_start(self, episode_id, observation):
        self.steps = 0

    def on_step(self, step, next_observation):
        self.steps += 1

    def on_end(self, episode, result):
        pass

    def until(self, condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, (self.phases[-3:], self.remarks)
            time.sleep(0.001)

    def press(self, name, after=0):
        at = self.steps
        self.until(lambda: self.steps >= at + after)
        self.session.request(name)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self.thread.join(timeout=60)
        self.store.close()


def test_frames_show_success_from_one_press_to_the_next(tmp_path):
    with Labeller(tmp_path / "s", wanted=(5, 15)) as person:
        person.until(lambda: person.phases)
        person.press("success")  # not yet: nothing is recorded
        person.press("start")
        person.until(lambda: person.phases[-1] == "recording")
        person.press("success", after=20)
        person.press("failure", after=20)
        person.press("success", after=20)
        person.press("stop", after=10)
        person.thread.join(timeout=60)  # there are enough frames now
        assert not person.thread.is_alive()
        (one,) = LabelledStore(tmp_path / "s").episodes(0)
        changes = np.flatnonzero(np.diff(one.shows.astype(int)))
        assert len(changes) == 3
        assert changes[1] - changes[0] >= 15
        assert one.episode.metadata["success"] is True
        assert one.episode.reward_source == "operator"
        assert not one.episode.terminated.any()
        assert any("cannot success now" in remark for remark in person.remarks)
        assert (person.count.positives, person.count.negatives) == (5, 15)


def test_finish_ends_it_before_there_are_enough(tmp_path):
    with Labeller(tmp_path / "s", wanted=(10**6, 10**6)) as person:
        person.until(lambda: person.phases)
        person.press("start")
        person.until(lambda: person.phases[-1] == "recording")
        person.press("finish", after=5)
        person.thread.join(timeout=60)
        assert not person.thread.is_alive()
        assert len(person.store) == 1


def lead(operator, steps, done=lambda n: False):
    actions = []
    for number in range(steps):
        operator.done = done(number)
        actions.append(operator.act(STATE, None))
    return np.stack(actions)


CELL = fake_workcell()
CELL.task.reset(0)
STATE = CELL.io.read()


def test_a_straying_operator_leads_strays_rests_and_gives_up():
    always = StrayingOperator(FakeOperator(CELL.task), SPEC, StrayHabit(chance=0.0, give_up=0.0, chance_when_done=0.0))
    always.reset(1, True)
    plain = FakeOperator(CELL.task)
    plain.reset(1, True)
    np.testing.assert_array_equal(lead(always, 10), np.stack([plain.act(STATE, None) for _ in range(10)]))

    strays = StrayingOperator(FakeOperator(CELL.task), SPEC)
    strays.reset(3, True)
    first = lead(strays, 200)
    strays.reset(3, True)
    np.testing.assert_array_equal(lead(strays, 200), first)  # it follows from the seed
    assert np.abs(first).max() <= 1.0
    assert (first == 0.0).all(axis=1).any()

    quits = StrayingOperator(FakeOperator(CELL.task), SPEC, StrayHabit(chance=0.0, give_up=1.0))
    quits.reset(0, True)
    late = lead(quits, SPEC.max_steps * 3)[SPEC.max_steps :]
    led = np.stack([plain.act(STATE, None) for _ in range(50)])
    assert np.abs(late.mean(axis=0) - led.mean(axis=0)).max() > 0.1


@pytest.mark.parametrize("steps", [1, 8, 11, 12])
def test_it_gives_up_in_short_episodes_too(steps):
    quits = StrayingOperator(FakeOperator(CELL.task), replace(SPEC, max_steps=steps), StrayHabit(give_up=1.0))
    for seed in range(5):
        quits.reset(seed, True)
        assert lead(quits, steps).shape == (steps, SPEC.action_size)


def test_who_strays_pushes_with_no_wrench():
    spec = replace(SPEC, wrench_axes=("z", "yaw"), action_force=5.0, action_torque=1.0, gripper=True)
    habit = StrayHabit(chance=1.0, chance_when_done=1.0, drop=1.0, rest=0, give_up=0.0)
    strays = StrayingOperator(FakeOperator(CELL.task), spec, habit)
    strays.reset(3, True)
    action = lead(strays, 1)[0]
    assert action.shape == (spec.action_size,)
    assert np.abs(action[:3]).max() > 0.0
    assert action[3:].tolist() == [0.0, 0.0, 1.0]
