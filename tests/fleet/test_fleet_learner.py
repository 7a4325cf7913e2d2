import numpy as np
import pytest

from robot_rl.config.load import load_config
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.data.store.tail import Cursor
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError, DataError, LinkError
from robot_rl.fleet.fleet_learner import FleetLearner
from robot_rl.fleet.intake import ReceivedEpisode
from robot_rl.fleet.plan import simulated_plan

TASK = EnvironmentSpec("reach", 10, 0.1, 2, return_range=(0.0, 1.0))
SETTINGS = (
    *("task=reach", "env_steps=40", "demonstrations=1", "warmup_steps=4", "update_to_data=1"),
    *("replay.batch_size=8", "sac.hidden_sizes=[8, 8]", "replay.capacity=200"),
)


def learner(*settings):
    plan = simulated_plan(load_config(None, [*SETTINGS, *settings]), 2)
    return FleetLearner(plan, TASK, PerceptSpec(3))


def received(place, steps=4, *, tag=0.0, demonstration=False, **first):
    """An episode at a place of a store; all its numbers are `tag`."""
    rows = [Transition(np.full(2, tag, np.float32), 0.0, False, t == steps - 1, 0) for t in range(steps)]
    rows[0] = rows[0]._replace(**first)
    percepts = [Percept(np.full(3, tag, np.float32)) for _ in range(steps + 1)]
    return ReceivedEpisode(Cursor(place + 1, f"print-{place}"), f"episode-{place:05d}", demonstration, percepts, rows)


def test_robots_are_learned_from_in_turn_and_continued_from_a_checkpoint():
    one, logs = learner(), []
    one.learn("robot1", received(0, demonstration=True), logs.append)
    for place, name in ((0, "robot2"), (1, "robot1"), (2, "robot1")):
        one.learn(name, received(place, tag=0.1 * place), logs.append)
    assert one.cursors == {"robot1": Cursor(3, "print-2"), "robot2": Cursor(1, "print-0")}
    assert one.steps_of == {"robot1": 8, "robot2": 4}
    assert (one.learner.env_steps, one.learner.updates, len(one.learner.demos)) == (12, 8, 4)
    assert len(logs) == 12
    one.finish("robot2", 1)
    again = learner()
    again.load_state_dict(one.state_dict())
    assert (again.cursors, again.demonstrations, again.finished) == (one.cursors, one.demonstrations, {"robot2"})
    longer = learner("env_steps=60")
    longer.load_state_dict(one.state_dict())
    assert longer.finished == set()  # it has more to play
    for both in (one, again):
        both.learn("robot2", received(1, tag=0.5), logs.append)
    assert again.finished == set()  # it has played on
    for mine, theirs in zip(one.learner.policy.parameters(), again.learner.policy.parameters(), strict=True):
        assert mine.equal(theirs)


def test_an_episode_that_is_lost_or_comes_twice_is_no_next_one():
    one = learner()
    one.learn("robot1", received(0), print)
    for place in (0, 2):
        with pytest.raises(LinkError, match=f"robot1: episode {place} arrived after 1; one is lost or came twice"):
            one.learn("robot1", received(place), print)
    with pytest.raises(LinkError, match="robot1 has 2 episodes, of which 1 arrived"):
        one.finish("robot1", 2)
    assert one.steps_of == {"robot1": 4, "robot2": 0}


@pytest.mark.parametrize(
    ("episode", "error", "message"),
    [
        (received(0, action=np.array([np.nan, 0.0])), DataError, "episode-00000: replay: action has a NaN"),
        (received(0, action=np.zeros(3)), DataError, r"action has shape \(3,\), expected \(2,\)"),
        (received(0, reward=7.0), DataError, "a reward of 7 alone leaves the range of returns"),
        (received(0, steps=11), DataError, "it has 11 steps, the task ends after 10"),
        (received(0)._replace(percepts=[Percept(np.zeros(4, np.float32))] * 5), DataError, "state has shape"),
        (received(0, demonstration=True), LinkError, "is a demonstration, the plan has 0 of robot2"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_before_any_of_it_is_remembered(episode, error, message):
    one = learner()
    with pytest.raises(error, match=message):
        one.check_episode("robot2", episode)
    one.check_episode("robot2", received(0))
    assert one.learner.env_steps == 0


def test_a_memory_that_holds_no_episode_of_a_robot_is_refused():
    with pytest.raises(ConfigError, match="capacity=20 leaves robot1 10 rows, an episode takes 11"):
        learner("replay.capacity=20")
