"""Learning from recorded episodes alone, as a user asks for it, and what goes on from there."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from running import learned, one_thread, robot_rl, same

from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.config.components import EvaluationConfig, IQLConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, DataError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.demonstrate import demonstrate
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.train import train

EPISODES = 4
CONFIG = TrainConfig(
    task="reach",
    demonstrations=EPISODES,
    env_steps=0,
    update_to_data=3,
    offline=IQLConfig(steps=250),
    sac=SACConfig(hidden_sizes=(32, 32)),
    replay=ReplayConfig(batch_size=16),
    evaluation=EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0),
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "demos"
    demonstrate("reach", path, episodes=EPISODES, seed=7, observed=WorkcellOptions())
    with EpisodeStore.open(path) as store, OverlayWriter(path, "judged", {}) as writer:
        for episode in list(store.episodes())[1:]:
            reward = np.linspace(0.0, 0.04, len(episode), dtype=np.float32)
            writer.write(episode, store.fingerprint(episode.episode_id), reward, terminated=False)
    return path


@pytest.fixture(scope="module")
def run(demos, tmp_path_factory):
    path = tmp_path_factory.mktemp("offline") / "run"
    return path, train(CONFIG, path, resume=False, demos=demos)


@pytest.mark.slow
def test_it_learns_without_playing_and_repeats(run, demos, tmp_path):
    path, summary = run
    assert (summary["env_steps"], summary["updates"], summary["offline_updates"]) == (0, 0, 250)
    assert "250 critic updates on 4 episodes alone" in summary_lines(summary)
    rows = [row for row in read_metrics(path / "metrics.jsonl") if row["kind"] == "offline"]
    assert [row["offline_updates"] for row in rows] == [200, 250]
    assert rows[-1]["actor_loss"] < rows[0]["actor_loss"]
    state = load_checkpoint(path / "checkpoint.pt", kind="training")
    deployed, modules = state["deployed"]["policy"], state["learner"]["algorithm"]["modules"]
    learning = {value.numpy().tobytes() for module in modules.values() for value in module.values()}
    assert all(value.numpy().tobytes() in learning for value in deployed.values()), "it is deployed as it was left"
    train(CONFIG, tmp_path / "again", resume=False, demos=demos)
    assert same(learned(tmp_path / "again"), learned(path))
    assert evaluate_run(path, episodes=1)["episodes"] == 1


@pytest.mark.slow
def test_another_process_learns_the_same(run, demos, tmp_path):
    train(replace(CONFIG, processes=2), tmp_path / "two", resume=False, demos=demos)
    assert same(learned(tmp_path / "two"), learned(run[0]))


@pytest.mark.slow
def test_the_same_networks_go_on_online(run, demos, tmp_path):
    both = replace(CONFIG, env_steps=50, warmup_steps=20)
    summary = train(replace(both, offline=IQLConfig(steps=20)), tmp_path / "both", resume=False, demos=demos)
    assert (summary["env_steps"], summary["updates"]) == (50, 30 * 3)
    path = shutil.copytree(run[0], tmp_path / "first-offline")
    assert train(replace(CONFIG, env_steps=50), path, resume=True)["env_steps"] == 50
    rows = [row for row in read_metrics(path / "metrics.jsonl") if row["kind"] == "offline"]
    assert [row["offline_updates"] for row in rows] == [200, 250], "what was learned is not learned again"


@pytest.mark.slow
def test_rewards_of_another_judge_are_learned_from(demos, tmp_path):
    flags = ("--demos", demos, "--rewards", "judged", "--steps", "0", "--set", "offline.steps=20", "--episodes", "1")
    small = (
        "--set",
        "sac.hidden_sizes=[16,16]",
        "--set",
        "replay.batch_size=8",
        "--set",
        "evaluation.video_episodes=0",
    )
    done = robot_rl("train", "reach", *flags, *small, "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["env_steps"] == 0
    with EpisodeStore.open(tmp_path / "run" / "episodes") as store:
        taken = list(store.episodes())
    assert len(taken) == EPISODES - 1, "those without such rewards are left"
    for episode in taken:
        assert episode.reward[-1] == pytest.approx(0.04)
        assert episode.truncated[-1] and not episode.terminated.any()


def test_what_cannot_be_learned_from_is_told(demos, tmp_path):
    with pytest.raises(ConfigError, match=r"env_steps=0 and offline.steps=0: nothing would be learned"):
        train(replace(CONFIG, offline=IQLConfig()), tmp_path / "a", resume=False, demos=demos)
    with pytest.raises(DataError, match="no rewards 'vlm'; there are: judged"):
        train(CONFIG, tmp_path / "b", resume=False, demos=demos, rewards="vlm")
    done = robot_rl("train", "reach", "--rewards", "judged", "--out", tmp_path / "c")
    assert done.returncode == 2
    assert "--rewards needs --demos STORE" in done.stderr
