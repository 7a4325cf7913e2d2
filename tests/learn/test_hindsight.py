"""Hindsight: derived transitions are those of the paper, kept apart from facts, and teach what nothing else does."""

import sys
from dataclasses import replace
from pathlib import Path

import goal_world
import numpy as np
import pytest
from running import learned, one_thread, same

from robot_rl.adapters.gymnasium_environment import GymnasiumEnvironment
from robot_rl.config.components import EvaluationConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.data.replay.hindsight_memory import HindsightMemory, Relabelled
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_environment
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, DataError, EnvironmentFailedError
from robot_rl.learn.actor import Rollout
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.hindsight import make_relabeller
from robot_rl.learn.perception import Perception
from robot_rl.run.lineage.fork import fork_run
from robot_rl.run.lineage.source_run import SourceRun
from robot_rl.run.train import train

TASK = "gym:goal_world:goal_world/Point-v0"
CONFIG = TrainConfig(
    task=TASK,
    env_steps=700,
    warmup_steps=150,
    update_to_data=1,
    sac=SACConfig(hidden_sizes=(64,), learning_rate=3e-3, discount=0.9, target_rate=0.02),
    replay=ReplayConfig(batch_size=64, hindsight_goals=4),
    environment=EnvironmentConfig(reward="success"),
    evaluation=EvaluationConfig(episodes=20, curve_interval=0, video_episodes=0),
    checkpoint_interval=600,
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.fixture
def world(request):
    made = []

    def make(**settings):
        env = make_environment(TASK, WorkcellOptions(environment=EnvironmentConfig(**settings)))
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


class Keep:
    def on_start(self, episode_id, observation):
        pass

    def on_step(self, step, next_observation):
        pass

    def on_end(self, episode, result):
        self.episode = episode


def play(env, number=3):
    keep = Keep()
    rollout = Rollout(env, None, None, (0,), [keep])
    rollout.begin(11, f"episode-{number:05d}")
    rng = np.random.default_rng(number)
    while rollout.step(deterministic=True, uniform=rng) is None:
        pass
    return keep.episode


@pytest.mark.parametrize("history", [(0,), (0, 2)])
def test_each_step_is_derived_with_goals_that_were_achieved_after_it(world, history):
    env = world(reward="success")
    config = replace(CONFIG, replay=replace(CONFIG.replay, history=history))
    perception = Perception(env.observation_specs)
    relabeller, episode = make_relabeller(env, perception, config), play(env)
    rows, steps = relabeller.relabel(episode), len(episode)
    again = relabeller.relabel(episode)
    assert all(np.array_equal(one, other) for one, other in zip(rows, again, strict=True)), (
        "a resumed run draws the same"
    )
    total = len(rows.reward)
    assert steps < total < 4 * steps, "some of the goals were met before"

    # Packed: achieved_goal, desired_goal, observation, two numbers each; histories side by side.
    place = episode.observations["state/achieved_goal"]
    state, following = rows.state.reshape(total, -1, 6), rows.following.reshape(total, -1, 6)
    for n in range(total):
        t, goal = int(np.linalg.norm(place - state[n, 0, :2], axis=1).argmin()), state[n, 0, 2:4]
        assert np.linalg.norm(place[t] - goal) > goal_world.REACH, "the episode would have been over"
        assert any(np.allclose(goal, place[later]) for later in range(t + 1, steps + 1))
        for i, age in enumerate(history):
            assert np.allclose(state[n, i], [*place[max(t - age, 0)], *goal, *place[max(t - age, 0)]])
            assert np.allclose(following[n, i], [*place[max(t + 1 - age, 0)], *goal, *place[max(t + 1 - age, 0)]])
        hit = np.linalg.norm(place[t + 1] - goal) <= goal_world.REACH
        assert (rows.reward[n], rows.terminated[n]) == (float(hit), hit)
        assert np.array_equal(rows.action[n], episode.action[t])
    assert 0 < rows.reward.sum() < total
    assert len({tuple(state[n, 0, 2:4]) for n in range(3)}) > 1, "the goals of a step differ"


def test_the_rewards_are_those_that_would_be_recorded(world):
    episode = play(world(reward="success"))
    achieved, wanted = (episode.observations[f"state/{what}_goal"] for what in ("achieved", "desired"))
    far = np.full_like(achieved[1:], 0.9)
    for settings, hit, miss in (
        ({"reward": "own"}, 0.0, -1.0),
        ({"reward": "success", "reward_scale": 5.0}, 5.0, 0.0),
    ):
        env = world(**settings)
        reward, ended = env.judge_goals(achieved[1:], achieved[1:])
        assert (reward == hit).all() and (ended == (settings["reward"] == "success")).all()
        reward, ended = env.judge_goals(achieved[1:], far)
        assert (reward == miss).all() and not ended.any()
    env = world(reward="success")
    assert np.array_equal(env.judge_goals(achieved[1:], wanted[1:])[0], episode.reward), "its own goal, its own rewards"


@pytest.mark.parametrize("odd", [float("nan"), None])
@pytest.mark.parametrize("reward", ["own", "success"])
def test_a_reward_that_is_no_number_is_refused_with_the_name(odd, reward):
    class Unsure(goal_world.GoalWorld):
        def compute_reward(self, achieved, desired, info):
            return odd if np.any(achieved > 0.5) else super().compute_reward(achieved, desired, info)

    env = GymnasiumEnvironment(Unsure(), "unsure", EnvironmentConfig(max_steps=9, reward=reward))
    places = np.array([[0.0, 0.0], [0.9, 0.0]], np.float32)
    env.judge_goals(places[:1], places[:1])
    with pytest.raises(EnvironmentFailedError, match="unsure: compute_reward returned a NaN"):
        env.judge_goals(places, places)


def test_a_failure_stays_one_whatever_was_wanted(world):
    env = world(options=("falls=true",))
    rows = make_relabeller(env, Perception(env.observation_specs), CONFIG).relabel(play(env))
    assert rows.terminated.tolist() == [False] * 8 + [True] * 4


def test_another_interpreter_judges_a_whole_episode_in_one_message(world, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(goal_world.__file__).parent))
    near, far = world(reward="success"), world(reward="success", python=sys.executable)
    rng = np.random.default_rng(0)
    achieved, desired = rng.uniform(-0.1, 0.1, (2, 200, 2)).astype(np.float32)
    for mine, theirs in zip(near.judge_goals(achieved, desired), far.judge_goals(achieved, desired), strict=True):
        assert np.array_equal(mine, theirs)
    assert 0 < near.judge_goals(achieved, desired)[0].sum() < 200


