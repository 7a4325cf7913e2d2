"""Training that is rewarded by labels: a labeller in a process of its own, asking a server that can see the truth."""

import contextlib
import json
import os
import signal
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes import SPEC, FakeRobot, FakeTask, fake_workcell
from model_server import ModelServer, reply, says_success, stamp_of, stamped
from running import learned, one_thread, robot_rl, same
from scenes import stamped_store

from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.config.components import EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.reward import BudgetConfig, RewardConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError, UncertifiedError, UnknownNameError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.reward.label_store import LabelStore
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.train import train

CONFIG = TrainConfig(
    task="reach",
    demonstrations=1,
    env_steps=140,  # four episodes of 30 steps, and one that is cut
    warmup_steps=20,
    update_to_data=1,
    checkpoint_interval=1000,
    sac=SACConfig(hidden_sizes=(8, 8)),
    replay=ReplayConfig(batch_size=8),
    evaluation=EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0),
)
EPISODES = 5


class SeenRobot(FakeRobot):
    """Its camera shows a number that is even while the task is done, and another one each time."""

    def __init__(self):
        super().__init__()
        self.task, self.looks = FakeTask(self, replace(SPEC, cameras=("front",))), 0

    def read(self):
        state, self.looks = super().read(), self.looks + 1
        shown = 2 * (self.looks % 2048) + (not self.task.evaluate(state).success)
        return replace(state, images={"front": stamped(shown)})


class MovingClock:
    """Goes on by itself, so that nobody may wait for labels."""

    def __init__(self, clock):
        self._clock = clock
        self.sleep_until = clock.sleep_until

    def now(self):
        self._clock.sleep_until(self._clock.now() + 1)
        return self._clock.now()


def seen_workcell(task, options, *, moving=False):
    robot = SeenRobot()
    cell = fake_workcell()
    clock = MovingClock(robot.clock) if moving else robot.clock
    operator = replace(cell.operator, task=robot.task)
    return replace(cell, io=robot, clock=clock, task=robot.task, operator=operator, playback=object())


SIMULATED = Deployment(seen_workcell, can_film=False)
MOVING = Deployment(lambda task, options: seen_workcell(task, options, moving=True), can_film=False)


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """A server, and a store on which it was tried."""
    with ModelServer(says_success) as server:
        path = stamped_store(tmp_path_factory.mktemp("labelled") / "tried", 2)
        flags = ("--set", "task=move the point to the goal", "--set", "frames.count=2")
        done = robot_rl("label", "run", path, "--url", server.url, *flags, "--set", "endpoint.concurrency=1")
        assert done.returncode == 0, done.stderr
        yield server, path


@pytest.fixture
def labeller(tried):
    """The server, which can be set to answer otherwise, and a configuration that is rewarded by what it says."""
    server, path = tried
    server.answer = says_success
    server.requests.clear()
    return server, replace(CONFIG, reward=RewardConfig("labels", str(path), allow_uncalibrated=True))


@pytest.fixture(scope="module")
def plain(tried, tmp_path_factory):
    """A run in which nothing happens to the labeller: its directory, its summary, and how often was asked."""
    server, path = tried
    server.requests.clear()
    run = tmp_path_factory.mktemp("plain") / "run"
    config = replace(CONFIG, reward=RewardConfig("labels", str(path), allow_uncalibrated=True))
    return run, train(config, run, resume=False, deployment=SIMULATED), len(server.requests)


def online(path):
    with EpisodeStore.open(path / "episodes") as store:
        return [one for one in store.episodes() if not one.metadata["demonstration"]]


def replayed(path):
    return load_checkpoint(path / "checkpoint.pt")["learner"]["online"]


def last_rows(memory):
    return np.cumsum(memory["episode_rows"]) - 2


def labels(path):
    with LabelStore(path / "episodes") as store:
        return list(store.labels("success"))


