"""A robot that is lost for a moment costs an episode; a run that was killed learns from all that it had recorded."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from env_contract import Delegate
from fakes import fake_workcell

from robot_rl.config.components import EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.errors import ArmStoppedError, InterruptedRunError, StaleStateError
from robot_rl.hil.remote_operator import RemoteOperator
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run import episode_retry
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.episode_retry import EpisodeRetry
from robot_rl.run.evaluation import evaluate
from robot_rl.run.train import train

CONFIG = TrainConfig(
    task="reach",
    env_steps=150,
    demonstrations=2,
    warmup_steps=20,
    update_to_data=1,
    checkpoint_interval=1000,
    sac=SACConfig(hidden_sizes=(8, 8)),
    replay=ReplayConfig(batch_size=8),
    evaluation=EvaluationConfig(episodes=2, curve_interval=0, video_episodes=0),
)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(episode_retry, "FIRST_PAUSE", 0.0)


class Broken:
    """A workcell whose robot raises an error at certain reads, counted from 0 over the whole run."""

    def __init__(self, faults):
        self.faults, self.reads = faults, 0

    def __call__(self, task, options):
        cell = fake_workcell()

        def read():
            number, self.reads = self.reads, self.reads + 1
            if number in self.faults:
                raise self.faults[number]
            return cell.io.read()

        return replace(cell, io=Delegate(cell.io, read=read))


def stale():
    return StaleStateError(1.0, 0.2)


def compare(run):
    with EpisodeStore.open(run / "episodes") as store:
        episodes = [store.read(i) for i in store.ids() if i.startswith("episode-")]
    recorded = np.concatenate([episode.action for episode in episodes])
    replay = load_checkpoint(run / "checkpoint.pt")["learner"]["online"]
    lengths = np.asarray(replay["episode_rows"])
    used = np.delete(np.asarray(replay["action"]), np.cumsum(lengths) - 1, axis=0)
    assert np.array_equal(used, recorded)
    return episodes


@pytest.mark.slow
def test_an_episode_is_lost_and_the_run_goes_on(tmp_path):
    # While demonstrating, in an episode, at the start of one, twice in a row, and while evaluating.
    faults = dict.fromkeys((5, 60, 75, 100, 101, 102, 300), stale())
    broken = Broken(faults)
    logs = train(
        CONFIG, tmp_path / "run", resume=False, deployment=Deployment(broken, repeatable=False, lost_episodes=10)
    )
    assert logs["env_steps"] == 150
    assert logs["episodes"] == 2
    episodes = compare(tmp_path / "run")
    assert any(episode.metadata.get("interrupted") for episode in episodes)
    with EpisodeStore.open(tmp_path / "run" / "episodes") as store:
        assert sum(i.startswith("demonstration-") for i in store.ids()) == 2


def test_too_many_lost_in_a_row_end_the_run(tmp_path):
    broken = Broken(dict.fromkeys(range(80, 200), stale()))
    with pytest.raises(StaleStateError):
        train(CONFIG, tmp_path / "run", resume=False, deployment=Deployment(broken, repeatable=False, lost_episodes=3))


def test_pauses_double_up_to_the_longest_and_are_said_and_end_with_a_request_to_stop(monkeypatch):
    now, said, errors = [0.0], [], [stale() for _ in range(7)]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda s: now.append(now.pop() + s))
    monkeypatch.setattr(episode_retry, "time", clock)
    monkeypatch.setattr(episode_retry, "FIRST_PAUSE", 1.0)
    retry, passed = EpisodeRetry(6, said.append), []
    for error in errors[:6]:
        before = now[0]
        retry.lost(error)
        passed.append(now[0] - before)
    assert passed == pytest.approx([1, 2, 4, 8, 16, 16])
    assert said[1].endswith("attempt 2 of 6 to go on in 2 s")
    with pytest.raises(StaleStateError):
        retry.lost(errors[6])
    before = now[0]
    EpisodeRetry(1).until(lambda: now[0] >= before + 0.3).lost(errors[0])
    assert now[0] - before == pytest.approx(0.3)


def test_a_stop_that_only_a_person_ends_ends_a_run_without_one_at_once():
    said = []
    retry = Deployment(lost_episodes=5).retry(said.append).until(lambda: False)
    retry.lost(stale())
    with pytest.raises(ArmStoppedError, match="reflex"):
        retry.lost(ArmStoppedError("the arm is stopped: reflex"))
    assert len(said) == 1, "of the one that may come back by itself"


def test_a_person_may_let_an_arm_go_on_more_often_than_it_may_be_lost():
    said = []
    retry = Deployment(lost_episodes=1, assistance=RemoteOperator()).retry(said.append).until(lambda: False)
    for _ in range(3):
        retry.lost(ArmStoppedError("the arm is stopped: reflex"))
    retry.lost(stale())
    assert said[2].endswith("the arm is stopped: reflex; a person has to let it go on")
    assert said[3].endswith("attempt 1 of 1 to go on in 0 s")


class LosesPage:
    """An operator whose page is lost in the second episode, and comes back when that is over."""

    def __init__(self, supervision):
        self._supervision, self._episodes = supervision, 0

    def on_start(self, episode_id, observation):
        self._episodes += 1

    def on_step(self, step, next_observation):
        if (self._episodes, step.index) == (2, 3):
            self._supervision.hold("console", "the page is lost")

    def on_end(self, episode, result):
        self._supervision.release("console")


def test_an_episode_that_is_cut_in_an_evaluation_does_not_count_and_is_played_again(tmp_path):
    supervision, said = Supervision(fake_workcell()), []
    with EpisodeStore.create(tmp_path / "store", {}) as store:
        watching = [StoreRecorder(store, cut_aside=True), LosesPage(supervision)]
        env = RobotEnv(supervision.workcell(None), interventions=False)
        rollout = Rollout(env, None, None, (0,), watching)
        found = evaluate(rollout, episodes=3, seed=0, retry=EpisodeRetry(0, said.append), may_start=supervision.wait)
        assert store.ids() == [f"evaluation-{number:04d}" for number in range(3)]
        assert [len(episode) for episode in store.episodes()] == [result.steps for result in found.results]
    assert [result.cut for result in found.results] == [None] * 3
    assert said == ["the episode was cut short: the page is lost; it does not count, and is played again"]
    assert list(tmp_path.glob("store/aside/*/*"))


class LosesRobot:
    """Loses the robot in the second episode."""

    episodes, lost = 0, False

    def on_start(self, episode_id, observation):
        self.episodes += 1

    def on_step(self, step, next_observation):
        if self.episodes == 2:
            self.lost = True
            raise stale()

    def on_end(self, episode, result):
        pass


def test_an_evaluation_that_is_stopped_ends_with_what_was_played():
    def played(stop):
        watch = LosesRobot()
        rollout = Rollout(RobotEnv(fake_workcell(), interventions=False), None, None, (0,), [watch])
        return len(evaluate(rollout, episodes=5, seed=0, stop=lambda: stop(watch)).results)

    assert played(lambda watch: watch.episodes == 1) == 1
    assert played(lambda watch: watch.lost) == 1, "after a stop nobody waits for the robot"
    with pytest.raises(StaleStateError):
        played(lambda watch: False)


def test_by_default_none_may_be_lost(tmp_path):
    with pytest.raises(StaleStateError):
        train(CONFIG, tmp_path / "run", resume=False, deployment=Deployment(Broken({80: stale()})))


@pytest.mark.slow
def test_a_run_that_was_killed_learns_from_what_was_recorded_after_its_checkpoint(tmp_path):
    run = tmp_path / "run"
    faults = {70: stale(), 90: stale(), 91: stale(), 130: KeyboardInterrupt()}  # the last stands for a kill
    with pytest.raises(InterruptedRunError):
        train(CONFIG, run, resume=False, deployment=Deployment(Broken(faults), repeatable=False, lost_episodes=3))
    with EpisodeStore.open(run / "episodes") as store:
        before = [i for i in store.ids() if i.startswith("episode-")]
    assert before, "nothing was recorded after the checkpoint"
    assert load_checkpoint(run / "checkpoint.pt")["env_steps"] == 0
    train(CONFIG, run, resume=True, deployment=Deployment(Broken({}), repeatable=False))
    episodes = compare(run)
    assert [episode.episode_id for episode in episodes][: len(before)] == before
    numbers = [record["episode"] for record in read_metrics(run / "metrics.jsonl", "episode")]
    assert [f"episode-{number:05d}" for number in numbers] == [episode.episode_id for episode in episodes]
    assert sum(len(episode) for episode in episodes) >= 150
