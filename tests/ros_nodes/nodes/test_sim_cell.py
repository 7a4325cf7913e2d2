"""The simulated arm behind topics, told what calibrations found: of its cameras, and of how the arm moves."""

import dataclasses

import numpy as np
import pytest
from waiting import eventually

from calibration.result import CameraIntrinsics, HandEye, Quality, SimulatedArm, save_result
from robot_rl.config.components import SimulationConfig, TrainConfig
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import CalibrationError, ConfigError, GraphError
from robot_rl.run.directory.calibrations import Calibrations
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode

LENS = CameraIntrinsics("wrist", 64, 64, "plumb_bob", 60.0, 61.0, 31.0, 33.0, (0.1, -0.2, 1e-3, 2e-3, 0.3))
SIX = tuple(map(tuple, np.eye(6).tolist()))
HAND_EYE = HandEye("fr3", "eye_in_hand", (0.0, 0.0, 0.1), (1.0, 0.0, 0.0, 0.0), SIX, LENS, "x", 0.0, 0.0)
ARM = SimulatedArm(
    "fr3", SimulationConfig(0.1, 0.1, 1.0, 1.0, 1500.0, 40.0, 0.02), tuple(map(tuple, np.eye(7).tolist()))
)


def saved(result, path):
    save_result(result, Quality(True, "good"), path)
    return path


def start(graph, **parameters):
    settings = {"task": "reach", "lockstep": True, "cameras": ["wrist"], "image_size": 64}
    sim = graph.add(SimNode, **{**settings, **parameters})
    return sim, graph.add(lambda **made: RobotNode("actor_node", **made))


def test_camera_info_is_that_of_the_calibration_and_a_run_records_which(graph, tmp_path):
    file = saved(HAND_EYE, tmp_path / "wrist.yaml")
    infos = []
    watcher = graph.add(lambda **made: RobotNode("watcher", **made))
    watcher.subscribe(topics.CAMERA_INFO, infos.append, camera="wrist")
    _, actor = start(graph, calibrations=[f"wrist={file}"], robot="fr3")
    cell = RosWorkcell(actor, ActorNodeConfig(graph_timeout=20.0))
    [record] = cell.calibrations(["wrist"])
    assert (record.kind, record.name, record.robot, record.text) == ("hand_eye", "wrist", "fr3", file.read_text())
    config = TrainConfig(observations="pixels")
    facts = Calibrations.of(config, [record]).facts()
    assert facts["hand_eye of wrist"]["sha256"] == record.sha256
    named = saved(dataclasses.replace(HAND_EYE, position=(0.0, 0.0, 0.2)), tmp_path / "other.yaml")
    with pytest.raises(CalibrationError, match=r"the run names .*other.yaml .* but the camera has .*wrist.yaml"):
        Calibrations.of(dataclasses.replace(config, calibrations=(str(named),)), [record])
    graph.add(SafetyNode, lockstep=True)
    cell.make("reach", WorkcellOptions(cameras=("wrist",), image_size=(64, 64))).task.reset(0)
    assert eventually(lambda: infos)
    info = infos[-1]
    assert (info.width, info.height, info.distortion_model) == (64, 64, "plumb_bob")
    assert np.reshape(info.k, (3, 3)).tolist() == LENS.matrix.tolist()
    assert list(info.d) == list(LENS.distortion)


def test_a_calibration_of_another_camera_resolution_or_robot_is_refused(graph, tmp_path):
    for result, robot, reason in (
        (dataclasses.replace(LENS, camera="front"), "", "of camera 'front', not of 'wrist'"),
        (dataclasses.replace(LENS, width=640), "", "are for 640 x 64 px, the images have 64 x 64 px"),
        (HAND_EYE, "ur5", "of robot 'fr3', not of 'ur5'"),
    ):
        file = saved(result, tmp_path / "wrist.yaml")
        with pytest.raises(CalibrationError, match=reason):
            start(graph, calibrations=[f"wrist={file}"], robot=robot)
    with pytest.raises(ConfigError, match="with a board there is one camera; cameras are wrist, front"):
        start(graph, board="charuco:11x8:20mm:15mm", cameras=["wrist", "front"])


def test_an_identified_arm_is_simulated_and_a_run_has_to_know_it(graph, tmp_path):
    file = saved(ARM, tmp_path / "arm.yaml")
    sim, actor = start(graph, arm=str(file), robot="fr3", cameras=[""])
    assert sim.cell.playback.own == ARM.settings
    graph.add(SafetyNode, lockstep=True)
    cell = RosWorkcell(actor, ActorNodeConfig(graph_timeout=20.0))
    with pytest.raises(GraphError, match=r"`simulation` is the task's, the arm here is .*translation_stiffness 1500"):
        cell.make("reach", WorkcellOptions())
    cell.make("reach", WorkcellOptions(simulation=ARM.settings)).task.reset(0)
    config = TrainConfig(task="reach", simulation=ARM.settings, calibrations=(str(file),))
    assert "sim of fr3" in Calibrations.of(config).facts()
    with pytest.raises(CalibrationError, match=r"arm.yaml describes an arm with .*--train-config"):
        Calibrations.of(TrainConfig(task="reach", calibrations=(str(file),)))


def test_an_arm_that_was_identified_with_another_tool_is_refused(graph, tmp_path):
    with pytest.raises(CalibrationError, match="of robot 'fr3', not of 'ur5'"):
        start(graph, arm=str(saved(ARM, tmp_path / "arm.yaml")), robot="ur5")
