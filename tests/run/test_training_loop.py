"""The main job from beginning to end, in this process: what it counts, records, repeats and learns."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from running import learned, one_thread, robot_rl, same, timeless

from robot_rl.config.components import (
    EncoderConfig,
    EvaluationConfig,
    ReplayConfig,
    SACConfig,
    TrainConfig,
)
from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.data.chunk_layout import ChunkLayout
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import CheckpointError, DivergedError, RenderError
from robot_rl.learn.actor import Rollout
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import FrozenFeatures, Perception
from robot_rl.run.directory.human_effort import HumanEffort
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.evaluation import evaluate
from robot_rl.run.train import train

CONFIG = TrainConfig(
    task="reach",
    demonstrations=2,
    env_steps=130,  # no multiple of an episode's 40 steps
    warmup_steps=30,
    update_to_data=3,
    checkpoint_interval=1000,
    sac=SACConfig(hidden_sizes=(32, 32)),
    replay=ReplayConfig(batch_size=16),
    evaluation=EvaluationConfig(episodes=2, curve_interval=100, curve_episodes=1, video_episodes=0),
)
EVALUATED_ONCE = EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("training") / "run"
    return path, train(CONFIG, path, resume=False)


def online_episodes(path):
    with EpisodeStore.open(path / "episodes") as store:
        return [episode for episode in store.episodes() if not episode.metadata["demonstration"]]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_and_another_seed_another(run, tmp_path):
    path, summary = run
    again = train(CONFIG, tmp_path / "again", resume=False)
    assert timeless(again) == timeless(summary)
    records, repeated = (read_metrics(folder / "metrics.jsonl") for folder in (path, tmp_path / "again"))
    assert [timeless(record) for record in repeated] == [timeless(record) for record in records]
    assert same(learned(tmp_path / "again"), learned(path))

    train(replace(CONFIG, seed=1, evaluation=EVALUATED_ONCE), tmp_path / "other", resume=False)
    other, first = online_episodes(tmp_path / "other")[0], online_episodes(path)[0]
    assert not np.array_equal(other.observations["state/target"][0], first.observations["state/target"][0])
    assert not same(learned(tmp_path / "other"), learned(path))


def test_the_summary_says_what_was_done_and_with_what(run):
    path, summary = run
    assert json.loads((path / "summary.json").read_text()) == json.loads(json.dumps(summary))
    assert (summary["task"], summary["seed"], summary["device"]) == ("reach", 0, "cpu")
    assert (summary["env_steps"], summary["updates"], summary["utd"]) == (130, 100 * 3, 3.0)
    assert summary["episodes"] == 2
    low, high = summary["success_ci95"]
    assert 0.0 <= low <= summary["success_rate"] <= high <= 1.0
    assert summary["cycle_time_s"] is None or 0.0 < summary["cycle_time_s"] <= 4.0
    assert 0.0 < summary["demo_cycle_time_s"] < 4.0
    assert summary["wall_s"] > summary["learning_wall_s"] > 0.0
    assert {"python", "torch", "numpy", "mujoco"} <= summary["versions"].keys()
    assert summary["git_revision"] == summary["provenance"]["git"]["revision"]
    assert summary["video"] is None


@pytest.mark.slow
def test_steps_never_exceed_the_budget_and_each_is_worth_its_updates(run):
    path, _ = run
    lengths = [len(episode) for episode in online_episodes(path)]
    assert sum(lengths) == CONFIG.env_steps
    assert online_episodes(path)[-1].truncated[-1]
    records = read_metrics(path / "metrics.jsonl", "episode")
    assert [record["env_step"] for record in records] == list(np.cumsum(lengths))
    for record in read_metrics(path / "metrics.jsonl", "update"):
        assert record["updates"] == 3 * (record["env_step"] - CONFIG.warmup_steps)
        assert record["utd"] == 3.0


def test_interventions_are_recorded_with_both_actions_and_counted(run):
    path, summary = run
    episodes, records = online_episodes(path), read_metrics(path / "metrics.jsonl", "episode")
    assert len(episodes) == len(records)
    for episode, record in zip(episodes, records, strict=True):
        led = episode.source == Source.SCRIPT
        assert set(np.unique(episode.source)) <= {Source.POLICY, Source.SCRIPT}
        assert (episode.action[led] != episode.action_policy[led]).any(axis=1).all()
        np.testing.assert_array_equal(episode.action[~led], episode.action_policy[~led])
        assert record["intervention_steps"] == led.sum()
        assert record["takeovers"] == np.count_nonzero(np.diff(led.astype(int), prepend=0) == 1)
        assert record["assisted"] == led.any()
        assert record["success"] == bool(episode.metadata["success"])
    assert any(record["assisted"] for record in records)
    tenths = {
        "first_tenth": [r for r in records if r["env_step"] - r["steps"] < 13],
        "last_tenth": [r for r in records if r["env_step"] > 117],
    }
    for name, rows in tenths.items():
        expected = sum(r["intervention_steps"] for r in rows) / sum(r["steps"] for r in rows)
        assert summary["intervention_rate"][name] == pytest.approx(expected)


def test_intervened_steps_are_on_both_sides_of_the_replay(run):
    path, _ = run
    state = load_checkpoint(path / "checkpoint.pt")["learner"]
    sources = np.concatenate([episode.source for episode in online_episodes(path)])
    online = ReplayBuffer(300, state["online"]["state"].shape[1], state["online"]["action"].shape[1])
    online.load_state_dict(state["online"])
    assert len(online) == CONFIG.env_steps
    assert online.operator_count == np.count_nonzero(sources != Source.POLICY) > 0


def test_without_interventions_the_operator_never_leads(tmp_path):
    alone = replace(CONFIG, env_steps=80, intervention=InterventionConfig(enabled=False), warmup_steps=1000)
    summary = train(replace(alone, evaluation=EVALUATED_ONCE), tmp_path / "run", resume=False)
    assert summary["intervention_rate"] == {"first_tenth": 0.0, "last_tenth": 0.0}
    assert all((episode.source == Source.POLICY).all() for episode in online_episodes(tmp_path / "run"))


def test_a_lazy_operator_watches_no_episode_that_begins_after_its_time_also_when_resumed(tmp_path):
    lazy = InterventionConfig(profile="lazy", minutes=10 / 60, readiness=2.0, attention=1.0)
    config = replace(CONFIG, env_steps=240, intervention=lazy, warmup_steps=1000, demonstrations=0)
    config = replace(config, evaluation=EVALUATED_ONCE)
    train(replace(config, env_steps=130), tmp_path / "run", resume=False)
    summary = train(config, tmp_path / "run", resume=True)
    led = sum(int((episode.source != Source.POLICY).sum()) for episode in online_episodes(tmp_path / "run"))
    assert summary["person"]["led_s"] == pytest.approx(0.1 * led)
    effort = HumanEffort.of_run(tmp_path / "run", 0.1)
    assert effort.figures == summary["person"]
    assert load_checkpoint(tmp_path / "run" / "checkpoint.pt")["effort"] == effort.counts
    recorded = [row for row in read_metrics(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "episode"]
    assert recorded[-1]["person"] == summary["person"]
    assert summary["person"]["takeovers"] == sum(row["takeovers"] for row in recorded) > 0
    before, steps = [], 0
    for episode in online_episodes(tmp_path / "run"):
        led = (episode.source != Source.POLICY).any()
        assert not (led and steps >= 100)
        before += [led] if steps < 100 else []
        steps += len(episode)
    assert steps == 240
    assert any(before)


def test_learning_that_diverges_is_an_error_and_is_not_saved(tmp_path):
    config = replace(CONFIG, sac=SACConfig(hidden_sizes=(32, 32), learning_rate=1e30))
    with pytest.raises(DivergedError, match=r"left the finite numbers.*lower sac.learning_rate"):
        train(config, tmp_path / "run", resume=False)
    assert load_checkpoint(tmp_path / "run" / "checkpoint.pt")["env_steps"] == 0
    assert all(value.isfinite().all() for value in learned(tmp_path / "run").values())


@pytest.mark.slow
def test_from_pixels_it_resumes_to_the_same_result(tmp_path):
    config = replace(
        CONFIG,
        observations="pixels",
        env_steps=60,
        demonstrations=1,
        update_to_data=1,
        checkpoint_interval=30,
        encoder=EncoderConfig(image_size=64, bottleneck=8, spatial_features=2),
        evaluation=EVALUATED_ONCE,
    )
    try:
        summary = train(config, tmp_path / "whole", resume=False)
    except RenderError as error:
        pytest.skip(str(error))
    assert set(online_episodes(tmp_path / "whole")[0].observations) == {
        *("images/front", "images/wrist", "state/tcp_pose", "state/tcp_twist", "state/wrench")  # and no target
    }
    resumed = shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    (resumed / "checkpoint.pt.previous").replace(resumed / "checkpoint.pt")
    assert 0 < load_checkpoint(resumed / "checkpoint.pt")["env_steps"] < 60
    assert timeless(train(config, resumed, resume=True)) == timeless(summary)
    assert same(learned(resumed), learned(tmp_path / "whole"))

    narrower = replace(config, encoder=replace(config.encoder, bottleneck=4))
    with pytest.raises(CheckpointError, match="other settings of encoder"):
        train(narrower, resumed, resume=True)
    other_crops = replace(config, env_steps=70, encoder=replace(config.encoder, crops=2, shift=3))
    train(other_crops, resumed, resume=True)
    assert_features_are_of_the_recorded_frames(resumed)


def assert_features_are_of_the_recorded_frames(path):
    """What replay remembers is what the encoder of the run makes of the store, from the first frame on."""
    config = RunDirectory.read_config(path)
    state = load_checkpoint(path / "checkpoint.pt")["learner"]
    encoder = FrozenFeatures(config.encoder)
    with EpisodeStore.open(path / "episodes") as store:
        for part, demonstration in (("demos", True), ("online", False)):
            episodes = [e for e in store.episodes() if e.metadata["demonstration"] == demonstration]
            views = [e.observations[f"images/{camera}"] for e in episodes for camera in config.encoder.cameras]
            frames = np.concatenate([np.stack(pair, 1) for pair in zip(views[::2], views[1::2], strict=True)])
            expected = np.stack([encoder.encode(row, encoder.view(row)) for row in frames])
            assert state[part]["images_by"] == encoder.spec.maker
            np.testing.assert_array_equal(state[part]["images"], expected)


class Random(Policy):
    """Draws every action uniformly."""

    def __init__(self):
        torch.nn.Module.__init__(self)
        self.chunk = ChunkLayout(1, 3)
        self.generator = torch.Generator().manual_seed(0)

    def begin(self, seed):
        """Nothing of an episode is remembered, and it draws by itself."""

    def act(self, state, images=None, *, deterministic):
        return torch.rand(1, 3, generator=self.generator) * 2 - 1


@pytest.mark.slow
def test_reach_is_learned_from_demonstrations_corrections_and_rewards(tmp_path):
    done = robot_rl(
        *("train", "reach", "--json", "--steps", 900, "--episodes", 30, "--out", tmp_path / "run"),
        *("--set", "update_to_data=3", "--set", "replay.batch_size=64", "--set", "sac.hidden_sizes=[64, 64]"),
        *("--set", "sac.learning_rate=1e-3", "--set", "evaluation.curve_interval=0"),
        *("--set", "evaluation.video_episodes=0"),
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["success_rate"] >= 0.8
    assert summary["cycle_time_s"] < summary["demo_cycle_time_s"]
    assert summary["intervention_rate"]["last_tenth"] < summary["intervention_rate"]["first_tenth"]


@pytest.mark.slow
def test_reach_is_not_for_free():
    config = TrainConfig(task="reach")
    env = RobotEnv(make_workcell("reach"))
    perception = Perception(env.observation_specs)
    untrained = LocalLearner(env.environment_spec, perception, config).policy
    for policy in (untrained, Random()):
        rollout = Rollout(env, policy, perception, config.replay.history)
        assert evaluate(rollout, episodes=25, seed=config.evaluation.seed).summary()["success_rate"] <= 0.2
    env.close()
