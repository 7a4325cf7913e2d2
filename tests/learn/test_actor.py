"""Who is told of a step, and when: at once, or while the arm does the next one."""

import numpy as np
import pytest
from fakes import fake_arms, fake_workcell

from robot_rl.data.interventions import interventions
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.run.directory.human_effort import HumanEffort


class Diary:
    """Writes down what it is told, beside how many commands had been sent by then."""

    def __init__(self, robot):
        self.robot, self.entries = robot, []

    def on_start(self, episode_id, observation):
        del observation
        self.entries.append(("start", episode_id, len(self.robot.commands)))

    def on_step(self, step, next_observation):
        del next_observation
        self.entries.append(("step", step.index, len(self.robot.commands)))

    def on_end(self, episode, result):
        del result
        self.entries.append(("end", len(episode), len(self.robot.commands)))

    def steps(self):
        return [entry for entry in self.entries if entry[0] == "step"]


@pytest.fixture
def told():
    """A rollout of demonstrations, whom it tells at once, and whom while the arm moves."""
    cell = fake_workcell()
    at_once, beside = Diary(cell.io), Diary(cell.io)
    yield Rollout(RobotEnv(cell), None, None, (0,), [at_once], [beside]), at_once, beside
    cell.close()


def test_who_is_beside_is_told_of_a_step_once_the_next_command_is_on_its_way(told):
    rollout, at_once, beside = told
    for number in range(2):
        begun = len(at_once.entries)
        result = rollout.play(number, f"e-{number}", deterministic=True, demonstrate=True)
        now, later = at_once.entries[begun:], beside.entries[begun:]
        assert [entry[:2] for entry in later] == [entry[:2] for entry in now]
        assert now[-1][1] == result.steps > 3
        sent = [entry[2] for entry in now if entry[0] == "step"]
        assert [entry[2] for entry in later if entry[0] == "step"] == [count + 1 for count in sent[:-1]] + sent[-1:]


def test_who_is_beside_knows_all_steps_of_an_episode_that_is_given_up(told):
    rollout, at_once, beside = told
    rollout.begin(0, "e", demonstrate=True)
    for _ in range(3):
        rollout.step(deterministic=True)
    assert (len(at_once.steps()), len(beside.steps())) == (3, 2)
    assert rollout.abandon("the robot was lost").steps == 3
    assert [entry[:2] for entry in beside.entries] == [entry[:2] for entry in at_once.entries]
    assert beside.entries[-1][:2] == ("end", 3)


def test_what_goes_wrong_beside_stops_the_arm(told):
    rollout, _, beside = told
    rollout.begin(0, "e", demonstrate=True)
    rollout.step(deterministic=True)

    def fail(step, next_observation):
        raise ConnectionError("the learner is gone")

    beside.on_step = fail
    stops = beside.robot.stops
    with pytest.raises(ConnectionError):
        rollout.step(deterministic=True)
    assert beside.robot.stops == stops + 1


def test_a_person_at_rest_with_one_arm_has_not_handed_back_while_the_policy_leads_the_other(tmp_path):
    cell, _ = fake_arms()
    moves, rests = {"left": np.array([0.1, 0.0, 0.0, 0.0])}, {"left": np.zeros(4)}
    effort = HumanEffort(0.1, tmp_path / "operator.jsonl")
    with EpisodeStore.create(tmp_path / "store") as store:
        rollout = Rollout(RobotEnv(cell, interventions=True), None, None, (0,), [StoreRecorder(store), effort])
        rollout.begin(0, "e")
        for led in ({}, moves, rests, moves, rests, {}, rests, moves, {}):
            cell.operator.led = led
            rollout.step(deterministic=True)
        result = rollout.abandon("enough")
        episode, again = store.read("e"), HumanEffort(0.1, tmp_path / "operator.jsonl")
        again.recount(store)
    assert [Source(s).name[0] for s in episode.source] == [*"PHPHPPPHP"], "as the policy leads the other arm"
    assert [one[:2] for one in interventions(episode)] == [(1, 4), (7, 8)]
    assert (result.takeovers, result.operator_steps) == (2, 3)
    assert effort.figures == again.figures
    assert (effort.figures["takeovers"], effort.figures["led_s"]) == (2, 0.3)
