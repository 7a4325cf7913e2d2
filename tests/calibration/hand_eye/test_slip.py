"""A camera or board that moves during a hand-eye calibration is named, with the moment; a good rig is not."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom
from slips import moved_camera, rig_that_moves, steps
from synthetic import PINHOLE, apart, random_rig

from calibration.hand_eye.hand_eye import calibrate_hand_eye
from calibration.hand_eye.slip import FALSE_ALARMS
from calibration.report.camera_reports import hand_eye_report
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError

mountings = pytest.mark.parametrize("mounting", MOUNTINGS)


def verdict(sightings, mounting):
    """Return the verdict, or the reason of the refusal; a good result is an empty text."""
    try:
        fit = calibrate_hand_eye(PINHOLE, sightings, mounting, "fr3")
    except CalibrationError as error:
        return str(error)
    return "" if fit.quality.good else fit.quality.verdict


@mountings
@pytest.mark.parametrize(("mm", "first"), [(1.0, 8), (3.0, 8), (3.0, 12), (30.0, 5), (3.0, 13)])
def test_a_camera_that_slips_is_named_with_the_moment(mounting, mm, first):
    sightings, _ = rig_that_moves(1, mounting, steps(mm, first))
    text = verdict(sightings, mounting)
    assert text.startswith("the camera moved by")
    assert f"between view {first - 1} and view {first}" in text
    assert f"--split view {first}" in text


@mountings
def test_a_board_that_slips_is_told_from_a_camera_that_does(mounting):
    sightings, _ = rig_that_moves(2, mounting, steps(3.0, 6), "board")
    assert verdict(sightings, mounting).startswith("the board moved by")


def test_a_drift_is_no_slip():
    sightings, _ = rig_that_moves(3, "eye_in_hand", np.linspace(0, 3, 15))
    assert "the camera drifted by" in verdict(sightings, "eye_in_hand")


@mountings
@pytest.mark.parametrize("mm", [1.0, 3.0])
def test_a_camera_that_is_pushed_and_put_back_is_named(mounting, mm):
    """The views in between are few enough to be left out one by one, as wrong poses; what is left was called good."""
    sightings, _ = rig_that_moves(7, mounting, steps(mm, 5) - steps(mm, 10))
    text = verdict(sightings, mounting)
    assert "was elsewhere by" in text
    assert "and moved back" in text


def test_a_drift_is_one_in_time_if_the_times_are_known():
    """Half of the views an hour later: the camera drifts with time, which over the order looks like a step."""
    times = np.append(np.arange(8), 60.0 + np.arange(7))  # [min]
    sightings, _ = rig_that_moves(4, "eye_in_hand", 4.0 * times / times[-1])
    assert "moved" in verdict(sightings, "eye_in_hand")
    stamped = [dataclasses.replace(s, stamp=int(60e9 * t)) for s, t in zip(sightings, times, strict=True)]
    assert "drifted" in verdict(stamped, "eye_in_hand")
    with pytest.raises(CalibrationError, match="stamps of the views do not rise"):
        calibrate_hand_eye(PINHOLE, stamped[::-1], "eye_in_hand", "fr3")


def test_wrong_poses_beside_a_slip_hide_it_as_little_as_they_are_one():
    sightings, _ = rig_that_moves(5, "eye_in_hand", steps(3.0, 8), wrong=(2, 11))
    assert "between view 7 and view 8" in verdict(sightings, "eye_in_hand")
    sightings, _ = rig_that_moves(5, "eye_in_hand", steps(0.0, 8), wrong=(2, 11, 14))
    assert verdict(sightings, "eye_in_hand") == ""


def test_both_parts_of_a_recording_are_right_on_their_own():
    sightings, truth = rig_that_moves(6, "eye_in_hand", steps(3.0, 12, 24), count=24)
    for part, camera in ((sightings[:12], truth.X), (sightings[12:], moved_camera(truth, 6, 3.0))):
        fit = calibrate_hand_eye(PINHOLE, part, "eye_in_hand", "fr3")
        assert fit.quality.good
        assert apart(camera, fit.result.T_parent_camera)[0] < 1e-3


def test_too_few_views_for_a_test_are_no_alarm():
    sightings, _ = random_rig(0, "eye_in_hand", 6, noise=0.02, position=2e-5, rotation=5e-5)
    assert "moved" not in verdict(sightings, "eye_in_hand")


def test_the_report_shows_the_errors_over_time(tmp_path):
    sightings, _ = rig_that_moves(0, "eye_in_hand", steps(1.0, 8))
    fit = calibrate_hand_eye(PINHOLE, sightings, "eye_in_hand", "fr3")
    assert not fit.quality.good
    sizes = fit.slip.change.sizes
    assert sizes[:, 0].mean() > 1.3 * sizes[:, 1].mean()
    hand_eye_report(fit).write(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "Errors over time" in text
    assert "slip_p" in text


@pytest.mark.slow
def test_a_good_rig_is_refused_as_rarely_as_stated():
    """The share of 20 rigs is what a probability of 1 % gives, with a p-value of 0.1 %; the benchmark has 1,000."""
    rigs = [(seed, mounting) for seed in range(500, 510) for mounting in MOUNTINGS]
    alarms = sum(verdict(random_rig(*rig)[0], rig[1]) != "" for rig in rigs)
    assert binom.sf(alarms - 1, len(rigs), FALSE_ALARMS) > 1e-3


@pytest.mark.slow
def test_a_slip_of_a_millimetre_is_found_in_nine_of_ten_rigs():
    rigs = [(seed, mounting) for seed in range(600, 605) for mounting in MOUNTINGS]
    texts = [verdict(rig_that_moves(*rig, steps(1.0, 8))[0], rig[1]) for rig in rigs]
    assert sum("moved" in text for text in texts) >= 9
