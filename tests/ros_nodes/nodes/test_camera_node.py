"""The real camera node over real topics; its camera is a folder of pictures, which can be taken away and frozen."""

import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from PIL import Image
from ros_nodes_graph import Graph
from waiting import eventually

from calibration.result import CameraIntrinsics, HandEye, Quality, save_result, write_camera_info
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.errors import CalibrationError, ConfigError, UnknownNameError
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import CameraCalibration, from_text
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.camera_node import CameraNode

LENS = CameraIntrinsics("wrist", 64, 48, "plumb_bob", 60.0, 61.0, 31.0, 23.0, (0.1, -0.2, 1e-3, 2e-3, 0.3))
PATIENT = {"frozen_after": 0.4, "silent_after": 2.0, "retry": 0.05}
"""Quick to open a camera again, slow to call it silent: the machine may be busy."""


class Screen(RobotNode):
    """Keeps what it is shown."""

    def __init__(self, **options):
        super().__init__("screen", **options)
        self.images, self.infos, self.status = [], [], []
        self.subscribe(topics.IMAGE, self.images.append, camera="wrist")
        self.subscribe(topics.CAMERA_INFO, self.infos.append, camera="wrist")
        self.subscribe(topics.DIAGNOSTICS, self._take)

    def _take(self, message):
        self.status += [status for status in message.status if status.name == "/camera_node"]


def pictures(folder, levels):
    folder.mkdir(exist_ok=True)
    for number, level in enumerate(levels):
        image = np.full((48, 64, 3), level, np.uint8)
        image[:, :8] = 255  # is not in the square in the middle
        Image.fromarray(image).save(folder / f"{number:03d}.png")


class Rig:
    def __init__(self, graph, folder):
        self.graph, self.folder = graph, folder
        pictures(folder, range(10, 60, 10))
        self.screen = graph.add(Screen)

    def start(self, **parameters):
        settings = {"cameras": [f"wrist=file:{self.folder}"], "image_size": 32, "capture_rate": 20.0, **PATIENT}
        self.node = self.graph.add(CameraNode, **{**settings, **parameters})
        return self.node

    def goes_on(self):
        count = len(self.screen.images)
        return eventually(lambda: len(self.screen.images) > count + 3)

    def says(self, level, text):
        return eventually(lambda: any(s.level == level and text in s.message for s in self.screen.status[-2:]))


@pytest.fixture
def rig(tmp_path):
    graph = Graph()
    yield Rig(graph, tmp_path / "frames")
    graph.close()


def test_frames_come_cut_and_resized_with_the_stamp_of_their_capture(rig):
    before = time.time_ns()
    rig.start()
    assert rig.goes_on()
    for message in rig.screen.images:
        image = convert.image_of(message)
        assert image.shape == (32, 32, 3)
        assert (image == image[0, 0]).all(), "the white edge is outside of the square"
        assert image[0, 0, 0] in range(10, 60, 10)
        assert message.header.frame_id == "wrist_optical_frame"
        assert before - 50_000_000 < convert.stamp_of(message.header.stamp) < time.time_ns()
    stamps = [convert.stamp_of(message.header.stamp) for message in rig.screen.images]
    assert stamps == sorted(set(stamps))


def test_without_a_calibration_the_info_says_so_and_with_one_it_is_that_of_the_shown_frame(rig, tmp_path):
    node = rig.start()
    assert eventually(lambda: rig.screen.infos)
    assert (rig.screen.infos[-1].width, rig.screen.infos[-1].k[0]) == (32, 0.0)
    rig.graph.remove(node)
    save_result(LENS, Quality(True, "good"), tmp_path / "wrist.yaml")
    rig.screen.infos.clear()
    rig.start(calibrations=[f"wrist={tmp_path / 'wrist.yaml'}"])
    assert eventually(lambda: rig.screen.infos)
    info = rig.screen.infos[-1]
    # 48 px in the middle of 64 become 32: (31 + 0.5 - 8) * 2 / 3 - 0.5 and (23 + 0.5) * 2 / 3 - 0.5.
    assert info.k.tolist() == pytest.approx([40.0, 0, 23.5 * 2 / 3 - 0.5, 0, 61 * 2 / 3, 23.5 * 2 / 3 - 0.5, 0, 0, 1])
    assert (info.width, info.height, info.distortion_model) == (32, 32, "plumb_bob")
    assert list(info.d) == list(LENS.distortion)
    assert np.reshape(info.p, (3, 4))[:, :3].tolist() == np.reshape(info.k, (3, 3)).tolist()
    assert info.header.stamp == next(m for m in rig.screen.images if m.header.stamp == info.header.stamp).header.stamp


