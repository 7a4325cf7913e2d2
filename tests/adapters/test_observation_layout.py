import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.adapters.observation_layout import ObservationLayout
from robot_rl.errors import SpecError, UnknownNameError


def numbers(size):
    return spaces.Box(-np.inf, np.inf, (size,), np.float64)


def no_frame():
    raise AssertionError("nothing shall be drawn")


LEAVES = st.one_of(
    st.integers(1, 4).map(numbers),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda shape: spaces.Box(-1.0, 1.0, tuple(shape))),
    st.builds(spaces.Discrete, st.integers(1, 5), start=st.integers(-3, 3)),
    st.lists(st.integers(1, 4), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.integers(1, 4).map(spaces.MultiBinary),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["pose", "goal", "cube"]), inner, min_size=1, max_size=3).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=5,
)


@given(TREES, st.integers(0, 100))
def test_every_number_of_a_nested_observation_is_there_once(space, seed):
    space.seed(seed)
    sample = space.sample()
    layout = ObservationLayout(space, "odd")
    arrays = layout.arrays(sample, no_frame)
    assert arrays.keys() == layout.specs.keys()
    assert sum(spec.size for spec in layout.specs.values()) == gymnasium.spaces.flatdim(space)
    found = np.sort(np.concatenate([array.ravel() for array in arrays.values()]))
    expected = np.sort(np.asarray(gymnasium.spaces.flatten(space, sample), np.float32))
    assert np.array_equal(found, expected)


def test_names_say_where_a_part_was():
    space = spaces.Dict(
        {"robot": spaces.Dict({"joints": numbers(7)}), "state/goal": numbers(3), "both": spaces.Tuple([numbers(1)] * 2)}
    )
    layout = ObservationLayout(space, "odd")
    assert set(layout.specs) == {"state/robot.joints", "state/goal", "state/both.0", "state/both.1"}
    assert set(ObservationLayout(numbers(3), "odd").specs) == {"state/observation"}


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 1), (20, 30, 3), (20, 30, 4), (3, 20, 30), (1, 20, 30)])
def test_pictures_are_observed_on_request_with_channels_last(shape):
    picture = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    space = spaces.Dict({"front": spaces.Box(0, 255, shape, np.uint8), "pose": numbers(2)})
    assert set(ObservationLayout(space, "odd").specs) == {"state/pose"}
    layout = ObservationLayout(space, "odd", cameras=("front",), image_size=(20, 30))
    assert layout.cameras == ("front",)
    seen = layout.arrays({"front": picture, "pose": np.zeros(2)}, no_frame)["images/front"]
    assert (seen.shape, seen.dtype) == ((20, 30, 3), np.uint8)
    expected = picture.transpose(1, 2, 0) if shape[0] in (1, 3) else picture.reshape(20, 30, -1)
    assert np.array_equal(seen[..., 0], expected[..., 0])


def test_a_picture_of_another_size_is_resampled_without_being_stretched():
    square = np.full((60, 60, 3), 200, np.uint8)
    layout = ObservationLayout(numbers(2), "odd", cameras=("render",), image_size=(30, 40), draws=True)
    seen = layout.arrays(np.zeros(2), lambda: square)["images/render"]
    assert seen.shape == (30, 40, 3)
    assert (seen[:, 5:35] == 200).all()
    assert (seen[:, :5] == 0).all() and (seen[:, 35:] == 0).all()


def test_scales_come_from_bounds_or_from_what_is_seen():
    bounded = spaces.Box(np.array([-2.0, 0.0, -np.inf]), np.array([1.0, 8.0, np.inf]))
    assert ObservationLayout(bounded, "odd").specs["state/observation"].scale is None
    assert ObservationLayout(bounded, "odd", scaling="bounds").specs["state/observation"].scale == (2.0, 8.0, 1.0)
    given = ObservationLayout(bounded, "odd", scales={"state/observation": 3.0})
    assert given.specs["state/observation"].scale == 3.0
    assert ObservationLayout(spaces.Discrete(3), "odd").specs["state/observation"].scale == 1.0


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(5),
        spaces.Sequence(numbers(2)),
        spaces.Dict({"words": spaces.Text(5)}),
        spaces.Box(0.0, 1.0, (0,)),
        spaces.Box(0.0, 1.0, (400, 400)),
    ],
)
def test_a_space_of_another_kind_is_refused_by_name(space):
    with pytest.raises(SpecError, match=r"odd: .*supported are"):
        ObservationLayout(space, "odd")


def test_pictures_alone_need_a_camera_and_a_camera_has_to_exist():
    picture = spaces.Box(0, 255, (20, 30, 3), np.uint8)
    with pytest.raises(SpecError, match=r"no state is observed; learn from pixels.*observation"):
        ObservationLayout(picture, "odd")
    with pytest.raises(UnknownNameError, match=r"observaton.*did you mean 'observation'"):
        ObservationLayout(picture, "odd", cameras=("observaton",))


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        ({"pose": np.zeros(3)}, "state/pose: its shape is"),
        ({"pse": np.zeros(2)}, "state/pose"),
        ({"pose": [0.0, np.nan]}, "NaN"),
        (None, "state/pose"),
    ],
)
def test_an_observation_outside_its_space_is_refused(observation, expected):
    with pytest.raises(SpecError, match=f"odd: .*{expected}"):
        ObservationLayout(spaces.Dict({"pose": numbers(2)}), "odd").arrays(observation, no_frame)