@pytest.mark.slow
def test_a_training_keeps_the_prompt_of_its_labels_where_there_is_a_newer_one(tmp_path):
    path = stamped_store(tmp_path / "tried", 2)
    with ModelServer(says_success) as server:
        flags = ("--set", "task=move the point to the goal", "--set", "frames.count=2", "--set", "prompt_version=1")
        done = robot_rl("label", "run", path, "--url", server.url, *flags)
        assert done.returncode == 0, done.stderr
        with sqlite3.connect(next(path.rglob("labels.sqlite"))) as known:  # as an older revision wrote it
            known.execute("UPDATE labeller SET settings = json_remove(settings, '$.prompt_version')")
        known.close()
        config = replace(CONFIG, env_steps=40, reward=RewardConfig("labels", str(path), allow_uncalibrated=True))
        train(config, tmp_path / "run", resume=False, deployment=SIMULATED)
        summary = train(replace(config, env_steps=70), tmp_path / "run", resume=True, deployment=SIMULATED)
    assert not summary["labels"]["ended"]
    assert summary["labels"]["queried"] > 0
    assert not any("Writing in the images" in request.words for request in server.requests)


@pytest.mark.slow
def test_labels_say_what_episodes_were_worth_and_nobody_else_does(plain):
    run, summary, asked = plain
    episodes, records = online(run), read_metrics(run / "metrics.jsonl", "label")
    assert len(episodes) == len(records) == asked == EPISODES
    for episode, record in zip(episodes, records, strict=True):
        assert (episode.metadata["success"], episode.reward_source) == (None, "label")
        assert not episode.reward.any()  # what the task thinks is withheld
        assert record["episode_id"] == episode.episode_id
        assert record["success"] is record["truth"] is episode.metadata["task_success"]
        assert record["lag_s"] >= 0
        assert record["queried"]
    succeeded = [record["success"] for record in records]
    assert 0 < sum(succeeded) < EPISODES
    memory = replayed(run)
    assert memory["reward"][last_rows(memory)].tolist() == succeeded
    assert memory["terminated"][last_rows(memory)].tolist() == succeeded
    told = summary["labels"]
    assert (told["certified"], told["labelled"], told["judged"], told["hack_gap"]) == (False, EPISODES, EPISODES, 0)
    assert (told["queried"], told["cache_hits"]) == (EPISODES, 0)
    assert told["labels_per_s"] > 0
    words = "\n".join(summary_lines(summary))
    verdict = {"unfit": "UNFIT as", "not shown": "NOT SHOWN to be fit as"}[told["fitness"]]
    assert f"{EPISODES} by queries, " in words
    assert f"rewarded by {EPISODES} labels 'success' of test/vision-1, lag " in words
    assert f"{EPISODES} of them compared with the truth: hack gap +0.0 points, 0 alarms\nlabels {verdict}" in words
    assert "demonstration-0000" not in str([label.subject for label in labels(run)])


@pytest.mark.slow
def test_episodes_to_be_labelled_last_as_long_as_is_set(labeller, tmp_path):
    _, config = labeller
    short = replace(config, env_steps=40, reward=replace(config.reward, episode_steps=8))
    summary = train(short, tmp_path / "run", resume=False, deployment=SIMULATED)
    episodes = online(tmp_path / "run")
    assert [len(episode) for episode in episodes] == [8] * 5
    assert all(episode.truncated[-1] and not episode.terminated[-1] for episode in episodes)
    assert summary["labels"]["labelled"] == 5


@pytest.mark.slow
def test_a_success_counts_from_when_it_was_one(labeller, tmp_path):
    server, config = labeller
    run = tmp_path / "run"
    config = replace(config, reward=replace(config.reward, find_onset=True))
    summary = train(config, run, resume=False, deployment=SIMULATED)
    records, memory = read_metrics(run / "metrics.jsonl", "label"), replayed(run)
    ends, starts = last_rows(memory) + 1, np.append(0, np.cumsum(memory["episode_rows"])[:-1])
    for episode, record, first, end in zip(online(run), records, starts, ends, strict=True):
        if not record["success"]:
            assert record["since"] is None
            continue
        shown = [stamp_of(frame) for frame in episode.observations["images/front"]]
        done = np.array([number % 2 == 0 for number in shown])
        assert done[record["since"]]
        assert not done[record["since"] - 1], "it had been one before"
        reward = np.arange(len(episode)) >= record["since"] - 1
        assert memory["reward"][first:end].tolist() == reward.tolist()
        assert memory["terminated"][first:end].tolist() == reward.tolist()
    assert len(server.requests) > EPISODES
    assert summary["labels"]["labelled"] == EPISODES
    with LabelStore(run / "episodes") as store:
        assert len(list(store.labels("success"))) == EPISODES, "labels of beginnings are kept apart"


