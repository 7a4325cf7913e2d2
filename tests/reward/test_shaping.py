import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.reward.shaping import potential_between, shaped_reward, sparse_reward


def test_by_hand():
    assert sparse_reward(3, True).tolist() == [0, 0, 1]
    assert sparse_reward(2, False).tolist() == [0, 0]
    assert potential_between((0, 2, 4), (0.0, 1.0, 0.5), 4).tolist() == [0.0, 0.5, 1.0, 0.75, 0.5]
    reward = shaped_reward(np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0]), True, 0.9)
    assert reward.tolist() == pytest.approx([0.45, 1.0 - 0.5])
    assert shaped_reward(np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0]), False, 0.9)[1] == pytest.approx(1.4)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
    st.floats(0.5, 0.99),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_shaping_changes_every_return_from_a_state_by_the_same(potential, discount, terminated, seed):
    """The return differs by -Phi(s_0), whatever happens on the way, and by what is bootstrapped where it is cut."""
    phi, steps = np.array(potential), len(potential) - 1
    reward = np.random.default_rng(seed).uniform(-1, 1, steps)
    powers = discount ** np.arange(steps)
    change = powers @ shaped_reward(reward, phi, terminated, discount) - powers @ reward
    left = 0.0 if terminated else discount**steps * phi[-1]
    assert change == pytest.approx(left - phi[0], abs=1e-4)
