"""RL-VLM-F beside a training: pairs are queried while it goes on, from a server that sees how far the goal is."""

import contextlib
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes import SPEC, FakeRobot, FakeTask, fake_workcell
from model_server import ModelServer, prefers_larger, reply, stamp_of, stamped
from running import learned, one_thread, same
from scenes import stamped_store

from robot_rl.cli.main import main
from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.config.components import EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.reward import BudgetConfig, PreferencesConfig, RewardConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, UncertifiedError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.reward.label_store import LABELS, LabelStore
from robot_rl.reward.preference.pairs import combine_orders
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.train import train

LOOP = PreferencesConfig(episodes=2, pairs=24, candidates=5, updates=150)
CONFIG = TrainConfig(
    task="reach",
    demonstrations=1,
    env_steps=140,  # four episodes of 30 steps, and one that is cut
    warmup_steps=100,
    update_to_data=1,
    checkpoint_interval=60,
    sac=SACConfig(hidden_sizes=(8, 8)),
    replay=ReplayConfig(batch_size=8),
    evaluation=EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0),
)
EPISODES, QUERIES = 5, 2 * 2 * LOOP.pairs
ONE_SESSION, TWO_SESSIONS = (replace(CONFIG, env_steps=30 * LOOP.episodes * n, warmup_steps=1000) for n in (1, 2))
"""Trainings in which nothing is learned but the reward."""


class GaugedRobot(FakeRobot):
    """Its camera shows a number that is the larger the nearer the goal is."""

    def __init__(self):
        super().__init__()
        self.task = FakeTask(self, replace(SPEC, cameras=("front",)))

    def read(self):
        distance = float(np.linalg.norm(self.position() - self.task.goal))
        return replace(super().read(), images={"front": stamped(int(np.clip(4095 - 2e4 * distance, 0, 4095)))})


def gauged_workcell(task, options):
    robot, cell = GaugedRobot(), fake_workcell()
    operator = replace(cell.operator, task=robot.task)
    return replace(cell, io=robot, clock=robot.clock, task=robot.task, operator=operator, playback=object())


SIMULATED = Deployment(gauged_workcell, can_film=False)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """A server, and a store on which it was tried."""
    with ModelServer(prefers_larger) as server:
        path = stamped_store(tmp_path_factory.mktemp("pairs") / "tried", 2)
        flags = ("--set", "task=move the point to the goal", "--set", "frames.count=2", "--set", "pairs=3")
        assert main(["label", "run", str(path), "--kind", "preference", "--url", server.url, *flags]) == 0
        reward = RewardConfig("preferences", str(path), labels="preference", allow_uncalibrated=True, preferences=LOOP)
        yield server, replace(CONFIG, reward=reward)


@pytest.fixture
def labeller(tried):
    server, config = tried
    server.answer = prefers_larger
    server.requests.clear()
    return server, config


@pytest.fixture(scope="module")
def plain(tried, tmp_path_factory):
    """A run in which nothing happens to the labeller: its directory, its summary, and how often was queried."""
    server, config = tried
    server.answer = prefers_larger
    server.requests.clear()
    run = tmp_path_factory.mktemp("plain") / "run"
    return run, train(config, run, resume=False, deployment=SIMULATED), len(server.requests)


def learner_of(path):
    return load_checkpoint(path / "checkpoint.pt")["learner"]


def rewards_of(memory):
    """Rewards of the steps of each episode of a memory."""
    ends = np.cumsum(memory["episode_rows"])
    return [memory["reward"][end - rows : end - 1] for end, rows in zip(ends, memory["episode_rows"], strict=True)]


def nearness(episode):
    """What the camera showed after each step."""
    return np.array([stamp_of(frame) for frame in episode.observations["images/front"]])[1:]


@pytest.mark.slow
def test_pairs_are_queried_and_all_replayed_steps_are_rewarded_by_what_was_learned(plain):
    run, summary, queried = plain
    sessions = read_metrics(run / "metrics.jsonl", "preference_session")
    assert [one["session"] for one in sessions] == [1, 2]
    assert [one["pairs"] for one in sessions] == [LOOP.pairs, 2 * LOOP.pairs]
    assert queried == sum(one["queried"] for one in sessions) <= QUERIES
    assert sessions[0]["disagreement"] is None
    assert sessions[1]["disagreement"] > 1.2 * sessions[1]["disagreement_drawn"], "the most disputed pairs are taken"

    learner = learner_of(run)
    with EpisodeStore.open(run / "episodes") as store:
        demo, *online = list(store.episodes())
    assert not any(episode.reward.any() for episode in online), "what the task thinks is withheld"
    assert not len(learner["online"]["undecided"])
    shown, rewarded = [], []
    for episode, rewards in zip(online, rewards_of(learner["online"]), strict=True):
        assert len(rewards) == len(episode)
        assert 0.0 <= rewards.min() <= rewards.max() <= 0.2, "a step is worth at most 1 - gamma"
        shown.append(nearness(episode))
        rewarded.append(rewards)
    assert np.corrcoef(np.concatenate(shown), np.concatenate(rewarded))[0, 1] > 0.6
    (of_demo,) = rewards_of(learner["demos"])
    assert of_demo[-1] == 1.0, "a person called its end a success"
    assert of_demo[:-1].any()
    assert np.corrcoef(nearness(demo)[:-1], of_demo[:-1])[0, 1] > 0.5

    told = summary["preferences"]
    assert (told["sessions"], told["pairs"], told["certified"]) == (2, 2 * LOOP.pairs, False)
    assert (told["rewarded"], told["judged"]) == (EPISODES + 1, EPISODES)
    words = "\n".join(summary_lines(summary))
    assert f"rewarded by {2 * LOOP.pairs} pairs 'preference' of test/vision-1 in 2 sessions" in words
    assert "NOT SHOWN to be fit" in words or "UNFIT" in words


