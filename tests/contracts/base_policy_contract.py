"""What a run expects of a base policy. Subclass `BasePolicyContract`, and give it a `setup` and a `base` fixture.

class TestMine(BasePolicyContract):
    @pytest.fixture
    def setup(self): return setup_of("mine")
    @pytest.fixture
    def base(self, setup): ...  # one that can plan
"""

from dataclasses import replace

import numpy as np

from robot_rl.base_policy.contract import BasePolicy, BaseSetup, Stamped, checked_chunk, make_base
from robot_rl.config.components import BaseConfig, ReplayConfig, TrainConfig
from robot_rl.data.schema import Episode, Source
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint
from robot_rl.spec import ArraySpec

MOVES = "x 0.01 m, y 0.01 m, gripper, every 0.1 s"
TASK = EnvironmentSpec("line", max_steps=30, control_period=0.1, action_size=3, choices=3, actions=MOVES)
OBSERVATIONS = {"state/way": ArraySpec((2,), scale=1.0), "state/width": ArraySpec((1,), scale=1.0)}
PERIOD = 100_000_000
"""Of control [ns]."""


def setup_of(kind, path="", **settings):
    config = TrainConfig(
        task="line",
        base=BaseConfig(kind=kind, path=path, updates=150, horizon=4, history=2, **settings),
        replay=ReplayConfig(batch_size=32),
    )
    return BaseSetup(path, TASK, OBSERVATIONS, config)


def observation(seed=0):
    rng = np.random.default_rng(seed)
    return {"state/way": rng.uniform(-0.5, 0.5, 2), "state/width": np.array([rng.uniform(0, 1)])}


def history(length=2, start=0):
    return [Stamped(10**9 + PERIOD * t, observation(start + t)) for t in range(length)]


def demonstrations(count=4, steps=20):
    """Episodes of an operator who goes the way that it sees, and closes the gripper."""
    for number in range(count):
        rows = [observation(1000 * number + t) for t in range(steps + 1)]
        action = np.stack([np.append(row["state/way"], -1.0) for row in rows[:-1]]).astype(np.float32)
        last = np.arange(steps) == steps - 1
        yield Episode(
            episode_id=f"demo-{number}",
            observations={key: np.stack([row[key] for row in rows]).astype(np.float32) for key in rows[0]},
            action=action,
            action_policy=np.zeros_like(action),
            source=np.full(steps, Source.SCRIPT, np.int8),
            reward=last.astype(np.float32),
            terminated=last,
            truncated=np.zeros(steps, bool),
            stamp_obs=10**9 + PERIOD * np.arange(steps + 1),
            stamp_action=10**9 + PERIOD * np.arange(steps),
            metadata={"seed": number, "success": True},
        )


class BasePolicyContract:
    """The suite."""

    def test_it_is_one_with_a_name_and_a_spec(self, base):
        assert isinstance(base, BasePolicy)
        assert base.name
        assert base.spec.horizon >= 1 <= base.spec.history
        assert set(base.spec.observations) <= set(OBSERVATIONS)

    def test_its_chunk_has_actions_in_range_with_increasing_times(self, base):
        base.begin(0, None)
        for length in range(1, base.spec.history + 1):
            chunk = checked_chunk(base.plan(history(length)), base)
            assert 1 <= len(chunk.actions) <= base.spec.horizon
            assert chunk.stamps[0] == history(length)[-1].stamp, "the first action is due at once"

    def test_the_same_seed_and_observations_give_the_same_chunks(self, base):
        played = []
        for _ in range(2):
            base.begin(7, None)
            played.append([base.plan(history(1, start)).actions for start in range(3)])
        np.testing.assert_array_equal(played[0], played[1])

    def test_it_forgets_the_last_episode(self, base):
        base.begin(7, None)
        first = base.plan(history(1)).actions
        for start in range(5):
            base.plan(history(1, start))
        base.begin(7, None)
        np.testing.assert_array_equal(base.plan(history(1)).actions, first)

    def test_what_it_is_given_stays_as_it_is(self, base):
        given, before = history(), history()
        base.begin(0, None)
        base.plan(given)
        for one, other in zip(given, before, strict=True):
            for key, value in one.observation.items():
                np.testing.assert_array_equal(value, other.observation[key])

    def test_its_identity_is_that_of_another_one_made_alike(self, setup, base, tmp_path):
        """And a base that a run keeps is restored from a file, without its path."""
        state = base.state_dict()
        if state is None:
            other = make_base(setup)
        else:
            save_checkpoint(tmp_path / "base.pt", {"state": state})
            kept = load_checkpoint(tmp_path / "base.pt")["state"]
            other = make_base(replace(setup, path="/nowhere", state=kept))
        try:
            assert other.identity == base.identity
            for one in (base, other):
                one.begin(1, None)
            np.testing.assert_array_equal(base.plan(history()).actions, other.plan(history()).actions)
        finally:
            other.close()

    def test_closing_twice_is_fine(self, base):
        base.close()
        base.close()
