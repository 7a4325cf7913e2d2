"""The form in which LeRobot loads environments: what it asks of them, and the names and the order of an export."""

import importlib.util
import re

import numpy as np
import pytest
from documents import ROOT
from gymnasium.utils.env_checker import check_env

from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.gym.lerobot_env import LeRobotEnv, make_vector
from robot_rl.gym.task_env import TaskEnv


def test_the_documented_file_makes_what_lerobot_expects(tmp_path):
    text = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n# env\.py\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "env.py"
    file.write_text(code)
    spec = importlib.util.spec_from_file_location("hub_env", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    suites = module.make_env(n_envs=2, use_async_envs=False)
    ((suite, tasks),) = suites.items()
    envs = tasks[0]
    assert (suite, list(tasks), envs.num_envs) == ("peg_insert", [0], 2)
    seen, _ = envs.reset(seed=[3, 4])
    assert {camera: (picture.shape, picture.dtype) for camera, picture in seen["pixels"].items()} == {
        camera: ((2, 128, 128, 3), np.uint8) for camera in ("front", "wrist")
    }
    assert (seen["agent_pos"].shape[0], seen["agent_pos"].dtype) == (2, np.float32)
    assert envs.call("_max_episode_steps") == (100, 100)
    assert all(isinstance(text, str) and text for text in envs.call("task_description"))
    assert envs.unwrapped.metadata["render_fps"] == 10
    info = envs.step(np.zeros(envs.action_space.shape, np.float32))[-1]
    assert info["is_success"].tolist() == [False, False]
    assert envs.call("render")[0].shape == (240, 320, 3)
    envs.close()


def test_the_state_is_in_the_order_of_an_export():
    ours, plain = LeRobotEnv("reach", obs="state", render_mode=None), TaskEnv("reach")
    check_env(ours, skip_render_check=True)
    seen, parts = ours.reset(seed=5)[0], plain.reset(seed=5)[0]
    assert "pixels" not in seen
    expected = np.concatenate([parts[key] for key in sorted(parts)])
    np.testing.assert_array_equal(seen["agent_pos"], expected)
    ours.close()
    plain.close()


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigError, match="n_envs=0: expected at least 1"):
        make_vector("reach", 0)
    with pytest.raises(UnknownNameError, match="did you mean 'reach'"):
        make_vector("reech")
