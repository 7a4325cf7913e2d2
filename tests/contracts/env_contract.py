"""What `RobotEnv` has to do over every workcell. Subclass `EnvContract`, give it a `cell` fixture, and run it.

class TestMyTask(EnvContract):
    @pytest.fixture
    def make_cell(self): return lambda: ...  # a new workcell each time
"""

import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from robot_rl.data.schema import EpisodeBuilder, Source
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import ActionError, RobotRLError, StepOrderError


class Delegate:
    """Another object with some attributes replaced."""

    def __init__(self, other, **changes):
        self._other = other
        self.__dict__ |= changes

    def __getattr__(self, name):
        return getattr(self._other, name)


class WithoutInfo(RobotEnv):
    """`info` holds times, which differ between two episodes, and gymnasium wants them equal."""

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed, options=options)
        return observation, {}

    def step(self, action):
        *values, _ = super().step(action)
        return (*values, {})


def idle(env):
    return np.zeros(env.action_space.shape, np.float32)


def play(env, actions, *, seed=0, until=lambda rows: False, **options):
    """First observation, and the five values of every step until the episode, the actions or what is wanted end it."""
    observation, _ = env.reset(seed=seed, options=options)
    rows = []
    for action in actions:
        rows.append(env.step(action))
        if rows[-1][2] or rows[-1][3] or until(rows):
            break
    return observation, rows


def sources(rows):
    return [row[4]["step"].recorded.source for row in rows]


def handed_back(rows):
    """Whether the operator has led and the policy acts again."""
    return [Source.POLICY] == sources(rows[-1:]) != sources(rows[-2:-1]) and len(rows) > 1


def limited(cell, steps):
    """The same workcell, whose episodes end after so many steps."""
    return replace(cell, task=Delegate(cell.task, spec=replace(cell.task.spec, max_steps=steps)))


def until_the_end(env):
    return [idle(env)] * env.spec_task.max_steps


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


