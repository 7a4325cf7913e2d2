"""What connects a robot in its file, and what is wrong with it, in one line."""

import pytest
from lab_arm import install_lab_arm

from robot_rl.arm.robot_connection import read_connection
from robot_rl.errors import ConfigError, UnknownNameError

WHOLE = """
arm: {driver: standing, rate: 50, address: 10.0.0.7}
limits: {box_low: [0.4, -0.1, 0.1], box_high: [0.6, 0.1, 0.4], max_speed: 0.2}
cameras:
  wrist: {source: "uvc:/dev/video7", rate: 15, crop: [0, 0, 10, 10]}
  side: {source: "realsense:"}
task: {max_steps: 10}
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
    robot = read_connection(written(WHOLE))
    assert (robot.driver, robot.driver_config.rate, robot.host()) == ("standing", 50, "10.0.0.7")
    assert robot.limits.box_high == robot.cap.cap_box_high == (0.6, 0.1, 0.4)
    assert robot.cameras["wrist"].rate == 15 and robot.cameras["side"].width == 640
    assert robot.device_nodes() == ("/dev/video7",)
    assert robot.max_age == 0.2
    assert read_connection(written(f"{WHOLE}cell: {{judge: goal, max_age: 0.1}}\n")).max_age == 0.1
    assert robot.make_driver(None).measures >= {"pose", "wrench"}
    assert robot.interpolation == "driver"
    assert read_connection(written("arm: {driver: standing, interpolation: linear}")).interpolation == "linear"


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ("arm: {driver: standing, interpolation: cubic}", ConfigError, "'none', 'linear' or 'minimum_jerk'"),
        ("limits: {}", ConfigError, "needs a section `arm` with a `driver`"),
        ("- 1", ConfigError, "needs a section `arm`"),
        ("arm: {driver: standng}", UnknownNameError, "did you mean 'standing'"),
        ("arm: {driver: standing, adress: x}", ConfigError, "did you mean 'address'"),
        ("arm: {driver: standing}\nlimits: {max_speed: -1}", ConfigError, "max_speed"),
        ("arm: {driver: standing}\ncameras: [wrist]", ConfigError, "cameras: has to be a mapping"),
        ("arm: {driver: standing}\ncameras: {wrist: 0}", ConfigError, "cameras: wrist"),
        ("arm: {driver: standing}\ncameras: {wrist: {source: 0}}", ConfigError, "source"),
        ("arm: {driver: [", ConfigError, "is not YAML"),
    ],
)
def test_what_is_wrong_is_named(written, text, error, named):
    with pytest.raises(error) as raised:
        read_connection(written(text))
    assert named in str(raised.value) and "\n" not in str(raised.value)
