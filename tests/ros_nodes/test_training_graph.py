"""`robot-rl up train`: every part a process of its own, some of them killed on the way."""

import os

import numpy as np
import pytest
import torch

from robot_rl.data.replay.observation_scaling import ObservationPacker
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.learn.checkpoint import load_checkpoint

NODES = ("sim", "safety", "teleop", "recorder", "learner", "actor")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_whether_the_device_is_there_is_for_the_learner_to_say(bringup):
    training = bringup("train", "--lockstep", "--device", "cuda")
    assert training.end() == 2, training.text()
    for node in ("learner", "actor"):  # both by the learner's word: an actor beside a robot needs no GPU
        assert any(line.startswith(f"[{node}]") and "sees no CUDA device" in line for line in training.lines)
    assert not training.run.exists()


@pytest.mark.timeout(600)
def test_learner_and_actor_may_be_killed_and_nothing_recorded_is_lost_or_doubled(bringup):
    training = bringup("train", "--lockstep", env_steps=250)
    training.wait_for("2 demonstrations")
    kill_in_turn(training, ("learner", "actor"))
    assert training.end() == 0, training.text()
    assert (training.run / "summary.json").is_file()
    compare(training.run, 250)
    assert not [name for name in NODES if training.alive(name)]


@pytest.mark.skipif(
    "ROBOT_RL_REAL_TIME_TESTS" not in os.environ,
    reason="real time needs two quiet cores: set ROBOT_RL_REAL_TIME_TESTS=1 where you have them",
)
@pytest.mark.timeout(600)
def test_in_real_time_each_node_may_be_killed_and_the_training_goes_on(bringup):
    training = bringup("train", env_steps=250)
    training.wait_for("2 demonstrations")
    kill_in_turn(training, ("learner", "teleop", "safety", "sim", "actor"))
    training.wait_for_checkpoint(250)
    compare(training.run, 250)


def kill_in_turn(training, names):
    for name in names:
        training.wait_for_progress()
        training.kill(name)
    training.wait_for_progress()


def compare(run, count):
    """No step that was recorded is lost to the learner, or learned from twice, or in another order.

    Every row of replay is compared whole. What the sensors say is never the same twice, so each row is its own tag. An
    episode that was lost before its first step leaves a first observation, and nothing to learn from.
    """
    packer = ObservationPacker(RobotEnv(make_workcell("reach")).observation_specs)
    with EpisodeStore.open(run / "episodes") as store:
        episodes = [store.read(i) for i in store.ids() if i.startswith("episode-")]
    replay = load_checkpoint(run / "checkpoint.pt")["learner"]["online"]
    lengths = replay["episode_rows"]
    kept = np.repeat(lengths > 1, lengths)
    assert lengths[lengths > 1].tolist() == [len(episode) + 1 for episode in episodes]
    assert sum(map(len, episodes)) == count
    recorded = np.concatenate([packer.pack_rows(episode.observations) for episode in episodes])
    assert np.array_equal(replay["state"][kept], recorded)
    assert len(np.unique(recorded, axis=0)) == len(recorded), "the steps cannot be told apart"
    steps = np.delete(np.arange(len(recorded)), np.cumsum(lengths[lengths > 1]) - 1)  # without last observations
    for name in ("action", "reward", "terminated", "source"):
        expected = np.concatenate([getattr(episode, name) for episode in episodes])
        assert np.array_equal(replay[name][kept][steps], expected), name
    assert np.array_equal(
        replay["index"][kept][steps], np.concatenate([np.arange(len(episode)) for episode in episodes])
    )
