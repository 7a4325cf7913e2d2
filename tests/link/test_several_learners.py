"""A learner that leads a second one, which is a real process: what it learns, how it ends, and how it goes on."""

import os
import re
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from robot_rl.config.components import EngineConfig, IQLConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError, DataError, LinkError
from robot_rl.learn.learner import Learner
from robot_rl.link.handshake import Agreement
from robot_rl.link.leading_learner import open_learner

TASK = EnvironmentSpec("line", max_steps=20, control_period=0.1, action_size=2)
CONFIG = TrainConfig(
    demonstrations=3,
    warmup_steps=4,
    update_to_data=2,
    processes=2,
    learners=2,
    sac=SACConfig(hidden_sizes=(8,)),
    offline=IQLConfig(steps=4),
    replay=ReplayConfig(capacity=400, batch_size=8),
)


def opened(config=CONFIG, robots=None):
    return closing(open_learner(Agreement(TASK, PerceptSpec(3), config), robots))


def percept(number):
    return Percept(np.random.default_rng(number).normal(size=3).astype(np.float32))


def transitions(number, steps=6):
    rng = np.random.default_rng(1000 + number)
    return [
        Transition(rng.uniform(-1, 1, 2).astype(np.float32), float(t == steps - 1), t == steps - 1, False, 0)
        for t in range(steps)
    ]


def demonstrate(learner):
    for number in range(3):
        learner.demonstrate([percept(number)] * 7, transitions(number), f"demonstration-{number}")


def play(learner, numbers, robot=""):
    for number in numbers:
        learner.begin(percept(number), f"{robot}episode-{number}")
        for t, step in enumerate(transitions(number)):
            learner.append(step, percept(100 * number + t))
            learner.catch_up()


def parameters(learner):
    return torch.cat([value.flatten() for value in learner.policy.policy_state().values()])


def memory(state):
    return {name: np.asarray(state[part][name]) for part in ("online", "demos") for name in ("action", "state")}


def test_two_remember_what_one_does_and_a_killed_one_ends_the_step_and_the_run_goes_on_to_the_same_result():
    alone = Learner(TASK, PerceptSpec(3), replace(CONFIG, learners=1))
    with opened() as learner:
        for one in (alone, learner):
            demonstrate(one)
            one.pretrain(4)
            play(one, range(4))
            one.label_episode("episode-2", False)
        state = learner.state_dict()
        assert (learner.updates, learner.env_steps) == (alone.updates, alone.env_steps)
        for name, column in memory(alone.state_dict()).items():
            np.testing.assert_array_equal(memory(state)[name], column)
        play(learner, range(4, 8))
        undisturbed = parameters(learner)
        bad = transitions(9)[0]._replace(action=np.full(2, np.nan, np.float32))
        with pytest.raises(DataError, match="action"):  # of whichever of them has the episode
            for number in (9, 10):
                learner.begin(percept(number), "bad")
                learner.append(bad, percept(number))
                learner.catch_up()

    with opened() as learner:
        learner.load_state_dict(state)
        play(learner, [4])
        os.kill(learner.others.pids[0], signal.SIGKILL)
        with pytest.raises(LinkError, match=r"learner 2 of 2 was killed .*continues from its last checkpoint"):
            play(learner, [5])

    with opened() as learner:
        learner.load_state_dict(state)
        play(learner, range(4, 8))
        assert torch.equal(parameters(learner), undisturbed)
        state = learner.state_dict()
    alone.load_state_dict(state)
    assert torch.equal(parameters(alone), undisturbed), "one learner continues what two have learned"


def test_a_fleet_is_shared_too_and_nothing_listens_beyond_loopback():
    config = replace(CONFIG, demonstrations=0, offline=IQLConfig())
    with opened(config, {"a": 1.0, "b": 2.0}) as learner:
        for number in range(4):
            play(learner, [number], "ab"[number % 2] + "/")
        rings = learner.state_dict()["online"]["robots"]
        assert [rings[name]["episode_names"].tolist() for name in "ab"] == [
            ["a/episode-0", "a/episode-2"],
            ["b/episode-1", "b/episode-3"],
        ]
        addresses = {address for pid in (os.getpid(), *learner.others.pids) for address in listening(pid)}
        assert addresses, "gloo listens"
        assert all(address in ("0100007F", "00000000000000000000000001000000") for address in addresses)


def listening(pid):
    """Addresses, as the kernel writes them, at which a process accepts connections."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    inodes = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            cells = row.split()
            if cells[3] == "0A" and cells[9] in inodes:
                yield cells[1].partition(":")[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"processes": 1}, "learners=2 with processes=1"),
        ({"replay": ReplayConfig(batch_size=9)}, "batch_size=9: it cannot be divided evenly"),
        ({"demonstrations": 1}, "learners=2 with demonstrations=1: set as many as learners, or none"),
        ({"engine": EngineConfig(compile=True)}, "engine.compile=true"),
    ],
)
def test_what_cannot_be_shared_is_one_line(changes, said):
    with pytest.raises(ConfigError, match=said):
        check_consistent(replace(CONFIG, **changes))
