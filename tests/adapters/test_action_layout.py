import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.adapters.action_layout import ActionLayout
from robot_rl.errors import ActionError, SpecError

BOUNDS = st.lists(st.tuples(st.floats(-50, 50), st.floats(0.01, 20)), min_size=1, max_size=5)


@given(BOUNDS, st.integers(0, 1000))
def test_an_action_goes_there_and_back(bounds, seed):
    low = np.array([start for start, _ in bounds])
    box = spaces.Box(low, low + np.array([width for _, width in bounds]), dtype=np.float64)
    layout = ActionLayout(box, "odd")
    action = np.random.default_rng(seed).uniform(-1, 1, layout.size).astype(np.float32)
    theirs = layout.to_environment(action)
    assert box.contains(theirs)
    assert layout.to_policy(theirs) == pytest.approx(action, abs=1e-4)


def test_a_box_of_any_shape_is_a_vector_and_what_an_expert_exceeds_is_clipped():
    layout = ActionLayout(spaces.Box(0.0, 4.0, (2, 2)), "odd")
    assert layout.size == 4
    assert layout.to_environment(np.array([-1, 0, 0.5, 1], np.float32)).tolist() == [[0, 2], [3, 4]]
    assert layout.to_policy([[-5, 2], [3, 9]]).tolist() == [-1, 0, 0.5, 1]
    with pytest.raises(SpecError, match="expert"):
        layout.to_policy([1.0, 2.0])


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Discrete(3), "Box of real numbers"),
        (spaces.Tuple([spaces.Box(-1.0, 1.0, (2,))]), "Box of real numbers"),
        (spaces.Box(-np.inf, np.inf, (2,)), "without bounds"),
        (spaces.Box(0, 9, (2,), np.int64), "Box of real numbers"),
    ],
)
def test_a_space_of_another_kind_is_refused(space, expected):
    with pytest.raises(SpecError, match=f"odd: .*{expected}"):
        ActionLayout(space, "odd")


@pytest.mark.parametrize("action", [[0.0], [0.0, np.nan], [0.0, 1.1], "up"])
def test_a_bad_action_is_refused(action):
    with pytest.raises(ActionError):
        ActionLayout(spaces.Box(-1.0, 1.0, (2,)), "odd").check(action)