def children():
    """Processes of labellers that we started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            ours = int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if ours and b"preference_loop.process" in (stat.parent / "cmdline").read_bytes():
                found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
def test_killed_in_a_session_it_goes_on_with_the_same_pairs_and_the_run_stays_the_same(plain, labeller, tmp_path):
    server, config = labeller
    killed = []

    def kills(request):
        if not killed and len(server.requests) > plain[2] // 2 + 5:  # in the second session
            killed.append(True)
            os.kill(children()[0], signal.SIGKILL)
        return prefers_larger(request)

    server.answer = kills
    summary = train(config, tmp_path / "run", resume=False, deployment=SIMULATED)
    assert summary["preferences"]["starts"] == 2
    file = Path(LABELS) / "preference.sessions.json"
    assert len(pairs(plain[0] / "episodes" / file)) == 2
    assert pairs(plain[0] / "episodes" / file) == pairs(tmp_path / "run" / "episodes" / file)
    assert plain[2] <= len(server.requests) <= plain[2] + 8, "only what was under way is queried again"
    assert same(learned(tmp_path / "run"), learned(plain[0]))
    assert not children()


def pairs(file):
    """The pairs of all sessions, whenever they were recorded."""
    return [entry["pairs"] for entry in json.loads(file.read_text())]


@pytest.mark.slow
def test_a_resumed_run_is_the_same_as_one_that_was_never_stopped(plain, labeller, tmp_path):
    server, config = labeller
    resumed = tmp_path / "run"
    train(replace(config, env_steps=90), resumed, resume=False, deployment=SIMULATED)  # between the two sessions
    train(config, resumed, resume=True, deployment=SIMULATED)
    assert len(server.requests) == plain[2], "no pair is queried twice"
    first, second = (rewards_of(learner_of(run)["online"]) for run in (plain[0], resumed))
    assert len(first) == len(second) == EPISODES
    assert all(np.array_equal(one, other) for one, other in zip(first[:3], second[:3], strict=True))


@pytest.mark.slow
def test_a_run_resumed_after_its_last_session_ends_with_the_same_networks(plain, labeller, tmp_path):
    server, config = labeller
    resumed = shutil.copytree(plain[0], tmp_path / "run")
    (resumed / "checkpoint.pt.previous").replace(resumed / "checkpoint.pt")
    assert load_checkpoint(resumed / "checkpoint.pt")["env_steps"] == 30 * 2 * LOOP.episodes
    train(config, resumed, resume=True, deployment=SIMULATED)
    assert not server.requests, "no pair is queried twice"
    first, second = (rewards_of(learner_of(run)["online"]) for run in (plain[0], resumed))
    assert len(first) == len(second) == EPISODES
    assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
    assert same(learned(resumed), learned(plain[0]))


@pytest.mark.slow
def test_when_the_budget_is_spent_the_reward_learned_so_far_goes_on(labeller, tmp_path):
    server, config = labeller
    reward = replace(config.reward, budget=BudgetConfig(calls=2 * LOOP.pairs + 4))
    summary = train(replace(TWO_SESSIONS, reward=reward), tmp_path / "run", resume=False, deployment=SIMULATED)
    assert len(server.requests) == 2 * LOOP.pairs + 4
    assert "no more pairs are queried" in summary["preferences"]["ended"]
    assert summary["preferences"]["rewarded"] == 2 * LOOP.episodes + 1
    assert not len(learner_of(tmp_path / "run")["online"]["undecided"])


@pytest.mark.slow
def test_without_a_readable_answer_nothing_is_rewarded_and_the_run_says_so(labeller, tmp_path):
    server, config = labeller
    server.answer = lambda request: reply("The first one, I think.")
    run = tmp_path / "run"
    summary = train(replace(ONE_SESSION, reward=config.reward), run, resume=False, deployment=SIMULATED)
    assert "answers in a row have no value" in summary["preferences"]["ended"]
    assert summary["preferences"]["rewarded"] == 0
    memory = learner_of(run)["online"]
    assert len(memory["undecided"]) == LOOP.episodes
    assert not memory["reward"].any()
    with LabelStore(run / "episodes") as labels:
        assert not combine_orders(labels.labels("preference")).pairs


@pytest.mark.slow
def test_who_may_not_reward_is_refused_before_there_is_a_run(labeller, tmp_path):
    _, config = labeller

    def refused(error, told, **changes):
        with pytest.raises(error, match=told):
            wrong = replace(config, reward=replace(config.reward, **changes))
            train(wrong, tmp_path / "run", resume=False, deployment=SIMULATED)

    refused(UncertifiedError, "learning a reward", allow_uncalibrated=False)
    refused(ConfigError, "are of kind preference", kind="labels")
    refused(ConfigError, "label run --kind preference", path="")
    assert not (tmp_path / "run").exists()
