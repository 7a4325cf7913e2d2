"""What every `Environment` has to do. Subclass `EnvironmentContract`, give it a `make` fixture, and run it.

class TestMyEnvironment(EnvironmentContract):
    @pytest.fixture
    def make(self): return lambda: ...  # a new environment each time
"""

import numpy as np
import pytest

from robot_rl.data.schema import EpisodeBuilder
from robot_rl.errors import ActionError, StepOrderError
from robot_rl.spec import validate_dict


def random_action(env, rng):
    return rng.uniform(-1.0, 1.0, env.environment_spec.action_size).astype(np.float32)


def episode_of(env, seed, steps=20):
    """Play at random; return the start and the info of every step."""
    rng = np.random.default_rng(7)
    start = env.start(seed, f"episode-{seed}")
    infos = []
    while len(infos) < steps and not (infos and infos[-1].ended):
        infos.append(env.advance(random_action(env, rng)))
    return start, infos


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


class EnvironmentContract:
    """The tests."""

    @pytest.fixture
    def env(self, make):
        made = make()
        yield made
        made.close()

    def test_its_spec_is_one_that_a_learner_can_use(self, env):
        spec = env.environment_spec
        assert spec.name
        assert min(spec.max_steps, spec.action_size, spec.control_period) > 0
        assert spec.return_range is None or spec.return_range[0] < spec.return_range[1]
        assert all(key.startswith(("state/", "images/")) for key in env.observation_specs)

    def test_observations_fit_their_specs_and_are_chained(self, env):
        start, infos = episode_of(env, 1)
        seen = start.observation
        for info in infos:
            validate_dict(env.observation_specs, seen, "observation")
            assert same(info.recorded.observation, seen)
            seen = info.observation
        validate_dict(env.observation_specs, seen, "observation")

    def test_its_steps_make_an_episode(self, env):
        start, infos = episode_of(env, 2)
        builder = EpisodeBuilder("episode-2")
        for info in infos:
            builder.add(info.recorded)
        episode = builder.finish(infos[-1].observation, infos[-1].stamp_obs)
        assert episode.stamp_obs[0] == start.stamp_obs
        assert (np.diff(episode.stamp_obs) > 0).all()
        assert (episode.stamp_obs[:-1] <= episode.stamp_action).all()
        assert episode.action.shape == (len(infos), env.environment_spec.action_size)

    def test_the_step_limit_and_last_truncate_and_nothing_is_both(self, env):
        still = np.zeros(env.environment_spec.action_size, np.float32)
        env.start(3, "a")
        ended = env.advance(still, last=True)
        assert (ended.recorded.truncated or ended.recorded.terminated, ended.ended) == (True, True)
        env.start(3, "b")
        for _ in range(env.environment_spec.max_steps):
            info = env.advance(still)
            assert not (info.recorded.truncated and info.recorded.terminated)
            if info.ended:
                break
        assert info.ended

    def test_steps_only_between_start_and_end(self, make):
        env = make()
        still = np.zeros(env.environment_spec.action_size, np.float32)
        with pytest.raises(StepOrderError):
            env.advance(still)
        env.start(0, "a")
        env.advance(still, last=True)
        with pytest.raises(StepOrderError):
            env.advance(still)
        env.close()
        env.close()

    @pytest.mark.parametrize("wrong", ["nan", "too large", "shape", "text"])
    def test_a_bad_action_is_refused_and_the_episode_goes_on(self, env, wrong):
        size = env.environment_spec.action_size
        bad = {"nan": np.full(size, np.nan), "too large": np.full(size, 1.01), "shape": np.zeros(size + 1)}
        env.start(0, "a")
        with pytest.raises(ActionError):
            env.advance(bad.get(wrong, "up"))
        assert env.advance(np.zeros(size, np.float32)).recorded.index == 0

    def test_the_same_seed_gives_the_same_episode_bit_for_bit(self, make):
        one, other = make(), make()
        start, infos = episode_of(one, 5)
        different, _ = episode_of(one, 6)
        for env in (one, other):
            again, infos_again = episode_of(env, 5)
            assert same(start.observation, again.observation)
            assert len(infos) == len(infos_again)
            for a, b in zip(infos, infos_again, strict=True):
                assert same(a.observation, b.observation)
                assert (a.recorded.reward, a.success, a.ended) == (b.recorded.reward, b.success, b.ended)
        assert not same(start.observation, different.observation)

    def test_what_is_done_meanwhile_is_done_once_a_step(self, env):
        calls = []
        env.start(0, "a")
        env.advance(np.zeros(env.environment_spec.action_size, np.float32), meanwhile=lambda: calls.append(1))
        assert calls == [1]
