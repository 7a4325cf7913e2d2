"""Our tasks as gymnasium environments: spaces, seeds, ends, pictures, and vectors of them in processes of their own."""

import pickle
import subprocess
import sys
import warnings
from copy import deepcopy

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import robot_rl.gym  # noqa: F401  (registers)
from robot_rl.env.registry import make_workcell, task_names
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import ConfigError, UnknownNameError

OURS = ("cube_lift", "handover", "peg_hard", "peg_insert", "reach", "relocate", "relocate_back", "relocate_forward")


@pytest.fixture
def made():
    """Makes environments and closes them."""
    opened = []

    def make(task="reach", **settings):
        opened.append(gymnasium.make(f"robot_rl/{task}-v0", **settings))
        return opened[-1]

    yield make
    for env in opened:
        env.close()


def test_every_task_is_registered():
    assert {f"robot_rl/{name}-v0" for name in task_names()} <= set(gymnasium.registry)
    assert set(OURS) <= set(task_names())


@pytest.mark.parametrize("obs", ["state", "pixels"])
@pytest.mark.parametrize("task", OURS)
def test_gymnasium_finds_nothing_wrong(made, task, obs):
    env = made(task, obs=obs, image_size=64, render_mode="rgb_array") if obs == "pixels" else made(task, obs=obs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
        env.reset(seed=0)  # through the passive checker, which `make` puts around it
        env.step(env.action_space.sample())
        assert (env.render() is not None) == (obs == "pixels")
    unbounded = ("maximum value is infinity", "minimum value is -infinity")  # positions and forces have no bound
    assert not [w for w in caught if not any(text in str(w.message) for text in unbounded)]


def test_the_same_seed_gives_the_same_episode_and_that_of_robot_env(made):
    def play(env):
        seen, _ = env.reset(seed=7)
        actions = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32)
        return [seen["state/hole_estimate"], *(env.step(action)[0]["state/tcp_pose"] for action in actions)]

    first, again = play(made("peg_insert")), play(made("peg_insert"))
    ours = play(RobotEnv(make_workcell("peg_insert")))
    for one, two, three in zip(first, again, ours, strict=True):
        assert (one == two).all()
        assert (one == three).all()


def test_success_is_in_the_info_and_ends_the_episode(made):
    env = made("reach")
    seen, info = env.reset(seed=1)
    rewards, terminated, truncated = [], False, False
    while not (terminated or truncated):
        motion = np.clip(seen["state/target"] / 0.01, -1, 1).astype(np.float32)
        seen, reward, terminated, truncated, info = env.step(motion)
        rewards.append(reward)
    assert (terminated, truncated, info["is_success"]) == (True, False, True)
    assert sum(rewards) == rewards[-1] == 1.0
    assert all(isinstance(value, bool | float) for value in info.values())
    assert info["distance"] < 0.008


def test_the_step_limit_truncates(made):
    env = made("reach")
    env.reset(seed=1)
    still = np.zeros(3, np.float32)
    for _ in range(env.unwrapped.max_episode_steps - 1):
        assert env.step(still)[2:4] == (False, False)
    assert env.step(still)[2:4] == (False, True)


def test_a_rendered_picture_shows_the_moment(made):
    env = made("reach", render_mode="rgb_array", render_camera="wrist")
    env.reset(seed=1)
    before = env.render()
    assert (before.shape, before.dtype) == ((240, 320, 3), np.uint8)
    assert (env.render() == before).all()
    for _ in range(3):
        env.step(np.ones(3, np.float32))
    assert (env.render() != before).any()
    assert env.metadata["render_fps"] == 10


