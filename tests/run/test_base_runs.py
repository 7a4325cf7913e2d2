"""Runs that correct a base: what they record, keep and refuse."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from fakes import fake_workcell
from running import learned, one_thread, robot_rl, same

from robot_rl.base_policy.base_file import read_base, save_base
from robot_rl.base_policy.chunk_player import ChunkPlayer
from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSetup, BaseSpec, Stamped, make_base
from robot_rl.base_policy.planner import InTurn
from robot_rl.config.components import (
    BaseConfig,
    EvaluationConfig,
    ReplayConfig,
    SACConfig,
    TrainConfig,
)
from robot_rl.data.schema import BASE_ACTION, SCHEMA_VERSION, Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.verify import check_episode
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import BasePolicyError, CheckpointError, ConfigError
from robot_rl.learn.actor import Rollout
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.train import train

BOUND, WARM = 0.3, 50
CONFIG = TrainConfig(
    task="reach",
    demonstrations=2,
    env_steps=130,
    warmup_steps=WARM,
    warmup="base",
    update_to_data=2,
    checkpoint_interval=40,
    sac=SACConfig(hidden_sizes=(16, 16)),
    base=BaseConfig(kind="chunk", updates=80, bound=BOUND),
    replay=ReplayConfig(batch_size=16),
    evaluation=EvaluationConfig(episodes=2, curve_interval=100, curve_episodes=1, video_episodes=0),
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("base") / "run"
    return path, train(CONFIG, path, resume=False)


@pytest.fixture(scope="module")
def online(run):
    with EpisodeStore.open(run[0] / "episodes") as store:
        return [episode for episode in store.episodes() if not episode.facts.demonstration]


def test_base_correction_and_person_are_recorded_apart(online):
    played = 0
    for episode in online:
        assert episode.schema_version == SCHEMA_VERSION
        assert not list(check_episode(episode))
        assert BASE_ACTION not in episode.observations
        assert episode.action_base.shape == (len(episode) + 1, episode.action.shape[1])
        residual = episode.action_policy - episode.action_base[:-1]
        assert np.abs(residual).max() <= BOUND + 1e-6
        alone = np.arange(played, played + len(episode)) < WARM
        assert (residual[alone] == 0).all(), "the base alone, in the warm-up"
        assert (np.abs(residual[~alone]).max(1, initial=0) > 0).all()
        led = episode.source == Source.SCRIPT
        np.testing.assert_array_equal(episode.action[~led], episode.action_policy[~led])
        assert np.abs(episode.action - episode.action_base[:-1])[led].max(initial=0.5) >= 0.5, "a person has no bound"
        played += len(episode)


def test_the_curve_begins_with_the_base_alone(run):
    records = read_metrics(run[0] / "metrics.jsonl")
    assert next(row["env_step"] for row in records if row["kind"] == "curve") == 0
    assert [row["base_updates"] for row in records if row["kind"] == "base"] == [80]


def test_exploration_by_chance_stays_within_the_bound(tmp_path):
    few = replace(CONFIG.evaluation, episodes=1, curve_interval=0)
    train(replace(CONFIG, warmup="uniform", env_steps=30, warmup_steps=30, evaluation=few), tmp_path, resume=False)
    with EpisodeStore.open(tmp_path / "episodes") as store:
        played = [episode for episode in store.episodes() if not episode.facts.demonstration]
    by_policy = [one.source == Source.POLICY for one in played]
    away = np.concatenate(
        [np.abs(one.action - one.action_base[:-1])[it] for one, it in zip(played, by_policy, strict=True)]
    )
    assert away.mean() > BOUND / 4 and away.max() <= BOUND + 1e-6


def test_the_run_keeps_its_base_and_is_evaluated_as_one(run):
    path, summary = run
    again = evaluate_run(path)
    assert again["success_rate"] == summary["success_rate"]
    assert read_base(path / "base.pt", "chunk")["facts"]["episodes"] == 2.0


def test_a_resumed_run_goes_on_to_the_same_result(run, tmp_path):
    path, _ = run
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    (copy / "checkpoint.pt.previous").replace(copy / "checkpoint.pt")
    train(CONFIG, copy, resume=True)
    assert same(learned(copy), learned(path))


@pytest.mark.slow
def test_another_process_corrects_too(tmp_path):
    few = replace(CONFIG.evaluation, episodes=1, curve_interval=0)
    summary = train(replace(CONFIG, processes=2, env_steps=70, evaluation=few), tmp_path / "two", resume=False)
    assert summary["updates"] == 2 * (70 - WARM)


def test_a_base_that_has_changed_is_refused_by_name(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run[0], other)
    mine = read_base(other / "base.pt", "chunk")

    class Changed:
        name, identity = mine["name"], mine["identity"]

        def state_dict(self):
            state = mine["state"]
            state["parameters"]["layers.6.bias"] += 1.0
            return state

    save_base(other / "base.pt", "chunk", Changed(), {})
    for use in (lambda: train(CONFIG, other, resume=True), lambda: evaluate_run(other)):
        with pytest.raises(
            CheckpointError, match=rf"corrects the base chunk \({mine['identity']}\), and what is there"
        ):
            use()
    (other / "base.pt").unlink()
    with pytest.raises((CheckpointError, BasePolicyError), match="chunk"):
        evaluate_run(other)


def test_it_is_named_on_the_command_line(tmp_path):
    refused = robot_rl("train", "reach", "--base", "chunk:gone.pt", "--out", tmp_path / "run")
    assert refused.returncode == 1
    assert "no file gone.pt" in refused.stderr
    assert not (tmp_path / "run").exists()
    unknown = robot_rl("train", "reach", "--base", "chunks", "--out", tmp_path / "run")
    assert "did you mean 'chunk'" in unknown.stderr


def test_two_arms_are_corrected_too(tmp_path):
    few = replace(CONFIG.evaluation, episodes=1, curve_interval=0)
    sizes = {"demonstrations": 1, "env_steps": 30, "warmup_steps": 10, "evaluation": few}
    path = tmp_path / "corrected"
    train(replace(CONFIG, task="handover", **sizes), path, resume=False)
    with EpisodeStore.open(path / "episodes") as store:
        demonstration, *played = store.episodes()
    shown = np.unique(demonstration.action[:, -1])
    for episode in played:
        assert np.isin(episode.action_base[:, -1], shown).all(), "both grippers do what was demonstrated"
        residual = episode.action_policy - episode.action_base[:-1]
        assert np.abs(residual[:, :-1]).max() <= BOUND + 1e-6
    assert read_base(path / "base.pt", "chunk")["state"]["arms"] == ["left", "right"]


# Kinds that need a run or an operator.


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run without a base."""
    path = tmp_path_factory.mktemp("plain") / "run"
    config = replace(CONFIG, base=BaseConfig(), warmup="policy", env_steps=60)
    train(replace(config, evaluation=replace(CONFIG.evaluation, curve_interval=0)), path, resume=False)
    return path


