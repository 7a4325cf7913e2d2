"""The way between two set-points, against its definition."""

import numpy as np
import pytest

from robot_rl.arm.set_point.set_point_path import LONGEST, USUAL, SetPointPath, chosen
from robot_rl.clock import NS_PER_S
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, rotvec_from_quat

DOWN = np.array([0.0, 1.0, 0.0, 0.0])


def at(x, turn=0.0):
    return Pose(np.array([x, 0.0, 0.2]), quat_multiply(DOWN, quat_from_rotvec(np.array([0.0, 0.0, turn]))))


def ns(seconds):
    return round(seconds * NS_PER_S)


def x(path, seconds):
    return float(path.at(ns(seconds)).position[0])


def turned(path, seconds):
    return float(rotvec_from_quat(quat_multiply(quat_conjugate(DOWN), path.at(ns(seconds)).quaternion))[2])


def test_without_interpolation_the_set_point_jumps():
    path = SetPointPath("none")
    path.go(at(0.0), at(0.01), 0)
    assert x(path, 0.0) == 0.01 and not path.on_way(0)


def test_a_line_is_in_the_middle_at_half_time_and_goes_on_from_where_it_is():
    path = SetPointPath("linear")
    path.go(at(0.0), at(0.01, 0.2), 0)
    assert x(path, 0.5 * USUAL) == pytest.approx(0.005)
    assert turned(path, 0.5 * USUAL) == pytest.approx(0.1)
    path.go(at(9.0), at(0.02), ns(0.05))  # sooner than usual: the next one is expected as soon
    assert x(path, 0.05) == pytest.approx(0.005)
    assert x(path, 0.075) == pytest.approx(0.0125)
    assert path.on_way(ns(0.099)) and not path.on_way(ns(0.1))
    assert x(path, 5.0) == 0.02
    path.go(at(0.0), at(0.04), ns(5.0))  # after a long time, no longer than LONGEST
    assert x(path, 5.0 + LONGEST / 2) == pytest.approx(0.03)


def test_minimum_jerk_is_the_polynomial_of_flash_and_hogan_from_rest():
    path = SetPointPath("minimum_jerk")
    path.go(at(0.0), at(1.0, 0.3), 0)
    for share in (0.1, 0.3, 0.5, 0.9):
        expected = 10 * share**3 - 15 * share**4 + 6 * share**5
        assert x(path, share * USUAL) == pytest.approx(expected, abs=1e-6)
        assert turned(path, share * USUAL) == pytest.approx(0.3 * expected, abs=1e-6)


def test_minimum_jerk_keeps_speed_and_acceleration_where_it_is_given_another_set_point():
    path, small = SetPointPath("minimum_jerk"), 1e-4
    path.go(at(0.0), at(0.01), 0)
    then = 0.06
    before = [x(path, then - n * small) for n in range(3)]
    path.go(at(0.0), at(0.015), ns(then))
    after = [x(path, then + n * small) for n in range(3)]
    assert (before[0] - before[1]) / small == pytest.approx((after[1] - after[0]) / small, abs=2e-3)
    bend = [(rows[2] - 2 * rows[1] + rows[0]) / small**2 for rows in (before, after)]
    assert bend[0] == pytest.approx(bend[1], abs=0.3)


@pytest.mark.parametrize("kind", ["linear", "minimum_jerk"])
def test_the_way_stays_in_the_box_of_its_ends(kind):
    path, random = SetPointPath(kind), np.random.default_rng(0)
    ends = random.uniform(-0.1, 0.1, (200, 3))
    for number, end in enumerate(ends):
        began = ns(0.1 * number)
        path.go(at(0.0), Pose(end, DOWN), began)
        start = path.at(began).position
        low, high = np.minimum(start, end) - 1e-12, np.maximum(start, end) + 1e-12
        for seconds in np.linspace(0.0, 0.1, 7):
            place = path.at(began + ns(seconds)).position
            assert ((low <= place) & (place <= high)).all()


def test_after_its_end_it_begins_where_the_tool_is():
    path = SetPointPath("linear")
    path.go(at(0.0), at(0.01), 0)
    path.end()
    assert not path.on_way(0)
    path.go(at(0.3), at(0.4), ns(0.05))
    assert x(path, 0.05) == pytest.approx(0.3)


def test_the_driver_has_its_own_unless_the_file_says_another():
    class Smooth:
        interpolation = "linear"

    assert (chosen("driver", Smooth()), chosen("none", Smooth()), chosen("driver", object())) == (
        "linear",
        "none",
        "none",
    )
