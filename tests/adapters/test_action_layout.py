import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.adapters.action_layout import make_action_layout
from robot_rl.errors import ActionError, SpecError

BOUNDS = st.lists(st.tuples(st.floats(-50, 50), st.floats(0.01, 20)), min_size=1, max_size=5)


@given(BOUNDS, st.integers(0, 1000))
def test_an_action_goes_there_and_back(bounds, seed):
    low = np.array([start for start, _ in bounds])
    box = spaces.Box(low, low + np.array([width for _, width in bounds]), dtype=np.float64)
    layout = make_action_layout(box, "odd")
    action = np.random.default_rng(seed).uniform(-1, 1, layout.size).astype(np.float32)
    theirs = layout.to_environment(action)
    assert box.contains(theirs)
    assert layout.to_policy(theirs) == pytest.approx(action, abs=1e-4)


def test_a_box_of_any_shape_is_a_vector_and_what_an_expert_exceeds_is_clipped():
    layout = make_action_layout(spaces.Box(0.0, 4.0, (2, 2)), "odd")
    assert layout.size == 4
    assert layout.to_environment(np.array([-1, 0, 0.5, 1], np.float32)).tolist() == [[0, 2], [3, 4]]
    assert layout.to_policy([[-5, 2], [3, 9]]).tolist() == [-1, 0, 0.5, 1]
    for wrong in ([1.0, 2.0], "left", None, [[1.0, np.nan], [0.0, 0.0]], [[1.0, 2.0], [3.0]]):
        with pytest.raises(SpecError, match="expert"):
            layout.to_policy(wrong)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Dict(a=spaces.Discrete(3)), "Box of real numbers, Discrete"),
        (spaces.MultiDiscrete([40, 40]), "1600 combinations; supported are up to 1024"),
        (spaces.Tuple([spaces.Box(-1.0, 1.0, (2,))]), "Box of real numbers"),
        (spaces.Box(-np.inf, np.inf, (2,)), "without bounds"),
        (spaces.Box(-1e10, 1e10, (2,)), r"without bounds below 1e\+09"),
        (spaces.Box(0, 9, (2,), np.int64), "Box of real numbers"),
    ],
)
def test_a_space_of_another_kind_is_refused(space, expected):
    with pytest.raises(SpecError, match=f"odd: .*{expected}"):
        make_action_layout(space, "odd")


@pytest.mark.parametrize("action", [[0.0], [0.0, np.nan], [0.0, 1.1], "up"])
def test_a_bad_action_is_refused(action):
    with pytest.raises(ActionError):
        make_action_layout(spaces.Box(-1.0, 1.0, (2,)), "odd").check(action)


CHOICE_SPACES = [
    spaces.Discrete(2),
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([3, 2, 4], start=[1, 0, -1]),
    spaces.MultiDiscrete([[2, 3], [2, 2]]),
    spaces.MultiBinary(3),
    spaces.MultiBinary((2, 2)),
]


@pytest.mark.parametrize("space", CHOICE_SPACES, ids=str)
def test_every_choice_is_reached_and_found_again(space):
    layout = make_action_layout(space, "odd")
    entries = np.linspace(-1, 1, layout.choices, dtype=np.float32)
    theirs = [layout.to_environment(layout.check([entry])) for entry in entries]
    assert layout.size == 1
    assert all(space.contains(action) for action in theirs)
    assert len({np.asarray(action).tobytes() for action in theirs}) == layout.choices
    assert [layout.to_policy(action)[0] for action in theirs] == pytest.approx(entries)
    sampled = space.sample()
    assert np.array_equal(layout.to_environment(layout.to_policy(sampled)), sampled)


def test_the_last_number_of_a_box_may_be_a_gripper():
    layout = make_action_layout(spaces.Box(np.array([-1, 0.0]), np.array([1, 2.0])), "odd", discrete_gripper=True)
    assert (layout.size, layout.choices) == (2, 3)
    assert layout.check([0.3, 0.6]).tolist() == pytest.approx([0.3, 1.0])
    assert layout.to_policy([0.5, 0.1]).tolist() == [0.5, -1.0]
    assert layout.to_environment(layout.check([0.0, -0.2])).tolist() == [0.0, 1.0]


def test_an_entry_stands_for_the_nearest_choice():
    layout = make_action_layout(spaces.Discrete(3), "odd")
    assert [layout.check([entry])[0] for entry in (-0.9, -0.2, 0.4, 0.6, 1.0)] == [-1, 0, 0, 1, 1]
    for wrong in (3, 1.0, [1], "up"):
        with pytest.raises(SpecError, match="expert"):
            layout.to_policy(wrong)
    with pytest.raises(ActionError):
        layout.check([1.5])
