"""LeRobot's calibration: read, compared with what servos keep, and turned into angles."""

import json

import numpy as np
import pytest

from robot_rl.arm.servo.calibration import CountScale, ServoCalibration, check_calibration, load_calibration
from robot_rl.errors import ConfigError

IDENTS = {"pan": 1, "lift": 2}
FILE = {
    "pan": {"id": 1, "drive_mode": 0, "homing_offset": -1200, "range_min": 700, "range_max": 3400},
    "lift": {"id": 2, "drive_mode": 0, "homing_offset": 31, "range_min": 0, "range_max": 4095},
}


def write(tmp_path, tree):
    path = tmp_path / "arm.json"
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
    return path


def test_a_file_of_lerobot_is_read(tmp_path):
    found = load_calibration(write(tmp_path, FILE), IDENTS)
    assert found == {"pan": ServoCalibration(1, -1200, 700, 3400), "lift": ServoCalibration(2, 31, 0, 4095)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"roll": FILE["pan"]}, "is of pan, lift, roll; the arm has pan, lift"),
        ({"lift": FILE["lift"] | {"id": 5}}, "lift has id 5, the arm's has 2"),
        ({"lift": FILE["lift"] | {"range_min": 4095}}, "range_min of lift is not below range_max"),
        ({"lift": FILE["lift"] | {"range_min": 1.5}}, "lift needs the whole numbers id, drive_mode"),
        ({"lift": None}, "lift needs the whole numbers"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path, change, message):
    with pytest.raises(ConfigError, match=message):
        load_calibration(write(tmp_path, FILE | change), IDENTS)


def test_a_missing_file_and_one_that_is_no_json_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read the calibration .*No such file"):
        load_calibration(tmp_path / "no.json", IDENTS)
    with pytest.raises(ConfigError, match="is no JSON file"):
        load_calibration(write(tmp_path, "{"), IDENTS)
    with pytest.raises(ConfigError, match="is of no servos"):
        load_calibration(write(tmp_path, "[]"), IDENTS)


def test_a_calibration_of_another_arm_and_none_at_all_are_refused(tmp_path):
    file = load_calibration(write(tmp_path, FILE), IDENTS)
    check_calibration(file, file)
    check_calibration(file, None)
    other = file | {"pan": ServoCalibration(1, -900, 700, 3400)}
    with pytest.raises(ConfigError, match=r"servo 1 \(pan\) keeps offset -900 .* the file has -1200"):
        check_calibration(other, file)
    factory = {name: ServoCalibration(ident, 0, 0, 4095) for name, ident in IDENTS.items()}
    with pytest.raises(ConfigError, match=r"not calibrated.*lerobot-calibrate"):
        check_calibration(factory, None)


def test_zero_is_in_the_middle_and_counts_stay_in_the_range():
    scale = CountScale([ServoCalibration(1, 0, 1000, 3000), ServoCalibration(2, 0, 0, 4095)])
    assert scale.angles(np.array([2000, 2047.5])) == pytest.approx([0, 0])
    assert scale.angles(np.array([3024, 2047.5 + 1024])) == pytest.approx([np.pi / 2, np.pi / 2])
    assert scale.limits[0] == pytest.approx([-1000 * 2 * np.pi / 4096, -2047.5 * 2 * np.pi / 4096])
    assert scale.counts(np.array([-9.0, 9.0])).tolist() == [1000, 4095]
    counts = np.array([1777, 3210])
    assert scale.counts(scale.angles(counts)).tolist() == counts.tolist()
