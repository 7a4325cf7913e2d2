"""Environments that return what gymnasium does not want of them: one line says what it was; nothing is guessed."""

import logging
import math
import sys

import gymnasium
import numpy as np
import pytest

from robot_rl.adapters.gymnasium_environment import GymnasiumEnvironment
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.env.registry import make_environment
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, EnvironmentFailedError, RobotRLError, SpecError

BOX = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)


class Odd(gymnasium.Env):
    """Its second step returns what it was given, and its picture and its `close` are as they were given."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (gymnasium declares it as a plain class attribute)
    observation_space = action_space = BOX
    render_mode = "rgb_array"

    def __init__(self, reward=1.0, info=None, picture=None, act=None, old=False):
        self.reward, self.info, self.picture, self.act, self.old = (
            reward,
            {} if info is None else info,
            picture,
            act,
            old,
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return BOX.low if self.old else (BOX.low, {})

    def step(self, action):
        self.steps += 1
        if self.steps < 2:
            return BOX.low, 0.0, False, False, {"is_success": False}
        if self.act is not None:
            self.act()
        return BOX.low, self.reward, False, False, self.info

    def render(self):
        return self.picture

    def close(self):
        raise OSError("the window\nis gone")


def play(env, cameras=(), **settings):
    played = GymnasiumEnvironment(env, "odd", EnvironmentConfig(max_steps=3, **settings), cameras=cameras)
    played.start(0, "a")
    return [played.advance(np.zeros(2, np.float32)) for _ in range(2)][-1]


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"reward": "much"}, "failed in step: its reward is 'much'; expected one number"),
        ({"reward": [1.0, 2.0]}, r"failed in step: its reward is \[1.0, 2.0\]; expected one number"),
        ({"reward": math.nan}, "odd: its reward is nan; expected one finite number"),
        ({"reward": 1e300}, r"odd: its reward is 1e\+300; expected one finite number, of size 3e\+38 at most"),
        ({"info": [1]}, r"failed in step: its info is \[1\]; expected a dict"),
        ({"info": {"is_success": "False"}}, r"info\['is_success'\] is 'False'; expected True or False"),
        ({"info": {"is_success": math.nan}}, r"info\['is_success'\] is nan; expected True or False"),
        ({"info": {"is_success": {"a": False}}}, r"info\['is_success'\] is \{'a': False\}; expected True or False"),
        ({"act": sys.exit}, "odd failed in step: SystemExit"),
        ({"old": True}, "its reset returned ndarray; expected two"),
    ],
)
def test_what_it_returns_is_refused_by_name(odd, expected):
    with pytest.raises((EnvironmentFailedError, SpecError), match=expected) as caught:
        play(Odd(**odd))
    assert "\n" not in str(caught.value)


def test_an_environment_without_spaces_is_refused_by_name(monkeypatch):
    for space in ("observation_space", "action_space"):
        with monkeypatch.context() as patch:
            patch.delattr(Odd, space)
            with pytest.raises(EnvironmentFailedError, match=f"odd failed in its spaces: AttributeError: .*{space}"):
                play(Odd())


def test_an_environment_that_declares_no_way_of_drawing_is_played(monkeypatch):
    monkeypatch.setattr(Odd, "metadata", {"render_modes": None})
    play(Odd(info={"is_success": False}))


@pytest.mark.parametrize("nothing", [None, False, 0.0, np.zeros(2), [False]])
def test_what_is_no_success_is_none(nothing):
    assert not play(Odd(info={"is_success": nothing})).success
    assert play(Odd(info={"is_success": np.array([0.0, 1.0])})).success


def test_a_reward_that_does_not_count_may_be_unknown():
    assert play(Odd(reward=math.nan, info={"is_success": True}), reward="success").recorded.reward == 1.0


@pytest.mark.parametrize(
    "picture", [None, np.zeros((48, 64, 3)), [np.zeros((48, 64, 3), np.uint8)], np.zeros((0, 9, 3), "u1")]
)
def test_what_it_draws_is_a_picture(picture):
    with pytest.raises(RobotRLError, match=r"odd.*(it drew|it draws no picture).*uint8"):
        play(Odd(picture=picture), cameras=("render",))


def test_an_error_while_it_closes_is_told_and_spoils_nothing(caplog):
    with caplog.at_level(logging.WARNING):
        GymnasiumEnvironment(Odd(), "odd", EnvironmentConfig(max_steps=3)).close()
    assert "failed in close: OSError: the window is gone" in caplog.text


def test_a_module_that_exits_python_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "exits_at_once.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EnvironmentFailedError, match=r"gym:exits_at_once:A-v0 cannot be made: SystemExit: 3"):
        make_environment("gym:exits_at_once:A-v0", WorkcellOptions())


@pytest.mark.parametrize("rate", [-30, "fast", 1e-9, 1e9])
def test_a_rate_that_cannot_be_is_refused_and_may_be_set_instead(rate):
    env = Odd()
    env.metadata = {"render_modes": [], "render_fps": rate}
    with pytest.raises(ConfigError, match=r"s from step to step, .*; set environment\.control_period so that it is"):
        GymnasiumEnvironment(env, "odd", EnvironmentConfig(max_steps=3))
    played = GymnasiumEnvironment(env, "odd", EnvironmentConfig(max_steps=3, control_period=0.02))
    assert played.environment_spec.control_period == 0.02
    with pytest.raises(ConfigError, match=r"1e\+10 s from step to step"):
        GymnasiumEnvironment(env, "odd", EnvironmentConfig(max_steps=3, control_period=1e10))
