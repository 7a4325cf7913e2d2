"""The whole flow over topics, in lockstep: the arm is driven, files come out, and `camera_node` uses them."""

import csv
from pathlib import Path

import cv2
import numpy as np
import pytest
from std_srvs.srv import SetBool
from waiting import eventually

from calibration.result import CameraIntrinsics, HandEye, load_result
from robot_rl.clock import NS_PER_S
from robot_rl.errors import CalibrationError, ConfigError, GraphError
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.calibrate_node import CalibrateNode
from ros_nodes.nodes.camera_node import CameraNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode

BOARD = "charuco:11x8:20mm:15mm"
VIEWS = 12


class Mirror:
    """The simulated arm with board and camera, the safety node, and the node that calibrates."""

    def __init__(self, graph, out, mounting="eye_in_hand", **parameters):
        self.graph, self.out = graph, out
        self.sim = graph.add(SimNode, board=BOARD, mounting=mounting, cameras=["wrist"], lockstep=True, episode_seed=1)
        self.safety = graph.add(SafetyNode, lockstep=True)
        settings = {"board": BOARD, "mounting": mounting, "robot": "fr3", "views": VIEWS, "out": str(out)}
        fast = {"speed": 0.25, "turn_rate": 1.0, "graph_timeout": 30.0, "lockstep": True}
        self.node = graph.add(CalibrateNode, **{**settings, **fast, **parameters})

    def session(self):
        """Pictures and the poses that belong to them."""
        [folder] = [path for path in self.out.iterdir() if path.is_dir()]
        with open(folder / "poses.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        poses = {row.pop("image"): np.array(list(map(float, row.values()))) for row in rows}
        return folder, {name: Pose(numbers[:3], numbers[3:]) for name, numbers in poses.items()}


class Screen(RobotNode):
    """Keeps the newest picture and what is said of its lens, of the same stamp."""

    def __init__(self, **options):
        super().__init__("screen", **options)
        self.images, self.infos = {}, {}
        self.subscribe(
            topics.IMAGE, lambda m: self.images.update({convert.stamp_of(m.header.stamp): m}), camera="wrist"
        )
        self.subscribe(
            topics.CAMERA_INFO, lambda m: self.infos.update({convert.stamp_of(m.header.stamp): m}), camera="wrist"
        )

    def both(self):
        stamp = max(self.images.keys() & self.infos.keys())
        return convert.image_of(self.images[stamp]), self.infos[stamp]


def mark(image):
    """Middle of the green ball around the tcp [px], and how many pixels it has."""
    red, green, blue = image.astype(int).transpose(2, 0, 1)
    weight = np.clip(green - np.maximum(red, blue) - 20, 0, None).astype(float)
    rows, columns = np.indices(weight.shape)
    # All of it that hangs together with its brightest point: coloured noise elsewhere is not the ball.
    _, labels = cv2.connectedComponents((cv2.GaussianBlur(weight, (0, 0), 1.0) > 4).astype(np.uint8))
    ball = labels == labels[np.unravel_index(cv2.GaussianBlur(weight, (0, 0), 2.0).argmax(), weight.shape)]
    weight = ball.astype(float)
    return np.array([(columns * weight).sum(), (rows * weight).sum()]) / weight.sum(), int(ball.sum())


def project(info, T_parent_camera, T_base_tcp, mounting):
    """Where the tcp is in a picture, by `camera_info` and the hand-eye pose [px]."""
    T_camera_parent = T_parent_camera.inverse()
    T_camera_tcp = T_camera_parent if mounting == "eye_in_hand" else T_camera_parent @ T_base_tcp
    lens = CameraIntrinsics(
        "wrist", info.width, info.height, info.distortion_model, info.k[0], info.k[4], info.k[2], info.k[5],
        tuple(info.d),
    )  # fmt: skip
    return lens.project(T_camera_tcp.position[None])[0]


def test_the_arm_is_driven_files_come_out_and_the_tcp_is_where_they_say(graph, tmp_path):
    mounting = "eye_in_hand"
    mirror = Mirror(graph, tmp_path / "out", mounting, drive=True)
    assert mirror.node.run() == 0
    assert mirror.node.session.count >= VIEWS
    path = mirror.out / "wrist_hand_eye.yaml"
    hand_eye, quality = load_result(path, HandEye)
    assert quality.good
    hand_eye.require(robot="fr3", camera="wrist", size=(480, 360))
    assert {p.name for p in mirror.out.iterdir() if p.is_file()} == {
        "wrist_intrinsics.yaml", "wrist_intrinsics.html", "wrist_camera_info.yaml", "wrist_hand_eye.yaml",
        "wrist_hand_eye.html",
    }  # fmt: skip
    folder, poses = mirror.session()
    box = mirror.node.config
    assert all((T.position > np.array(box.box_low) - 0.01).all() for T in poses.values())
    assert all((T.position < np.array(box.box_high) + 0.01).all() for T in poses.values())
    # The camera of the mirror is a folder of what it has seen, for the driver that real cameras have.
    screen = graph.add(Screen)
    shown = pictures_with_ball(folder, poses, tmp_path)
    assert len(shown) >= 2
    graph.add(
        CameraNode, cameras=[f"wrist=file:{tmp_path / 'shown'}"], calibrations=[f"wrist={path}"], image_size=0,
        frozen_after=0.0, capture_rate=20.0, capture_width=0,
    )  # fmt: skip
    assert eventually(lambda: screen.images.keys() & screen.infos.keys())
    _, info = screen.both()
    assert (info.width, info.height, info.distortion_model) == (480, 360, "rational_polynomial")
    for seen, T in shown:
        off = np.linalg.norm(project(info, hand_eye.T_parent_camera, T, mounting) - seen)
        assert off < 1.0


def pictures_with_ball(folder: Path, poses, tmp_path):
    """Those in which the tcp is seen whole and by itself: where, and the arm's pose. They are copied to `shown`."""
    (tmp_path / "shown").mkdir()
    found = []
    for name, T in poses.items():
        image = cv2.imread(str(folder / name))[:, :, ::-1]
        center, pixels = mark(image)
        inside = ((center > 20) & (center < np.array(image.shape[1::-1]) - 20)).all()
        if pixels > 12 and inside:
            found.append((center, T))
            cv2.imwrite(str(tmp_path / "shown" / name), image[:, :, ::-1])
    return found


class Person(RobotNode):
    """Sees what is commanded, and gives consent."""

    def __init__(self, **options):
        super().__init__("person", **options)
        self.commands = []
        self.subscribe(topics.COMMAND, self.commands.append)
        self._drive = self.create_client(topics.DRIVE_SERVICE[1], topics.DRIVE_SERVICE[0])

    def consents(self, to):
        assert self._drive.wait_for_service(20.0)
        answer = self._drive.call_async(SetBool.Request(data=to))
        assert eventually(answer.done)
        return answer.result().message


def test_nothing_is_driven_without_consent_and_the_arm_holds_when_it_is_taken_back(graph, tmp_path, monkeypatch):
    mirror, person = Mirror(graph, tmp_path / "out", graph_timeout=30.0), graph.add(Person)
    ended = []

    def run():
        try:
            mirror.node.run()
        except Exception as error:  # noqa: BLE001  (ROS is shut down under it when the test is over)
            ended.append(error)

    helper = graph.thread(run)
    assert eventually(lambda: mirror.node.session.count == 1)
    before = mirror.node.lockstep.now()
    assert eventually(lambda: mirror.node.lockstep.now() > before + NS_PER_S)
    assert not any(message.points for message in person.commands)
    assert person.consents(to=True) == "the arm is driven from now on"
    assert eventually(lambda: any(message.points for message in person.commands))
    assert person.consents(to=False) == "the arm is driven no more"
    assert eventually(lambda: not person.commands[-1].points), "no stop"
    count = len(person.commands)
    before = mirror.node.lockstep.now()
    assert eventually(lambda: mirror.node.lockstep.now() > before + NS_PER_S)
    assert len(person.commands) == count
    monkeypatch.setattr("ros_nodes.bridge.lockstep_clock.PATIENCE", 0.3)
    assert eventually(lambda: ended or mirror.node.lockstep.now() > before + 2 * NS_PER_S)
    graph.close()
    helper.join(40)
    assert ended, "the thread of the test still runs"


@pytest.mark.parametrize(
    ("parameters", "error", "reason"),
    [
        ({"board": "chess"}, CalibrationError, "e.g. charuco:11x8:20mm:15mm"),
        ({"intrinsics": "no.yaml"}, CalibrationError, "no.yaml: no such file"),
        ({"box_low": [0.3, 0.3], "box_high": [0.7, 0.3, 0.4]}, ConfigError, "three numbers each"),
        ({"mounting": "eye_in_eye"}, ConfigError, "mounting"),
        (
            {"graph_timeout": 0.2},
            GraphError,
            "nobody publishes /camera/wrist/image_raw; nobody publishes /current_pose",
        ),
    ],
)
def test_wrong_parameters_and_a_missing_cell_are_named(graph, tmp_path, parameters, error, reason):
    settings = {"out": str(tmp_path), **parameters}
    with pytest.raises(error, match=reason):
        graph.add(CalibrateNode, **settings).run()
    assert list(tmp_path.iterdir()) == []
