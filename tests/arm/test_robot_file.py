"""The file of a robot: what it sets, and what is wrong with it, in one line."""

import pytest
from lab_arm import install_lab_arm

from robot_rl.arm.robot_file import read_robot_file
from robot_rl.arm.set_point_cap import SetPointCap
from robot_rl.errors import ConfigError, UnknownNameError

WHOLE = """
arm: {driver: standing, rate: 50, address: 10.0.0.7}
limits: {box_low: [0.4, -0.1, 0.1], box_high: [0.6, 0.1, 0.4], max_speed: 0.9}
cameras: {wrist: "uvc:/dev/video7", side: "realsense:"}
capture: {rate: 15}
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    install_lab_arm(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text):
        path = tmp_path / "robot.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_every_part_is_read(written):
    robot = read_robot_file(written(WHOLE))
    assert (robot.driver, robot.driver_config.rate, robot.host()) == ("standing", 50, "10.0.0.7")
    assert robot.settings.limits.box_high == (0.6, 0.1, 0.4) and robot.settings.capture.rate == 15
    assert robot.device_nodes() == ("/dev/video7",)
    assert robot.make_driver(None).measures >= {"pose", "wrench"}


def test_without_a_cap_the_limits_are_just_within_it(written):
    robot = read_robot_file(written(WHOLE))
    assert SetPointCap(robot.settings.cap).exceeded_by(robot.settings.limits) == []
    assert robot.settings.cap.cap_box_low == (0.4, -0.1, 0.1)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("limits: {}", ConfigError, "needs a section `arm` with a `driver`"),
        ("- 1", ConfigError, "needs a section `arm`"),
        ("arm: {driver: standin}", UnknownNameError, "did you mean 'standing'"),
        ("arm: {driver: standing, adress: x}", ConfigError, "did you mean 'address'"),
        ("arm: {driver: standing}\nlimit: {}", ConfigError, "did you mean 'limits'"),
        ("arm: {driver: standing}\nlimits: {max_speed: -1}", ConfigError, "limits.max_speed"),
        ("arm: {driver: standing}\ncameras: [wrist]", ConfigError, "cameras"),
        ("arm: {driver: standing}\ncameras: {wrist: 0}", ConfigError, "cameras"),
        ("arm: {driver: [", ConfigError, "is not YAML"),
    ],
)
def test_what_is_wrong_is_named(written, text, error, said):
    with pytest.raises(error) as raised:
        read_robot_file(written(text))
    assert said in str(raised.value) and "\n" not in str(raised.value)
