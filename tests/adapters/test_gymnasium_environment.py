"""Environments that do what they like: raise, return NaN, never end, change their spaces, kill their process."""

import os
import random
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import gymnasium
import numpy as np
import pytest

from robot_rl.adapters.dm_control_env import DmControlEnv
from robot_rl.adapters.guest import EXPERT_GROUP
from robot_rl.adapters.gymnasium_environment import GymnasiumEnvironment
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_environment, source_of
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import (
    ConfigError,
    DataError,
    EnvironmentFailedError,
    SpecError,
    StepOrderError,
    UnknownNameError,
)
from robot_rl.run.demonstrate import adopt_demonstrations, record_demonstrations

BOX = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
STILL = np.zeros(2, np.float32)


class Counter(gymnasium.Env):
    """Observes the number of steps; rewards each with 1; `odd` does what its name says at step 3."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (gymnasium declares it as a plain class attribute)
    observation_space = action_space = BOX

    def __init__(self, odd="", info=None, render_mode=None):
        self.odd, self.info, self.render_mode = odd, info or {}, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        seen = np.array([self.steps, action[0]], np.float32)
        if self.steps == 3:
            if self.odd == "raise":
                raise ZeroDivisionError("the wheel came off\nand rolled away")
            if self.odd == "nan":
                seen[1] = np.nan
            if self.odd == "shape":
                seen = np.zeros(3, np.float32)
            if self.odd == "die":
                print("a last word", file=sys.stderr, flush=True)
                os._exit(3)
        done = self.odd == "end" and self.steps == 3
        return seen, 1.0, done, False, {key: self.steps >= first for key, first in self.info.items()}

    def render(self):
        return np.full((48, 64, 3), self.steps, np.uint8)


class Mixed(Counter):
    """Its actions are of a kind that is not supported."""

    action_space = gymnasium.spaces.Tuple([BOX, gymnasium.spaces.Discrete(2)])


class Chooser(Counter):
    """Its actions are two choices; it observes both."""

    action_space = gymnasium.spaces.MultiDiscrete([2, 3], start=[0, 5])

    def step(self, action):
        if not self.action_space.contains(action):
            raise ValueError(action)
        return action.astype(np.float32) / 10, *super().step(action)[1:]


gymnasium.register("test_guest/Counter-v0", entry_point=Counter, max_episode_steps=7)
gymnasium.register("test_guest/Mixed-v0", entry_point=Mixed, max_episode_steps=7)
gymnasium.register("test_guest/Chooser-v0", entry_point=Chooser, max_episode_steps=7)


def of(env, **settings):
    return GymnasiumEnvironment(env, "counter", EnvironmentConfig(**{"max_steps": 10, **settings}))


def play(env, seed=0):
    env.start(seed, "a")
    infos = [env.advance(STILL)]
    while not infos[-1].ended:
        infos.append(env.advance(STILL))
    return infos


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ("raise", r"counter failed in step: ZeroDivisionError: the wheel came off and rolled away"),
        ("nan", r"counter: observation\[state/observation\]: has a NaN"),
        ("shape", r"counter: the observation does not fit its space at state/observation: .*\(3,\)"),
    ],
)
def test_what_it_does_wrong_is_one_line_with_its_name(odd, expected):
    env = of(Counter(odd))
    with pytest.raises((EnvironmentFailedError, SpecError), match=expected) as caught:
        play(env)
    assert "\n" not in str(caught.value)
    with pytest.raises(StepOrderError):
        env.advance(STILL)
    env.start(0, "again")
    assert env.advance(STILL).recorded.index == 0, "the next episode starts afresh"


def test_its_own_limit_counts_and_without_one_it_has_to_be_set():
    assert len(play(GymnasiumEnvironment(gymnasium.make("test_guest/Counter-v0"), "counter"))) == 7
    assert len(play(of(gymnasium.make("test_guest/Counter-v0"), max_steps=4))) == 4
    wrapped = gymnasium.wrappers.OrderEnforcing(gymnasium.wrappers.TimeLimit(Counter(), 5))
    assert len(play(GymnasiumEnvironment(wrapped, "counter"))) == 5
    with pytest.raises(ConfigError, match=r"no step limit.*environment\.max_steps"):
        GymnasiumEnvironment(Counter(), "counter")


def test_repeated_actions_add_their_rewards_and_shorten_the_episode():
    repeated = gymnasium.make("test_guest/Counter-v0")
    infos = play(GymnasiumEnvironment(repeated, "counter", EnvironmentConfig(action_repeat=3)))
    assert [info.recorded.reward for info in infos] == [3.0, 3.0, 1.0]
    assert [info.recorded.truncated for info in infos] == [False, False, True]


def test_success_is_read_from_the_info_and_ends_where_it_is_the_reward():
    own = play(of(Counter(info={"is_success": 4})))
    assert [info.success for info in own] == [False] * 3 + [True] * 7, "what was done stays done"
    assert [info.recorded.reward for info in own] == [1.0] * 10
    sparse = play(of(Counter(info={"is_success": 4}), reward="success", reward_scale=2.0))
    assert [info.recorded.reward for info in sparse] == [0.0, 0.0, 0.0, 2.0]
    assert sparse[-1].recorded.terminated
    assert len(play(of(Counter(info={"done": 4}), success="done", success_ends="always"))) == 4


def test_the_facts_follow_from_what_counts():
    assert of(Counter()).environment_spec.return_range is None
    assert not of(Counter()).environment_spec.success
    sparse = of(Counter(info={"success": 4}), reward="success").environment_spec
    assert (sparse.return_range, sparse.success) == ((0.0, 1.0), True)
    assert of(Counter(), return_range=(-3.0, 9.0)).environment_spec.return_range == (-3.0, 9.0)
    with pytest.raises(ConfigError, match=r"no entry is_success or success or succeed.*its entries are won"):
        of(Counter(info={"won": 4}), reward="success")
    with pytest.raises(ConfigError, match="no entry lost"):
        of(Counter(info={"won": 4}), success="lost")


def test_an_end_without_success_is_a_failure():
    ended = play(of(Counter("end", info={"success": 9})))[-1]
    assert (ended.recorded.terminated, ended.failure) == (True, "ended by the environment")


def expert(env):
    """An expert who counts with the observation."""
    assert env.unwrapped.observation_space == BOX
    return lambda observation: np.array([0.1 * observation[0], -1.0])


def guest(**settings):
    config = EnvironmentConfig(max_steps=40, **settings)
    return make_environment("gym:test_gymnasium_environment:test_guest/Counter-v0", WorkcellOptions(environment=config))


@pytest.mark.parametrize("python", ["", sys.executable])
def test_an_expert_demonstrates_and_takes_over_now_and_then(python, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    env = guest(python=python, expert="test_gymnasium_environment:expert", takeovers=0.2, takeover_steps=3)
    env.start(0, "a", demonstrate=True)
    steps = [env.advance(STILL).recorded for _ in range(5)]
    assert {step.source for step in steps} == {Source.SCRIPT}
    assert [step.action.tolist() for step in steps] == [pytest.approx([0.1 * t, -1.0]) for t in range(5)]
    assert not np.any([step.action_policy for step in steps])

    env.start(0, "c")
    env.begin_advice(0)
    advice, played = [], []
    for _ in range(5):
        advice.append(env.advise().tolist())
        played.append(env.advance(STILL).recorded)
    assert advice == [pytest.approx([0.1 * t, -1.0]) for t in range(5)]
    assert {step.source for step in played} == {Source.POLICY}, "it only advises"

    def sources(seed):
        env.start(seed, "b")
        infos = [env.advance(STILL)]
        while not infos[-1].ended:
            infos.append(env.advance(STILL))
        return [info.recorded.source for info in infos]

    assert {*sources(1)} == {Source.POLICY}, "nobody takes over unless it is allowed"
    env.interventions = True
    led = [sources(seed) for seed in range(10)]
    assert {source for episode in led for source in episode} == {Source.POLICY, Source.SCRIPT}
    assert sources(3) == led[3], "the seed decides who leads"
    env.close()


def test_demonstrations_with_other_rewards_are_refused_and_those_that_name_none_are_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    own, scaled = guest(expert="test_gymnasium_environment:expert"), guest(reward_scale=0.1)
    with EpisodeStore.create(tmp_path / "demos") as store:
        record_demonstrations(own, store, episodes=2, seed=0)
    with EpisodeStore.create(tmp_path / "taken") as run:
        assert adopt_demonstrations(run, tmp_path / "demos", own) == 2
    with (
        EpisodeStore.create(tmp_path / "refused") as run,
        pytest.raises(DataError, match=r"reward_scale=1 .* this run is by .*reward_scale=0.1 "),
    ):
        adopt_demonstrations(run, tmp_path / "demos", scaled)
    with EpisodeStore.open(tmp_path / "demos") as store, EpisodeStore.create(tmp_path / "imported") as other:
        for episode in store.episodes():
            facts = {name: value for name, value in episode.metadata.items() if name != "rewards"}
            other.append(replace(episode, metadata=facts))
    with EpisodeStore.create(tmp_path / "imports") as run:
        assert adopt_demonstrations(run, tmp_path / "imported", scaled) == 2


@pytest.mark.parametrize("python", ["", sys.executable])
def test_choices_are_made_one_of_all_combinations(python, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    options = WorkcellOptions(environment=EnvironmentConfig(python=python))
    env = make_environment("gym:test_gymnasium_environment:test_guest/Chooser-v0", options)
    assert (env.environment_spec.action_size, env.environment_spec.choices) == (1, 6)
    env.start(0, "a")
    infos = [env.advance(np.array([entry], np.float32)) for entry in (-1.0, -0.55, 1.0)]
    assert [info.recorded.action.tolist() for info in infos] == [[-1.0], [pytest.approx(-0.6)], [1.0]]
    seen = [(10 * info.observation["state/observation"]).round().tolist() for info in infos]
    assert seen == [[0, 5], [0, 6], [1, 7]]
    env.close()


def test_without_an_expert_nobody_demonstrates():
    with pytest.raises(StepOrderError, match=r"no operator.*environment\.expert.*--demos"):
        guest().start(0, "a", demonstrate=True)
    with pytest.raises(ConfigError, match=r"has no expert, and a scripted base needs one; set environment\.expert"):
        guest().begin_advice(0)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("gym:Pendulum-v9", {}, "no 'Pendulum-v9'; near: gym:Pendulum-v1"),
        ("gym:gymnasium:Pendulum-v9", {}, "no 'Pendulum-v9'; near: gym:gymnasium:Pendulum-v1"),
        ("gym:no_such_package:Thing-v0", {}, "needs a package that is not here: .*no_such_package"),
        (
            "gym:Pendulum-v1",
            {"options": ("gravitation=3",)},
            r"cannot be made: TypeError: .*gravitation.*gymnasium 1.*--set environment\.python",
        ),
        ("gym:Pendulum-v1", {"options": ("gravity",)}, "expected key=value"),
        (
            "gym:Pendulum-v1",
            {"expert": "nobody"},
            "unknown expert 'nobody'; valid: fetch_pick_and_place, gym_hil_pick, metaworld, or MODULE",
        ),
        ("gym:Pendulum-v1", {"expert": "/nowhere/lean.py:make"}, "cannot be imported: .*No such file"),
        ("gym:Pendulum-v1", {"shadows": False}, "has no MuJoCo scene.*leave environment.shadows on"),
        ("gym:CartPole-v1", {"discrete_gripper": True}, "choices already; leave environment.discrete_gripper off"),
        ("gym:Pendulum-v1", {"expert": "json:nothing"}, "cannot be imported"),
        ("gym:Pendulum-v1", {"expert": "json:loads"}, "expert 'json:loads' cannot be made: TypeError: the JSON object"),
        ("gym:Pendulum-v1", {"expert": "builtins:bool"}, "expert 'builtins:bool' made True; expected a function"),
        (
            "gym:test_gymnasium_environment:test_guest/Mixed-v0",
            {},
            r"actions are Tuple.*supported are a Box.*, Discrete",
        ),
        ("dm_control:cartpole/swingup", {}, r"needs a package that is not here: .*dm_control.*environment\.python"),
        ("gym:Pendulum-v1", {"python": "/nowhere/python"}, "cannot be started: No such file"),
    ],
)
def test_what_cannot_be_made_is_one_line(name, settings, expected):
    with pytest.raises((EnvironmentFailedError, ConfigError, SpecError), match=expected) as caught:
        make_environment(name, WorkcellOptions(environment=EnvironmentConfig(**settings)))
    assert "\n" not in str(caught.value)


def test_shadows_are_switched_off_in_the_scene():
    class Lit(Counter):
        model = SimpleNamespace(light_castshadow=np.ones(2, bool))

    gymnasium.register("test_guest/Lit-v0", entry_point=Lit, max_episode_steps=7)
    for shadows in (True, False):
        options = WorkcellOptions(environment=EnvironmentConfig(shadows=shadows))
        make_environment("gym:test_guest/Lit-v0", options).close()
        assert Lit.model.light_castshadow.tolist() == [shadows] * 2


def test_a_seed_also_decides_what_is_drawn_from_the_global_sources():
    class Careless(Counter):
        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.array([np.random.uniform(), random.random()], np.float32), {}

    env = of(Careless())
    drawn = [env.start(seed, "a").observation["state/observation"].tolist() for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_an_expert_that_is_registered_here_is_a_file_for_another_interpreter(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    file, _, function = source_of(EXPERT_GROUP, "gym_hil_pick").rpartition(":")
    assert (os.path.basename(file), function) == ("gym_hil.py", "make_pick")
    assert source_of(EXPERT_GROUP, "lean:make") is None
    lean = tmp_path / "lean.py"
    lean.write_text("def make(env):\n    return lambda observation: [0.25, -0.25]\n")
    env = guest(python=sys.executable, expert=f"{lean}:make")
    env.start(0, "a", demonstrate=True)
    assert env.advance(STILL).recorded.action.tolist() == [0.25, -0.25]
    env.close()


@pytest.mark.parametrize(
    ("given", "platform"), [({}, "egl"), ({"DISPLAY": ":0"}, None), ({"MUJOCO_GL": "osmesa"}, "osmesa")]
)
def test_without_a_screen_mujoco_renders_by_egl(monkeypatch, given, platform):
    for name in ("DISPLAY", "MUJOCO_GL"):
        monkeypatch.setitem(os.environ, name, "")
        monkeypatch.delitem(os.environ, name)
    for name, value in given.items():
        monkeypatch.setitem(os.environ, name, value)
    guest().close()
    assert os.environ.get("MUJOCO_GL") == platform


def test_an_unknown_family_names_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"family of environments 'gmy'.*dm_control, gym, metaworld.*'gym'"):
        make_environment("gmy:Pendulum-v1")


def test_a_process_that_ends_leaves_its_last_words(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    env = guest(python=sys.executable, options=("odd=die",))
    with pytest.raises(EnvironmentFailedError, match=r"exit code 3.*its last lines: .*a last word"):
        play(env)
    env.close()


def test_an_interpreter_without_the_packages_says_which(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(EnvironmentFailedError, match="No module named"):
        guest(python=str(bare))


def test_an_old_gymnasium_is_named_with_the_version_that_is_needed(monkeypatch):
    monkeypatch.setattr(gymnasium, "__version__", "0.21.0")
    with pytest.raises(EnvironmentFailedError, match=r"Pendulum-v1 has gymnasium 0\.21\.0 .*install 0\.26 or newer"):
        make_environment("gym:Pendulum-v1")


def test_frames_are_drawn_on_request():
    options = WorkcellOptions(
        cameras=("render",), image_size=(48, 64), environment=EnvironmentConfig(options=("odd=draw",))
    )
    env = make_environment("gym:test_gymnasium_environment:test_guest/Counter-v0", options)
    env.start(0, "a")
    frames = [env.advance(STILL).observation["images/render"] for _ in range(2)]
    assert [(frame.shape, frame.dtype) for frame in frames] == [((48, 64, 3), np.uint8)] * 2
    assert [int(frame[24, 32, 0]) for frame in frames] == [1, 2]
    assert make_environment("gym:test_gymnasium_environment:test_guest/Counter-v0").environment_spec.cameras == (
        "render",
    )


class TimeStep(NamedTuple):
    observation: dict
    reward: float | None
    discount: float | None
    ended: bool

    def last(self):
        return self.ended


class Pole:
    """An environment in the terms of dm_env: falls over after 3 steps, or runs out of time after 5."""

    _step_limit = 5.0

    def __init__(self, falls):
        self.falls, self.task = falls, SimpleNamespace(random=np.random.RandomState(0))
        self.physics = SimpleNamespace(render=lambda height, width, camera_id: np.full((height, width, 3), 7, np.uint8))

    def control_timestep(self):
        return 0.02

    def action_spec(self):
        return SimpleNamespace(minimum=np.array([-2.0]), maximum=np.array([2.0]), shape=(1,))

    def observation_spec(self):
        return {"angle": SimpleNamespace(shape=()), "velocity": SimpleNamespace(shape=(2,))}

    def observe(self):
        return {"angle": np.float64(self.angle), "velocity": np.zeros(2)}

    def reset(self):
        self.angle, self.steps = self.task.random.uniform(), 0
        return TimeStep(self.observe(), None, None, False)

    def step(self, action):
        self.steps, self.angle = self.steps + 1, self.angle + action[0]
        fallen = self.falls and self.steps == 3
        return TimeStep(self.observe(), 1.0, 0.0 if fallen else 1.0, fallen or self.steps == 5)

    def close(self):
        pass


def test_an_environment_of_dm_control_in_the_terms_of_gymnasium():
    env = GymnasiumEnvironment(DmControlEnv(Pole(falls=False), frames=True), "pole", cameras=("render",))
    assert (env.environment_spec.max_steps, env.environment_spec.control_period) == (5, 0.02)
    assert {key: spec.shape for key, spec in env.observation_specs.items() if "state" in key} == {
        "state/angle": (1,),
        "state/velocity": (2,),
    }
    first = [env.start(seed, "a").observation["state/angle"][0] for seed in (1, 2, 1)]
    assert first[0] == first[2] != first[1]
    infos = [env.advance(np.array([0.5], np.float32)) for _ in range(5)]
    assert infos[0].observation["state/angle"][0] == pytest.approx(first[0] + 1.0)
    assert infos[0].observation["images/render"].max() == 7
    assert (infos[-1].recorded.truncated, infos[-1].recorded.terminated) == (True, False)

    fallen = GymnasiumEnvironment(DmControlEnv(Pole(falls=True), frames=False), "pole")
    fallen.start(0, "b")
    ends = [fallen.advance(np.zeros(1, np.float32)).recorded for _ in range(3)]
    assert [end.terminated for end in ends] == [False, False, True]