def children():
    """Processes of labellers that we started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            ours = int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if ours and b"labels.process" in (stat.parent / "cmdline").read_bytes():
                found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
def test_killed_it_is_started_again_loses_nothing_asks_nothing_twice_and_the_run_stays_the_same(
    plain, labeller, tmp_path
):
    server, config = labeller
    killed = []

    def kills(request):
        if not killed and len(server.requests) > 2:
            killed.append(request.stamps[-1])
            os.kill(children()[0], signal.SIGKILL)
        return says_success(request)

    server.answer = kills
    summary = train(config, tmp_path / "run", resume=False, deployment=SIMULATED)
    asked = [request.stamps[-1] for request in server.requests]
    assert summary["labels"]["starts"] == 2
    assert len(labels(tmp_path / "run")) == EPISODES
    assert sorted(asked) == sorted([*set(asked), *killed])  # only what was on its way is asked again
    assert same(learned(tmp_path / "run"), learned(plain[0]))
    assert not children()


@pytest.mark.slow
def test_a_training_in_real_time_never_waits_and_what_comes_late_is_learned_when_it_goes_on(labeller, tmp_path):
    server, config = labeller
    free = threading.Event()

    def holds(request):
        free.wait(60)
        return says_success(request)

    server.answer = holds
    summary = train(config, tmp_path / "run", resume=False, deployment=MOVING)
    assert (summary["env_steps"], summary["labels"]["labelled"]) == (140, 0)
    assert len(replayed(tmp_path / "run")["undecided"]) == EPISODES
    free.set()
    longer = replace(config, env_steps=170)
    told = train(longer, tmp_path / "run", resume=True, deployment=SIMULATED)["labels"]  # waits for the newest one
    assert told["queried"] + told["cache_hits"] == told["labelled"] == EPISODES + 1
    memory = replayed(tmp_path / "run")
    assert not len(memory["undecided"])
    truth = [episode.metadata["task_success"] for episode in online(tmp_path / "run")]
    assert memory["terminated"][last_rows(memory)].tolist() == truth


@pytest.mark.slow
def test_what_cannot_be_read_or_paid_is_no_reward(labeller, tmp_path):
    server, config = labeller
    server.answer = lambda request: reply("It went well, I think.")
    reward = replace(config.reward, budget=BudgetConfig(calls=2))
    summary = train(replace(config, reward=reward), tmp_path / "run", resume=False, deployment=SIMULATED)
    assert (len(server.requests), summary["labels"]["unparsable"]) == (2, 2)
    assert "calls: 2 of 2 used" in summary["labels"]["ended"]
    memory = replayed(tmp_path / "run")
    assert len(memory["undecided"]) == EPISODES
    assert not memory["reward"].any()


@pytest.mark.slow
def test_a_labeller_that_is_pleased_by_failures_raises_an_alarm(labeller, tmp_path):
    server, config = labeller
    server.answer = lambda request: reply(json.dumps({"seen": "", "verdict": "success", "confidence": 95}))
    alone = replace(config, env_steps=6 * 30, intervention=replace(config.intervention, enabled=False))
    summary = train(alone, tmp_path / "run", resume=False, deployment=SIMULATED)
    assert summary["labels"]["alarms"] == 1
    assert summary["labels"]["hack_gap"] > 0.5
    assert read_metrics(tmp_path / "run" / "metrics.jsonl", "label")[-1]["alarms"] == 1


@pytest.mark.slow
def test_labels_without_a_passed_gate_or_by_another_labeller_are_refused_before_there_is_a_run(labeller, tmp_path):
    server, config = labeller

    def refused(error, told, **changes):
        with pytest.raises(error, match=told):
            wrong = replace(config, reward=replace(config.reward, **changes))
            train(wrong, tmp_path / "run", resume=False, deployment=SIMULATED)

    gate = r"calibrated.*robot-rl label calibrate.*reward\.allow_uncalibrated"
    refused(UncertifiedError, gate, allow_uncalibrated=False)
    refused(ConfigError, "needs reward.path", path="")
    refused(DataError, "neither an episode store", path=str(tmp_path))
    refused(UnknownNameError, "unknown labels 'progress'; valid: success", labels="progress")
    server.models = ["test/vision-2"]
    refused(ConfigError, "not the one that gave labels 'success': another model")
    server.close()
    refused(ConfigError, "the labeller cannot start: ")
    assert not (tmp_path / "run").exists()
    assert not children()