@pytest.mark.parametrize(
    ("settings", "error", "expected"),
    [
        ({"obs": "image"}, ConfigError, "obs='image': valid are state and pixels"),
        ({"render_mode": "ansi"}, ConfigError, "render_mode='ansi': valid are None and"),
        ({"obs": "pixels", "cameras": ["left"]}, UnknownNameError, r"left.*front"),
        ({"cameras": ["front"]}, ConfigError, "obs='pixels'"),
        ({"render_camera": "left"}, UnknownNameError, "left"),
        ({"obs": "pixels", "image_size": 0}, ConfigError, "image_size=0: expected"),
        (
            {"obs": "pixels", "image_size": 10**6},
            ConfigError,
            "image_size=1000000: expected a number of pixels, 1 to 4096",
        ),
        ({"obs": "pixels", "cameras": "front"}, ConfigError, r"cameras='front': expected a list, \['front'\]"),
        ({"obs": "pixels", "cameras": []}, ConfigError, "observes at least one camera; name one of front, wrist"),
        ({"settings": "simulation.command_delay=1"}, ConfigError, "settings=.*expected a list"),
        ({"settings": [1]}, ConfigError, "setting 1: expected key=value"),
        ({"settings": ["sac.discount=0.5"]}, ConfigError, "of one of the sections simulation"),
        ({"settings": ["simulation.command_dela=1"]}, ConfigError, "did you mean 'simulation.command_delay'"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(settings, error, expected):
    with pytest.raises(error, match=expected) as caught:
        gymnasium.make("robot_rl/reach-v0", disable_env_checker=True, **settings)
    assert "\n" not in str(caught.value)


def test_a_copy_is_a_new_environment_of_the_same_arguments(made):
    env = made("reach", obs="pixels", cameras=["wrist"], image_size=np.int64(32), render_mode="rgb_array")
    for copy in (pickle.loads(pickle.dumps(env)), deepcopy(env)):
        assert copy.observation_space == env.observation_space
        assert copy.observation_space["images/wrist"].shape == (32, 32, 3)
        assert copy.render_mode == "rgb_array"
        copy.close()


def test_settings_of_the_simulation_count(made):
    def moved(**settings):
        env = made("reach", **settings)
        env.reset(seed=1)
        return env.step(np.ones(3, np.float32))[0]["state/tcp_pose"][:3]

    assert np.linalg.norm(moved(settings=["simulation.command_delay=0.08"])) < 0.5 * np.linalg.norm(moved())


VECTOR = """
import gymnasium, numpy as np, robot_rl.gym
if __name__ == "__main__":
    if {rendered}:
        one = gymnasium.make("robot_rl/reach-v0", obs="pixels"); one.reset(seed=0); one.close()
    made = gymnasium.make_vec("robot_rl/reach-v0", num_envs=2, vectorization_mode="{mode}", obs="{obs}",
        render_mode="rgb_array", vector_kwargs={keywords})
    seen, _ = made.reset(seed=[3, 4])
    seen, reward, *_, info = made.step(np.ones((2, 3), np.float32))
    print(seen["state/tcp_pose"].sum(), info["is_success"].tolist(), np.shape(made.render()))
    made.close()
"""


def run_vector(mode, obs, *, rendered=False, keywords=None, tmp_path):
    file = tmp_path / "vector.py"  # a file, as processes that are started anew import it
    file.write_text(VECTOR.format(mode=mode, obs=obs, rendered=rendered, keywords=keywords or {}))
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)


def test_vectors_in_this_process_and_in_others_play_the_same(tmp_path):
    sync = run_vector("sync", "pixels", tmp_path=tmp_path)
    assert sync.returncode == 0, sync.stderr
    assert sync.stdout.endswith("[False, False] (2, 240, 320, 3)\n")
    others = run_vector("async", "pixels", tmp_path=tmp_path)  # hung, when making an environment opened a context
    assert others.stdout == sync.stdout, others.stderr


def test_a_process_forked_after_rendering_is_refused_instead_of_hanging(tmp_path):
    forked = run_vector("async", "pixels", rendered=True, tmp_path=tmp_path)
    assert forked.returncode == 1
    assert 'vector_kwargs={"context": "spawn"}' in forked.stderr
    spawned = run_vector("async", "pixels", rendered=True, keywords={"context": "spawn"}, tmp_path=tmp_path)
    assert spawned.returncode == 0, spawned.stderr


@pytest.mark.slow
def test_sac_of_stable_baselines3_learns_on_it(made):
    sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed; it brings pandas")
    env = made("peg_insert")
    learner = sb3.SAC(
        "MultiInputPolicy", env, learning_starts=100, buffer_size=2_000, batch_size=64, seed=0, device="cpu"
    )
    before = [parameter.detach().clone() for parameter in learner.actor.parameters()]
    learner.learn(1_000)
    assert learner.num_timesteps == 1_000
    assert any((old != new).any() for old, new in zip(before, learner.actor.parameters(), strict=True))
    action, _ = learner.predict(env.reset(seed=5)[0], deterministic=True)
    assert env.action_space.contains(action)
