"""A wrench sensor that drifts, jumps or reads its axes wrongly is named; a sound one is not."""

import re

import numpy as np
import pytest
from motions import TRUTH, readings
from scipy.stats import binom

from calibration.arm.wrench import calibrate_wrench
from calibration.arm.wrench_fault import FALSE_ALARMS
from calibration.report.motion_reports import wrench_report
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

COUNT = 20
RAMP = np.linspace(0.0, 1.0, COUNT)


def changed(wrenches, column, change):
    """Return the readings with a change of one column over time."""
    answer = wrenches.copy()
    answer[:, column] += change
    return answer


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("column", "change", "reason"),
    [
        (2, RAMP, "the force's bias drifted by"),
        (0, np.where(np.arange(COUNT) >= 14, 1.0, 0.0), "the force's bias jumped by .* between pose 13 and pose 14"),
        (4, 0.05 * RAMP, "the torque's bias drifted by"),
    ],
)
def test_a_bias_that_changes_is_named_with_the_moment(seed, column, change, reason):
    rotations, wrenches = readings(seed)
    quality = calibrate_wrench(rotations, changed(wrenches, column, change), "fr3").quality
    assert not quality.good
    with pytest.raises(CalibrationError, match=f"^{reason}"):
        raise CalibrationError(quality.verdict)


def test_axes_of_different_gain_are_named():
    rotations, wrenches = readings(0)
    wrenches[:, 0] *= 1.1
    quality = calibrate_wrench(rotations, wrenches, "fr3").quality
    assert not quality.good
    assert "the force axes have different gains: x 1.06" in quality.verdict


def test_a_frame_that_is_not_the_sensors_is_named_with_the_angle():
    rotations, wrenches = readings(0)
    turn = Pose.from_rotvec(np.zeros(3), np.array([0.0, 0.0, np.radians(3.0)])).matrix
    quality = calibrate_wrench(rotations @ turn, wrenches, "fr3").quality
    assert not quality.good
    angle = float(re.match(r"the sensor's frame is turned by ([\d.]+) deg", quality.verdict).group(1))
    assert angle == pytest.approx(3.0, abs=0.3)


@pytest.mark.parametrize("gain", [0.9, 1.05])
def test_a_gain_that_all_axes_share_is_revealed_by_a_weighed_tool_alone(gain):
    rotations, wrenches = readings(0)
    wrenches[:, :3] *= gain
    alone = calibrate_wrench(rotations, wrenches, "fr3").quality
    assert alone.good
    assert "weigh the tool" in alone.verdict
    fit = calibrate_wrench(rotations, wrenches, "fr3", weighed=TRUTH.mass)
    assert not fit.quality.good
    assert "the gain of the force is" in fit.quality.verdict
    assert fit.quality.figures["gain"] == pytest.approx(gain, rel=0.01)
    assert calibrate_wrench(*readings(0), "fr3", weighed=TRUTH.mass).quality.good


def test_a_weighed_mass_is_a_mass():
    for kilograms in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(CalibrationError, match="must be a number above 0"):
            calibrate_wrench(*readings(0), "fr3", weighed=kilograms)


def test_a_change_too_small_to_matter_is_noted_beside_a_good_result():
    rotations, wrenches = readings(0, force_noise=0.002, torque_noise=1e-4)
    fit = calibrate_wrench(rotations, changed(wrenches, 2, 0.02 * RAMP), "fr3")
    assert fit.quality.good
    assert "the force's bias drifted by 0.0" in fit.quality.verdict


def test_the_report_shows_the_errors_over_time(tmp_path):
    rotations, wrenches = readings(0)
    wrench_report(calibrate_wrench(rotations, changed(wrenches, 2, RAMP), "fr3")).write(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Errors over time" in text
    assert "fault_p" in text


def test_touched_poses_are_no_fault():
    """What a few poses contradict is left out, and is no change of the sensor."""
    rotations, wrenches = readings(2)
    wrenches[[4, 9, 13], :3] += (3.0, -2.0, 4.0)
    fit = calibrate_wrench(rotations, wrenches, "fr3")
    assert fit.quality.good
    assert not fit.fault.found


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 20])
def test_a_sound_sensor_is_refused_as_rarely_as_stated(count):
    """The share of 30 sensors is what a probability of 1 % gives, with a p-value of 0.1 %; the benchmark has more."""
    fits = [calibrate_wrench(*readings(s, count=count), "fr3") for s in range(700, 730)]
    assert binom.sf(sum(fit.fault.found for fit in fits) - 1, 30, FALSE_ALARMS) > 1e-3
