"""Shaping by a potential: it telescopes, and leaves the best policy as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.reward.shaping import potential_between, shaped_reward


def test_by_hand():
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


def optimal_actions(step_reward, successor, terminal, discount):
    """Greedy actions of the optimal values, by value iteration on a deterministic process (S, A)."""
    value = np.zeros(len(successor))
    for _ in range(400):
        action_value = step_reward + discount * np.where(terminal[successor], 0.0, value[successor])
        value = action_value.max(1)
    return action_value


@pytest.mark.parametrize("seed", range(5))
def test_the_best_actions_of_a_random_process_stay_the_best(seed):
    """Ng, Harada and Russell (1999), on a process with 12 states of which two are ends."""
    rng, states, actions, discount = np.random.default_rng(seed), 12, 3, 0.9
    successor = rng.integers(states, size=(states, actions))
    reward, phi = rng.uniform(-1, 1, (states, actions)), rng.uniform(0, 1, states)
    terminal = np.arange(states) >= states - 2
    shaped = np.empty_like(reward)
    for state in range(states):
        for action in range(actions):
            end = bool(terminal[successor[state, action]])
            step = shaped_reward(reward[state, action, None], phi[[state, successor[state, action]]], end, discount)
            shaped[state, action] = step[0]
    plain = optimal_actions(reward, successor, terminal, discount)
    changed = optimal_actions(shaped, successor, terminal, discount)
    np.testing.assert_allclose(changed, plain - phi[:, None], atol=1e-5)
    assert (changed.argmax(1) == plain.argmax(1)).all()


@given(st.data())
def test_the_potential_meets_its_labels_and_never_leaves_their_range(data):
    steps = data.draw(st.integers(1, 40))
    rows = sorted(data.draw(st.sets(st.integers(0, steps), min_size=1)))
    values = data.draw(st.lists(st.floats(0, 1), min_size=len(rows), max_size=len(rows)))
    potential = potential_between(rows, values, steps)
    assert potential.shape == (steps + 1,)
    np.testing.assert_allclose(potential[rows], values, atol=1e-12)
    assert potential.min() >= min(values) - 1e-12
    assert potential.max() <= max(values) + 1e-12


@given(st.floats(0, 1), st.integers(1, 20), st.floats(0.5, 0.99))
def test_a_constant_potential_pays_for_nothing_but_the_discount(level, steps, discount):
    shaped = shaped_reward(np.zeros(steps), np.full(steps + 1, level), False, discount)
    np.testing.assert_allclose(shaped, (discount - 1) * level, atol=1e-6)
