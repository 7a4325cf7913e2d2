import numpy as np
import pytest

from robot_rl.clock import NS_PER_S
from robot_rl.env.state_assembler import TOOL, Freshness, Joints, StateAssembler, Tool, camera_part, checked_quaternion
from robot_rl.errors import SpecError, StaleStateError
from robot_rl.geometry import Pose

MS = NS_PER_S // 1000
NOW = 1000 * MS
Q = np.array([0.0, 1.0, 0.0, 0.0])


def pose(tag):
    return Pose(np.array([tag, 0.0, 0.0]), Q.copy())


def vector(tag):
    return np.full(6, float(tag))


VALUES = {
    "pose": pose,
    "twist": vector,
    "wrench": vector,
    "joints": lambda tag: Joints(np.full(7, float(tag)), np.zeros(7)),
}


def fill(parts, stamps, tag=None):
    """Adds one sample of each part; its value is the tag, or the stamp in ms."""
    for part, stamp in stamps.items():
        assert parts.add(part, stamp, VALUES[part](stamp // MS if tag is None else tag), NOW)


def at(ms):
    return dict.fromkeys(VALUES, ms * MS)


def test_parts_are_joined_by_their_stamps():
    parts = StateAssembler()
    for ms in (960, 970, 980):
        fill(parts, at(ms))
    parts.add("twist", 990 * MS, vector(990), NOW)  # its pose is still on the way
    state = parts.read(NOW)
    assert state.stamp == 980 * MS
    assert (state.T_base_tcp.position[0], state.twist[0], state.joint_position[0]) == (980, 980, 980)
    assert list(parts.skews) == [0.0]


def test_the_nearest_sample_is_taken_and_the_skew_measured():
    parts = StateAssembler()
    fill(parts, {"pose": 980 * MS, "twist": 960 * MS, "wrench": 970 * MS, "joints": 985 * MS})
    parts.add("twist", 999 * MS, vector(999), NOW)
    state = parts.read(NOW)
    assert (state.twist[0], state.wrench[0], state.joint_position[0]) == (999, 970, 985)
    assert parts.skews[-1] == pytest.approx(0.019)


def test_a_part_measured_too_far_from_the_pose_is_named():
    parts = StateAssembler(freshness=Freshness(max_skew=0.01))
    fill(parts, {**at(980), "wrench": 960 * MS})
    with pytest.raises(StaleStateError, match=r"wrench \(measured apart from the pose\) is 0.020 s"):
        parts.read(NOW)


@pytest.mark.parametrize("silent", VALUES)
def test_the_part_that_never_came_is_named(silent):
    parts = StateAssembler()
    fill(parts, {part: stamp for part, stamp in at(990).items() if part != silent})
    with pytest.raises(StaleStateError, match=f"no {silent} has come"):
        parts.read(NOW)


@pytest.mark.parametrize("silent", VALUES)
def test_the_part_that_has_stopped_coming_is_named(silent):
    parts = StateAssembler()
    fill(parts, at(700))
    fill(parts, {part: stamp for part, stamp in at(990).items() if part != silent})
    with pytest.raises(StaleStateError, match=f"newest {silent} is 0.300 s old"):
        parts.read(NOW)


def test_a_frozen_camera_is_named_and_its_frame_never_reused():
    parts = StateAssembler(cameras=["wrist"])
    fill(parts, at(990))
    parts.add(camera_part("wrist"), 700 * MS, np.zeros((4, 4, 3), np.uint8), NOW)
    with pytest.raises(StaleStateError, match=r"camera wrist is 0.300 s old"):
        parts.read(NOW)
    parts.add(camera_part("wrist"), 950 * MS, np.ones((4, 4, 3), np.uint8), NOW)
    assert parts.read(NOW).images["wrist"].max() == 1
    assert parts.skews[-1] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("part", "stamp", "value", "reason"),
    [
        ("wrench", 995, np.array([0, np.nan, 0, 0, 0, 0]), "NaN"),
        ("twist", 995, np.array([np.inf, 0, 0, 0, 0, 0]), "NaN or an infinity"),
        ("joints", 995, Joints(np.full(7, np.nan), np.zeros(7)), "NaN"),
        ("pose", 995, Pose(np.array([np.nan, 0, 0]), Q), "NaN"),
        ("pose", 980, pose(0), "does not rise"),
        ("pose", 990, pose(0), "does not rise"),
        ("pose", 1100, pose(0), "future"),
    ],
)
def test_what_is_broken_is_refused_counted_and_named_when_it_is_missed(part, stamp, value, reason):
    parts = StateAssembler()
    fill(parts, at(990))
    assert not parts.add(part, stamp * MS, value, NOW)
    assert [name for name in parts.refusals if name.startswith(part) and reason in name]
    assert parts.read(NOW).stamp == 990 * MS  # what was good is still good


def test_a_nan_in_every_wrench_makes_the_wrench_stale_and_the_reason_is_said():
    parts = StateAssembler()
    fill(parts, at(700))
    for ms in range(710, 1000, 10):
        fill(parts, {part: ms * MS for part in VALUES if part != "wrench"})
        parts.add("wrench", ms * MS, np.full(6, np.nan), NOW)
    with pytest.raises(StaleStateError, match=r"newest wrench is 0.300 s old.*29 messages were refused.*NaN"):
        parts.read(NOW)


def test_the_peak_force_is_that_of_all_wrenches_since_the_last_read():
    parts = StateAssembler()
    fill(parts, at(970), tag=0)
    for ms, force in ((980, 30.0), (990, 5.0)):
        fill(parts, {"pose": ms * MS})
        parts.add("wrench", ms * MS, np.array([0, 0, force, 9, 9, 9]), NOW)
    assert parts.read(NOW).peak_force == 30.0
    assert parts.read(NOW).peak_force == 0.0


def test_a_driver_that_tells_peaks_is_believed():
    parts = StateAssembler()
    fill(parts, at(990), tag=1)
    for ms, peak in ((980, 45.0), (990, 2.0)):
        parts.add(TOOL, ms * MS, Tool(0.04, peak), NOW)
    state = parts.read(NOW)
    assert (state.peak_force, state.gripper_width) == (45.0, 0.04)
    assert (parts.read(NOW).peak_force, parts.read(NOW).gripper_width) == (0.0, 0.04)


def test_complete_means_every_part_of_that_stamp():
    parts = StateAssembler()
    fill(parts, at(980))
    assert not parts.complete_at(980 * MS)
    parts.add(TOOL, 980 * MS, Tool(0.0, 0.0), NOW)
    assert parts.complete_at(980 * MS)
    assert not parts.complete_at(990 * MS)


def test_a_quaternion_is_of_unit_length_or_refused():
    assert checked_quaternion(Q) is Q
    scaled = checked_quaternion(Q * (1 + 1e-5))
    assert np.linalg.norm(scaled) == pytest.approx(1.0, abs=1e-15)
    for wrong in (np.zeros(4), 2 * Q, np.array([np.nan, 1, 0, 0])):
        with pytest.raises(SpecError):
            checked_quaternion(wrong)