class EnvContract:
    """The tests."""

    @pytest.fixture
    def env(self, make_cell):
        with_interventions = RobotEnv(make_cell(), interventions=True)
        yield with_interventions
        with_interventions.close()

    @pytest.fixture
    def alone(self, make_cell):
        unassisted = RobotEnv(make_cell())
        yield unassisted
        unassisted.close()

    def test_gymnasium_finds_nothing_to_complain_about(self, make_cell):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Physical quantities have no natural bounds, and the environment is used without `gymnasium.make`.
            for harmless in (".*Box observation space (minimum|maximum) value.*", ".*not having a spec.*"):
                warnings.filterwarnings("ignore", message=harmless)
            check_env(WithoutInfo(make_cell()), skip_render_check=True)

    def test_observations_lie_in_their_space_and_are_chained(self, env):
        rng = np.random.default_rng(0)
        observation, _ = env.reset(seed=1)
        for _ in range(20):
            assert env.observation_space.contains(observation)
            after, reward, terminated, truncated, info = env.step(rng.uniform(-1, 1, env.action_space.shape))
            assert same(info["step"].recorded.observation, observation)
            assert isinstance(reward, float)
            assert type(terminated) is type(truncated) is bool
            observation = after
            if terminated or truncated:
                break
        assert env.observation_space.contains(observation)

    def test_a_demonstration_is_led_from_first_to_last_and_success_terminates_and_does_not_truncate(
        self, alone, make_cell
    ):
        operator = make_cell().operator_source
        for seed in range(10):
            _, rows = play(alone, until_the_end(alone), seed=seed, demonstrate=True)
            assert set(sources(rows)) == {operator}
            _, reward, terminated, truncated, info = rows[-1]
            if info["step"].success:
                break
        assert info["step"].success, "the operator failed on ten resets"
        assert (terminated, truncated, reward, info["step"].failure) == (True, False, 1.0, None)
        assert not any(row[2] or row[3] or row[1] or row[4]["step"].success for row in rows[:-1])

    def test_the_step_limit_truncates_and_does_not_terminate(self, make_cell):
        env = RobotEnv(limited(make_cell(), 15))
        _, rows = play(env, until_the_end(env))
        assert len(rows) == 15
        _, reward, terminated, truncated, info = rows[-1]
        assert (terminated, truncated, reward, info["step"].success, info["step"].failure) == (
            False,
            True,
            0.0,
            False,
            None,
        )
        assert not any(row[2] or row[3] for row in rows[:-1])

    def test_success_at_the_step_limit_terminates(self, make_cell):
        def at_the_limit(success):
            cell = limited(make_cell(), 3)
            judge = cell.task.evaluate
            cell.task.evaluate = lambda state: replace(judge(state), success=success and env._index == 2)
            env = RobotEnv(cell)
            _, rows = play(env, [idle(env)] * 3)
            return [row[2:4] for row in rows]

        assert at_the_limit(success=True) == [(False, False), (False, False), (True, False)]
        assert at_the_limit(success=False) == [(False, False), (False, False), (False, True)]

    def test_too_much_force_ends_as_a_failure_without_success(self, make_cell):
        cell = make_cell()
        env = RobotEnv(replace(cell, task=Delegate(cell.task, spec=replace(cell.task.spec, force_limit=-1.0))))
        _, ((_, reward, terminated, truncated, info),) = play(env, until_the_end(env))
        assert (terminated, truncated, reward, info["step"].success) == (True, False, 0.0, False)
        assert info["step"].failure == "force limit"

    def test_steps_only_between_reset_and_end(self, make_cell):
        env = RobotEnv(limited(make_cell(), 3))
        with pytest.raises(StepOrderError):
            env.step(idle(env))
        _, rows = play(env, until_the_end(env))
        assert rows[-1][3], "it has come to its end"
        with pytest.raises(StepOrderError):
            env.step(idle(env))
        env.reset(seed=1)
        env.step(idle(env))
        env.close()
        env.close()

    def test_unknown_reset_options_are_named(self, alone):
        with pytest.raises(RobotRLError, match=r"demo_nstrate.*valid"):
            alone.reset(options={"demo_nstrate": True})

    @pytest.mark.parametrize("wrong", ["nan", "infinite", "too large", "shape", "scalar", "text", "none"])
    def test_a_bad_action_is_refused_before_anything_moved(self, make_cell, wrong):
        cell = make_cell()
        sent = []
        io = Delegate(cell.io, command=lambda command: (sent.append(command), cell.io.command(command)))
        env = RobotEnv(replace(cell, io=io))
        env.reset(seed=0)
        size = env.spec_task.action_size
        bad = {
            "nan": np.full(size, np.nan, np.float32),
            "infinite": np.full(size, -np.inf, np.float32),
            "too large": np.full(size, 1.01, np.float32),
            "shape": np.zeros(size + 1, np.float32),
            "scalar": 0.0,
            "text": "up",
            "none": None,
        }
        before = cell.clock.now()
        with pytest.raises(ActionError):
            env.step(bad[wrong])
        assert cell.clock.now() == before
        assert not sent
        _, _, _, _, info = env.step(idle(env))  # the episode goes on
        assert info["step"].recorded.index == 0
        assert len(sent) == 1

    def test_an_intervention_is_recorded_with_both_actions_and_its_source_and_without_the_policy_is_left_alone(
        self, env, alone, make_cell
    ):
        wanted = np.full(env.action_space.shape, 0.01, np.float32)
        _, rows = play(env, [wanted] * env.spec_task.max_steps, seed=3, until=handed_back)
        steps = [row[4]["step"].recorded for row in rows]
        led = [step for step in steps if step.source != Source.POLICY]
        assert led, "the operator never took over from a policy that does nothing"
        assert {step.source for step in led} == {make_cell().operator_source}
        assert all(np.array_equal(step.action_policy, wanted) for step in steps)
        assert not any(np.array_equal(step.action, wanted) for step in led)
        assert all(np.array_equal(step.action, wanted) for step in steps if step.source == Source.POLICY)
        assert len(led) < len(steps), "the operator never let the policy act"
        taken_over = sources(rows).index(led[0].source)
        _, rows = play(alone, [wanted] * (taken_over + 5), seed=3)
        assert len(rows) > taken_over
        assert set(sources(rows)) == {Source.POLICY}
        assert all(np.array_equal(row[4]["step"].recorded.action, wanted) for row in rows)

    def test_the_same_seed_gives_the_same_episode_bit_for_bit(self, make_cell):
        def episode(env, seed, steps=20):
            rng = np.random.default_rng(7)
            actions = [rng.uniform(-1, 1, env.action_space.shape).astype(np.float32) for _ in range(steps)]
            first, rows = play(env, actions, seed=seed)
            columns = [first, *(row[0] for row in rows)]
            extra = [
                (row[1], *row[2:4], row[4]["step"].force_peak, row[4]["step"].recorded.action.tolist()) for row in rows
            ]
            return columns, extra

        one, other = RobotEnv(make_cell(), interventions=True), RobotEnv(make_cell(), interventions=True)
        columns, extra = episode(one, seed=5)
        different, _ = episode(one, seed=6, steps=5)
        for env in (one, other):  # after another episode, and in another process's place
            again, extra_again = episode(env, seed=5)
            assert extra_again == extra
            assert all(same(a, b) for a, b in zip(columns, again, strict=True))
        assert not same(columns[0], different[0])

    def test_unseeded_resets_differ_and_follow_from_the_first_seed(self, alone):
        def three():
            first, _ = alone.reset(seed=1)
            return [first, alone.reset()[0], alone.reset()[0]]

        one, other = three(), three()
        assert all(same(a, b) for a, b in zip(one, other, strict=True))
        assert not same(one[1], one[2])

    def test_steps_make_an_episode_whose_stamps_are_in_order(self, alone):
        env = alone
        _, info = env.reset(seed=0, options={"episode_id": "e7"})
        builder, period = EpisodeBuilder("e7"), env.spec_task.control_period
        for _ in range(10):
            observation, _, _, _, info = env.step(idle(env))
            builder.add(info["step"].recorded)
        episode = builder.finish(observation, info["step"].stamp_obs)
        assert (np.diff(episode.stamp_obs) > 0).all()
        assert (episode.stamp_obs[:-1] <= episode.stamp_action).all()
        assert np.diff(episode.stamp_action) == pytest.approx(period * 1e9)
        assert info["step"].overruns == 0

    @pytest.mark.parametrize("fault", [RobotRLError("sensor lost"), KeyboardInterrupt(), ZeroDivisionError()], ids=repr)
    def test_whatever_goes_wrong_the_arm_is_stopped_and_the_episode_over(self, make_cell, fault):
        cell, stops = make_cell(), []

        def fail(state):
            raise fault

        io = Delegate(cell.io, stop=lambda: (stops.append(1), cell.io.stop()))
        env = RobotEnv(replace(cell, io=io, task=Delegate(cell.task, evaluate=fail)))
        env.reset(seed=0)
        with pytest.raises(type(fault)):
            env.step(idle(env))
        assert stops
        with pytest.raises(StepOrderError):
            env.step(idle(env))

    def test_the_spaces_are_those_of_the_specs(self, alone):
        assert isinstance(alone.action_space, gymnasium.spaces.Box)
        assert alone.action_space.shape == (alone.spec_task.action_size,)
        assert set(alone.observation_space.spaces) == set(alone.observation_specs)