def rows(count, start=0):
    tags = np.arange(start, start + count, dtype=np.float32)
    wide = np.stack([tags, tags], 1)
    return Relabelled(wide, wide[:, :1], np.zeros(count, np.float32), tags % 2 == 1, wide + 0.5)


def test_the_memory_forgets_the_oldest_and_comes_back_from_its_state():
    memory = HindsightMemory(5, 2, 1, (0.0, 1.0))
    memory.add(rows(3))
    memory.add(rows(4, start=3))
    assert len(memory) == 5
    sample = memory.gather(np.arange(5), 0.9)
    assert sample.observation[:, 0].tolist() == [2, 3, 4, 5, 6]
    assert sample.next_observation[:, 0].tolist() == [2.5, 3.5, 4.5, 5.5, 6.5]
    assert sample.discount.tolist() == pytest.approx([0.9, 0, 0.9, 0, 0.9])
    other = HindsightMemory(5, 2, 1, (0.0, 1.0))
    other.load_state_dict(memory.state_dict())
    assert all(np.array_equal(a, b) for a, b in zip(other.gather(np.arange(5), 0.9)[:5], sample[:5], strict=True))
    for wrong in (
        rows(2)._replace(reward=np.array([0, np.nan], np.float32)),
        rows(2)._replace(reward=np.array([0, 7], np.float32)),
        rows(2)._replace(action=np.zeros((2, 3), np.float32)),
        rows(6),
    ):
        with pytest.raises(DataError):
            memory.add(wrong)
        assert len(memory) == 5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sac": SACConfig(n_step=3)}, r"needs sac\.n_step=1"),
        ({"observations": "pixels"}, "needs observations=state"),
        ({"environment": EnvironmentConfig(action_repeat=2)}, r"needs environment\.action_repeat=1"),
    ],
)
def test_settings_that_prevent_it_are_named(changes, expected):
    with pytest.raises(ConfigError, match=expected):
        check_consistent(replace(CONFIG, **changes))


def test_an_environment_without_goals_is_refused_and_leaves_nothing(tmp_path):
    for config in (
        replace(CONFIG, task="gym:Pendulum-v1", environment=EnvironmentConfig()),
        replace(CONFIG, environment=EnvironmentConfig(reward="success", hidden=("achieved_goal",))),
    ):
        with pytest.raises(ConfigError, match=r"hindsight_goals=4: .* has no goals or hides them"):
            train(config, tmp_path / "run", resume=False)
        assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_with_it_is_learned_what_without_it_is_not(tmp_path):
    path = tmp_path / "with"
    with_it = train(CONFIG, path, resume=False)
    without = train(replace(CONFIG, replay=replace(CONFIG.replay, hindsight_goals=0)), tmp_path / "out", resume=False)
    assert with_it["success_rate"] >= 0.8
    assert without["success_rate"] <= 0.3

    # Facts stay facts: what was wanted and rewarded is in the store, and nothing that was derived.
    with EpisodeStore.open(path / "episodes") as store:
        episodes = list(store.episodes())
    assert sum(map(len, episodes)) == 700
    for episode in episodes[:20]:
        assert len(np.unique(episode.observations["state/desired_goal"], axis=0)) == 1
        assert bool(episode.reward.sum()) == bool(episode.facts.success)
    derived = load_checkpoint(path / "checkpoint.pt")["learner"]["hindsight"]
    assert 700 < len(derived["reward"]) < 4 * 700

    earlier = SourceRun.read(path, load_checkpoint(path / "checkpoint.pt.previous")["env_steps"])
    fork_run(earlier, CONFIG, tmp_path / "fork")
    train(CONFIG, tmp_path / "fork", resume=True)
    assert same(learned(tmp_path / "fork"), learned(path)), "a resumed run goes on to the same result"


def test_two_processes_make_the_same_derived_transitions(tmp_path):
    short = replace(CONFIG, env_steps=60, evaluation=replace(CONFIG.evaluation, episodes=1), warmup_steps=1000)
    memories = []
    for processes in (1, 2):
        path = tmp_path / str(processes)
        train(replace(short, processes=processes), path, resume=False)
        memories.append(load_checkpoint(path / "checkpoint.pt")["learner"]["hindsight"])
    assert all(np.array_equal(memories[0][name], memories[1][name]) for name in memories[0])
    assert 60 < len(memories[0]["reward"]) < 240