def test_where_a_camera_is_comes_from_its_hand_eye_calibration(rig, tmp_path):
    six = tuple(map(tuple, np.eye(6).tolist()))
    file = tmp_path / "wrist.yaml"
    hand_eye = HandEye("fr3", "eye_in_hand", (0.0, 0.1, 0.2), (0.0, 1.0, 0.0, 0.0), six, LENS, "x", 0.0, 0.0)
    save_result(hand_eye, Quality(True, "good"), file)
    published = []
    rig.screen.subscribe(topics.CALIBRATION, published.append, camera="wrist")
    rig.start(calibrations=[f"wrist={file}"], robot="fr3")
    assert eventually(lambda: published)
    mount = from_text(CameraCalibration, published[-1].data).mount
    assert mount == CameraMount("tcp", (0.0, 0.1, 0.2), (0.0, 1.0, 0.0, 0.0))


def test_a_calibration_of_another_camera_is_refused_at_the_start(rig, tmp_path):
    write_camera_info(CameraIntrinsics("front", 64, 48, *LENS_NUMBERS), tmp_path / "front.yaml")
    with pytest.raises(CalibrationError, match="intrinsics of camera 'front', not of 'wrist'"):
        rig.start(calibrations=[f"wrist={tmp_path / 'front.yaml'}"])


LENS_NUMBERS = (LENS.model, LENS.fx, LENS.fy, LENS.cx, LENS.cy, LENS.distortion)


def test_a_calibration_of_another_resolution_is_refused_and_no_frame_goes_out(rig, tmp_path):
    write_camera_info(CameraIntrinsics("wrist", 640, 480, *LENS_NUMBERS), tmp_path / "wrist.yaml")
    rig.start(calibrations=[f"wrist={tmp_path / 'wrist.yaml'}"])
    assert rig.says(DiagnosticStatus.ERROR, "'wrist' are for 640 x 480 px, the images have 64 x 48 px")
    assert not rig.screen.images


def test_a_camera_that_is_unplugged_is_reported_and_goes_on_when_it_is_back(rig):
    rig.start()
    assert rig.goes_on()
    rig.folder.rename(rig.folder.with_name("away"))
    assert rig.says(DiagnosticStatus.ERROR, "frames")
    count = len(rig.screen.images)
    time.sleep(0.2)
    assert len(rig.screen.images) == count
    rig.folder.with_name("away").rename(rig.folder)
    assert rig.goes_on()
    assert rig.says(DiagnosticStatus.OK, "ok") or rig.says(DiagnosticStatus.WARN, "too slow")
    values = {value.key: value.value for value in rig.screen.status[-1].values}
    assert int(values["wrist opened"]) >= 2
    assert float(values["wrist age_s"]) < 2.0
    assert {"wrist rate_hz", "wrist dropped", "wrist capture_to_publish_ms"} <= set(values)


def test_a_frozen_camera_is_reported_with_the_cure_and_its_frames_are_kept_back(rig):
    rig.start()
    assert rig.goes_on()
    pictures(rig.folder, [50] * 5)
    assert rig.says(DiagnosticStatus.ERROR, "camera wrist is frozen: its picture has not changed for 0.4 s")
    assert "unplug it and plug it in again" in rig.screen.status[-1].message
    time.sleep(0.1)
    count = len(rig.screen.images)
    time.sleep(0.5)
    assert len(rig.screen.images) == count
    pictures(rig.folder, range(10, 60, 10))
    assert rig.goes_on()


@pytest.mark.parametrize(
    ("parameters", "error", "reason"),
    [
        ({"cameras": [""]}, ConfigError, "no camera is named"),
        ({"cameras": ["wrist"]}, ConfigError, "cameras: an entry has to be NAME=VALUE, got 'wrist'"),
        ({"cameras": ["wrist=webcam:0"]}, ConfigError, "no camera is called 'webcam:0'; valid: uvc:DEVICE"),
        ({"crops": ["front=0,0,8,8"]}, UnknownNameError, "unknown name in crops 'front'; valid: wrist"),
        ({"crops": ["wrist=0,0,8"]}, ConfigError, "LEFT,TOP,WIDTH,HEIGHT in whole pixels, got '0,0,8'"),
        ({"calibrations": ["wrist=/no/file"]}, CalibrationError, "no such file"),
    ],
)
def test_wrong_parameters_are_named(rig, parameters, error, reason):
    with pytest.raises(error, match=reason):
        rig.start(**parameters)


def test_a_crop_outside_of_the_frame_is_reported(rig):
    rig.start(crops=["wrist=32,0,48,48"])
    assert rig.says(DiagnosticStatus.ERROR, "not inside frames of 64 x 48 px")
    assert not rig.screen.images
