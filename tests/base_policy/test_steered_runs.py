"""Runs that learn the noise of their base: what they record, keep and refuse."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from running import learned, one_thread, robot_rl, same

from robot_rl.base_policy.base_file import read_base
from robot_rl.base_policy.run_base import STEERED
from robot_rl.config.components import BaseConfig, EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import check_episode
from robot_rl.errors import BasePolicyError, ConfigError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.train import train

WARM = 50
BASE = BaseConfig(kind="chunk", correction="noise", updates=80)
CONFIG = TrainConfig(
    task="reach",
    demonstrations=2,
    env_steps=130,
    warmup_steps=WARM,
    warmup="base",
    update_to_data=2,
    checkpoint_interval=40,
    sac=SACConfig(hidden_sizes=(16, 16)),
    base=BASE,
    replay=ReplayConfig(batch_size=16),
    evaluation=EvaluationConfig(episodes=2, curve_interval=0, video_episodes=0),
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("steered") / "run"
    return path, train(CONFIG, path, resume=False)


def test_its_defaults_are_those_of_the_base():
    assert (CONFIG.algorithm.chunk, CONFIG.sac.n_step) == (2, 1)
    assert (CONFIG.base.bound, CONFIG.base.penalty) == (1.5, 0.0)
    assert CONFIG.replay.history == tuple(range(CONFIG.base.history))
    residual = replace(TrainConfig(), base=BaseConfig(kind="chunk"))
    assert (residual.algorithm.chunk, residual.base.bound) == (1, 0.3)


def test_base_policy_and_person_are_recorded_apart(run):
    with EpisodeStore.open(run[0] / "episodes") as store:
        online = [episode for episode in store.episodes() if not episode.facts.demonstration]
    played = 0
    for episode in online:
        assert not list(check_episode(episode))
        alone = np.arange(played, played + len(episode)) < WARM
        led = episode.source == Source.SCRIPT
        np.testing.assert_array_equal(episode.action_policy[alone], episode.action_base[:-1][alone])
        np.testing.assert_array_equal(episode.action[~led], episode.action_policy[~led])
        played += len(episode)
    assert played > WARM


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_learner_has_the_network_of_the_base_and_leaves_it(run, tmp_path, processes):
    path = run[0]
    if processes == 2:
        path = tmp_path / "two"
        train(replace(CONFIG, processes=2), path, resume=False)
    mine = read_base(path / "base.pt", "chunk")["state"]["parameters"]
    checkpoint = load_checkpoint(path / "checkpoint.pt")
    policies = checkpoint["deployed"]["policy"], checkpoint["learner"]["algorithm"]["modules"]["policy"]
    for policy in policies:
        assert all(torch.equal(policy[STEERED + name], value) for name, value in mine.items())


def test_it_is_evaluated_as_one(run):
    again = evaluate_run(run[0])
    assert again["success_rate"] == run[1]["success_rate"]


def test_a_resumed_run_goes_on_to_the_same_result(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run[0], copy)
    (copy / "checkpoint.pt.previous").replace(copy / "checkpoint.pt")
    train(CONFIG, copy, resume=True)
    assert same(learned(copy), learned(run[0]))


def test_a_gripper_does_what_follows_from_the_noise(tmp_path):
    few = replace(CONFIG.evaluation, episodes=1)
    path = tmp_path / "run"
    config = replace(CONFIG, task="cube_lift", demonstrations=1, env_steps=20, warmup_steps=8, evaluation=few)
    train(config, path, resume=False)
    with EpisodeStore.open(path / "episodes") as store:
        _, *played = store.episodes()
    grips = np.concatenate([episode.action_policy[:, -1] for episode in played])
    assert set(grips.tolist()) <= {-1.0, 0.0, 1.0}


@pytest.mark.slow
def test_it_learns_from_pixels_too(tmp_path):
    few = replace(CONFIG.evaluation, episodes=1)
    config = replace(CONFIG, observations="pixels", processes=1, env_steps=20, warmup_steps=8, evaluation=few)
    summary = train(config, tmp_path / "run", resume=False)
    assert summary["updates"] == 2 * 12


def test_a_base_without_noise_is_refused_with_one_that_has_it(tmp_path):
    for kind, task in (("clone", "reach"), ("scripted", "reach"), ("chunk", "handover")):
        config = replace(CONFIG, task=task, base=replace(BASE, kind=kind))
        with pytest.raises(BasePolicyError, match=r"no noise that could be learned; set base\.correction=residual, or"):
            train(config, tmp_path / f"{kind}-{task}", resume=False)
    said = robot_rl("train", "reach", "--base", "clone", "--set", "base.correction=noise", "--out", tmp_path / "run")
    assert (said.returncode, said.stderr.count("\n")) == (1, 1)
    assert "no noise that could be learned" in said.stderr
    assert not (tmp_path / "run").exists()


def test_a_base_of_other_sizes_is_refused_by_its_own(run, tmp_path):
    shorter = replace(BASE, path=str(run[0] / "base.pt"), horizon=6)
    with pytest.raises(BasePolicyError, match=r"base\.horizon=8, base\.history=8, and here they are 6, 8"):
        train(replace(CONFIG, base=shorter), tmp_path / "run", resume=False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"base": BaseConfig(correction="noise"), "warmup": "policy"}, r"base\.kind=none: there is no noise"),
        ({"replay": ReplayConfig(history=(0, 1))}, r"set replay\.history=\[0, 1, 2, 3, 4, 5, 6, 7\]"),
        ({"base": replace(BASE, history=2, horizon=2)}, r"set replay\.history=\[0, 1\]"),
        ({"base": replace(BASE, horizon=1)}, r"algorithm\.chunk=2: the base plans base\.horizon=1"),
        ({"warmup": "uniform"}, "warmup=uniform: the policy draws noise"),
        ({"base": replace(BASE, delay=1)}, r"base\.delay=1: the policy plans at once"),
    ],
)
def test_settings_that_do_not_go_with_it_are_refused(changes, said):
    check_consistent(CONFIG)
    with pytest.raises(ConfigError, match=said):
        check_consistent(replace(CONFIG, **changes))