def test_the_policy_of_another_run_is_a_base_and_starts_as_good(plain, tmp_path):
    config = replace(CONFIG, base=BaseConfig(kind="run", path=str(plain)), env_steps=60)
    train(config, tmp_path / "run", resume=False)
    shutil.rmtree(tmp_path / "run" / "tensorboard")
    first = next(row for row in read_metrics(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "curve")
    assert first["episodes"] == 1
    with EpisodeStore.open(tmp_path / "run" / "episodes") as store:
        played = store.read(store.ids()[-1])
    base = make_base(setup_of_reach(config))
    for row in (0, 5, len(played)):
        seen = [Stamped(int(played.stamp_obs[t]), played.observation(t)) for t in range(max(0, row - 1), row + 1)]
        np.testing.assert_allclose(base.plan(seen).actions[0], played.action_base[row], atol=1e-5)
    kept = read_base(tmp_path / "run" / "base.pt", "run")
    assert make_base(replace(setup_of_reach(config), path="/gone", state=kept["state"])).identity == base.identity


def setup_of_reach(config):
    env = RobotEnv(make_workcell("reach"))
    return BaseSetup(config.base.path, env.environment_spec, env.observation_specs, config)


def test_a_run_for_another_task_and_one_with_a_base_are_refused(plain, run):
    setup = setup_of_reach(replace(CONFIG, base=BaseConfig(kind="run", path=str(plain))))
    insert = RobotEnv(make_workcell("peg_insert"))
    other = replace(setup, task=insert.environment_spec, observations=insert.observation_specs)
    with pytest.raises(BasePolicyError, match=r"needs state/target, and peg_insert has.*3 numbers.*peg_insert 4"):
        make_base(other)
    with pytest.raises(BasePolicyError, match="that run corrects a base itself, chunk"):
        make_base(setup_of_reach(replace(CONFIG, base=BaseConfig(kind="run", path=str(run[0])))))


def test_the_scripted_operator_is_a_base_and_does_not_intervene(tmp_path):
    config = replace(CONFIG, base=BaseConfig(kind="scripted"), env_steps=60, warmup_steps=60)
    train(config, tmp_path / "run", resume=False)
    first = next(row for row in read_metrics(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "curve")
    assert first["success_rate"] == 1.0
    with EpisodeStore.open(tmp_path / "run" / "episodes") as store:
        played = [episode for episode in store.episodes() if not episode.facts.demonstration]
    assert all((episode.source == Source.POLICY).all() for episode in played)


@pytest.mark.parametrize(("who", "said"), [(None, "has no operator here"), (Source.HUMAN, "a person as its operator")])
def test_without_a_scripted_operator_there_is_no_scripted_base(who, said):
    cell = fake_workcell()
    cell = replace(cell, operator=None if who is None else cell.operator)
    with pytest.raises(ConfigError, match=f"fake_reach {said}.*|fake_reach has {said}.*"):
        RobotEnv(cell).begin_advice(0)


# What happens at the arm.


class Steady(BasePolicy):
    """Goes along x, as long as it works."""

    name, identity = "steady", "1"

    def __init__(self, plans=99):
        self.spec, self.plans = BaseSpec({}, 3, 0, 0.1, 2), plans

    def plan(self, history):
        self.plans -= 1
        if self.plans < 0:
            raise BasePolicyError("base steady: its server is gone")
        stamps = history[-1].stamp + 10**8 * np.arange(2)
        return ActionChunk(np.tile([0.5, 0.0, 0.0], (2, 1)), stamps)


def rollout(base, delay=0, interventions=False):
    cell = fake_workcell()
    env = RobotEnv(cell, interventions=interventions)
    player = ChunkPlayer(base, InTurn(base, delay), BaseConfig(replan=2, blend=0))
    return cell, Rollout(env, None, None, (0,), base=player)


def test_a_base_that_fails_stops_the_arm_and_says_its_name():
    cell, playing = rollout(Steady(plans=2))
    playing.begin(0, "episode-0")
    for _ in range(3):
        playing.step(deterministic=True, base_alone=True)
    before = cell.io.stops
    with pytest.raises(BasePolicyError, match="base steady: its server is gone"):
        for _ in range(3):
            playing.step(deterministic=True, base_alone=True)
    assert cell.io.stops > before


def test_the_arm_holds_while_the_base_has_no_action():
    kept = []

    class Keep:
        def on_start(self, *_): ...
        def on_end(self, *_): ...
        def on_step(self, step, observation):
            kept.append((step, observation[BASE_ACTION]))

    cell = fake_workcell()
    player = ChunkPlayer(Steady(), InTurn(Steady(), delay=3), BaseConfig(replan=2, blend=0))
    playing = Rollout(RobotEnv(cell), None, None, (0,), [Keep()], base=player)
    playing.begin(0, "episode-0")
    for _ in range(3):
        playing.step(deterministic=True)
    assert [step.source for step, _ in kept] == [Source.HOLD] * 3
    assert all((step.action == 0).all() for step, _ in kept)