def test_state_can_be_hidden_by_pattern_so_that_pictures_are_left_alone():
    space = spaces.Dict({"cube": spaces.Dict({"pose": numbers(2), "goal": numbers(1)}), "arm": numbers(3)})
    assert set(ObservationLayout(space, "odd", hidden=["cube.*"]).specs) == {"state/arm"}
    alone = ObservationLayout(space, "odd", hidden=["*"], cameras=("render",), draws=True)
    assert set(alone.specs) == {"images/render"}
    with pytest.raises(UnknownNameError, match=r"state entry of odd 'sphere'; valid: arm, cube\.goal, cube\.pose"):
        ObservationLayout(space, "odd", hidden=["sphere"])


@pytest.mark.parametrize("channels", [1, 3])
def test_an_environment_may_write_each_observation_into_the_same_arrays(channels):
    space = spaces.Dict({"pose": spaces.Box(-9.0, 9.0, (2,)), "eye": spaces.Box(0, 255, (20, 30, channels), np.uint8)})
    own = {"pose": np.zeros(2, np.float32), "eye": np.zeros((20, 30, channels), np.uint8)}
    layout = ObservationLayout(space, "odd", cameras=("eye",), image_size=(20, 30))
    first = layout.arrays(own, no_frame)
    for array in own.values():
        array[:] = 7
    second = layout.arrays(own, no_frame)
    assert [array.max() for array in first.values()] == [0, 0], "what was seen does not change later"
    assert [array.max() for array in second.values()] == [7, 7]


def test_two_parts_of_one_name_are_refused():
    space = spaces.Dict({"goal.pose": numbers(2), "goal": spaces.Dict({"pose": numbers(3)})})
    with pytest.raises(SpecError, match=r"two parts of its observation would be state/goal\.pose: .*goal/pose"):
        ObservationLayout(space, "odd")


def test_a_picture_that_is_called_as_the_drawn_one_is_the_one_observed():
    space = spaces.Dict({"render": spaces.Box(0, 255, (20, 30, 3), np.uint8), "pose": numbers(2)})
    layout = ObservationLayout(space, "odd", cameras=("render",), image_size=(20, 30), draws=True)
    picture = np.full((20, 30, 3), 9, np.uint8)
    assert layout.cameras == ("render",)
    assert layout.arrays({"render": picture, "pose": np.zeros(2)}, no_frame)["images/render"].max() == 9


@pytest.mark.parametrize("shape", [(84, 84, 2), (84, 84, 9), (9, 84, 84), (2, 84, 84, 3), (32, 40, 5)])
def test_a_picture_of_other_channels_is_refused_unless_it_is_hidden_or_named_a_vector(shape):
    picture, pose = spaces.Box(0, 255, shape, np.uint8), numbers(2)
    with pytest.raises(
        SpecError, match=r"odd: state/front is uint8 .*looks like a picture.*wrap it .*environment\.hidden"
    ):
        ObservationLayout(spaces.Dict({"front": picture, "pose": pose}), "odd")
    hidden = ObservationLayout(spaces.Dict({"front": picture, "pose": pose}), "odd", hidden=("front",))
    assert set(hidden.specs) == {"state/pose"}
    named = ObservationLayout(spaces.Dict({"state/front": picture}), "odd")
    assert named.specs["state/front"].shape == (np.prod(shape),)


@pytest.mark.parametrize(("kind", "shape"), [("f8", (64, 64, 3)), ("i4", (3, 32, 40)), ("f4", (48, 64, 1))])
def test_a_picture_of_other_numbers_is_a_vector_and_that_is_told_unless_it_is_named_so(caplog, kind, shape):
    picture = spaces.Box(0, 1, shape, np.dtype(kind).type)
    ObservationLayout(spaces.Dict({"state/front": picture}), "odd")
    assert not caplog.text
    layout = ObservationLayout(spaces.Dict({"front": picture}), "odd")
    assert layout.specs["state/front"].shape == (np.prod(shape),)
    assert "which looks like a picture, and is observed as a vector; a picture is uint8" in caplog.text


def test_an_observation_of_nothing_is_refused():
    with pytest.raises(SpecError, match=r"odd: its observation is Dict\(\), of which nothing is observed"):
        ObservationLayout(spaces.Dict({}), "odd")


def test_a_small_one_is_a_vector_and_that_is_told(caplog):
    board = spaces.Dict({"board": spaces.Box(0, 255, (19, 19, 17), np.uint8)})
    assert set(ObservationLayout(board, "odd").specs) == {"state/board"}
    assert "odd: state/board is uint8 of shape (19, 19, 17), which looks like a picture" in caplog.text
    caplog.clear()
    for small in (spaces.Box(0, 255, (7, 7, 3), np.uint8), spaces.Box(0, 255, (500,), np.uint8), spaces.Discrete(4)):
        ObservationLayout(small, "odd")
    ObservationLayout(spaces.Box(0, 1, (40, 40, 5), np.float32), "odd")
    assert not caplog.text


@pytest.mark.parametrize("name", ["a/../cam", "a//cam", "./cam", "cam/"])
def test_a_picture_whose_name_is_no_place_in_a_store_is_refused(name):
    space = spaces.Dict({name: spaces.Box(0, 255, (20, 30, 3), np.uint8), "pose": numbers(2)})
    with pytest.raises(SpecError, match=r"a picture has the name .*; wrap it and rename"):
        ObservationLayout(space, "odd")


@pytest.mark.filterwarnings("error")
def test_a_number_that_cannot_be_recorded_is_named_as_it_is():
    layout = ObservationLayout(spaces.Box(-np.inf, np.inf, (2,), np.float64), "odd")
    with pytest.raises(SpecError, match=r"it has numbers of size 1e\+300; recorded are those up to 3e\+38"):
        layout.arrays(np.array([0.0, -1e300]), no_frame)
    with pytest.raises(SpecError, match="has a NaN or an infinity"):
        layout.arrays(np.array([0.0, np.inf]), no_frame)
