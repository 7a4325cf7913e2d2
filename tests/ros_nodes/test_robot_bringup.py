"""`robot-rl up robot`: every part a process of its own, before a controller and a person who stand in for real ones."""

import contextlib
import os
import threading

import numpy as np
import pytest
import yaml
from cartesian_controller import Controller
from PIL import Image
from real_cell import Person
from ros_nodes_graph import DOMAIN
from running import environment, robot_rl

from robot_rl.data.schema import Source
from robot_rl.data.store.store import EpisodeStore
from ros_nodes.bringup.table import table_folder

CAP = {"cap_box_low": [0.0, -1.0, 0.0], "cap_box_high": [1.0] * 3}
OLD = 2.0
"""Largest age of anything [s]: a test shall not fail because its machine is busy."""


@pytest.fixture
def flags(tmp_path):
    """What describes the cell: a parameter file, a task, and a folder of pictures for a camera."""
    (tmp_path / "frames").mkdir()
    for number in range(10):
        picture = np.random.default_rng(number).integers(0, 255, (48, 64, 3), np.uint8)
        Image.fromarray(picture).save(tmp_path / "frames" / f"{number}.png")
    nodes = {
        "robot_node": {"max_age": OLD, "wrench_topic": "/external_wrench", "wrench_frame": "base", **CAP},
        "camera_node": {"cameras": [f"wrist=file:{tmp_path / 'frames'}"], "image_size": 32},
        "safety_node": {
            "max_age": OLD,
            "heartbeat_timeout": OLD,
            "liveliness_lease": OLD,
            "box_low": [0.0, -1.0, 0.0],
            "box_high": [1.0] * 3,
        },
        "actor_node": {"max_age": OLD, "max_camera_age": OLD, "max_skew": OLD, "operator_timeout": OLD},
        "task_node": {"image_size": 32},
    }
    params = {f"/**/{node}": {"ros__parameters": values} for node, values in nodes.items()}
    (tmp_path / "cell.yaml").write_text(yaml.safe_dump(params))
    task = yaml.safe_load((table_folder() / "task.yaml").read_text()) | {"max_steps": 60}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    files = ("--params", tmp_path / "cell.yaml", "--task_file", tmp_path / "task.yaml")
    return ("--namespace", "cell", *files, "--task", "plug")


def test_the_check_starts_all_nodes_but_the_one_that_commands_and_says_that_they_fit(graph, flags):
    controller = graph.add(Controller)
    variables = environment(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    done = robot_rl("up", "robot", *flags, "--check", "--domain", DOMAIN, env=variables)
    assert done.returncode == 0, done.stderr
    assert "7 nodes are there and well: topics, types and quality of service fit" in done.stdout
    assert not controller.targets


def test_the_check_says_what_is_missing_in_the_cell_and_how_to_cure_it(flags, tmp_path):
    (tmp_path / "frames").rename(tmp_path / "away")
    variables = environment(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    done = robot_rl("up", "robot", *flags, "--check", "--domain", DOMAIN, env=variables)
    assert done.returncode == 1
    assert "/cell/robot_node: no pose of the arm comes on /current_pose; is its controller active?" in done.stderr
    assert "no controller listens to /target_pose" in done.stderr
    assert "/cell/camera_node: " in done.stderr
    assert "no such video or folder; check the path" in done.stderr


@pytest.mark.skipif(
    "ROBOT_RL_REAL_TIME_TESTS" not in os.environ,
    reason="real time needs two quiet cores: set ROBOT_RL_REAL_TIME_TESTS=1 where you have them",
)
def test_a_person_demonstrates_on_the_arm_and_frames_motion_and_judgement_are_recorded(graph, flags, bringup, tmp_path):
    controller, person = graph.add(Controller), graph.add(Person)
    settings = {"observations": "pixels", "encoder.image_size": 32}
    up = bringup("robot", *flags, "--job", "demo", "--episodes", 2, name="demos", **settings)
    done = threading.Event()

    def live():
        while not done.wait(0.2):
            with contextlib.suppress(AssertionError):  # the nodes may end while they are asked
                person.demonstrate(1.5)

    thread = graph.thread(live)
    code = up.end()
    done.set()
    thread.join()
    assert code == 0, up.text()
    assert "2 demonstrations, 100% successful" in up.text()
    assert len(controller.targets) > 10
    assert not controller.refused
    with EpisodeStore.open(tmp_path / "demos") as store:
        for episode in store.episodes():
            assert (episode.source == Source.HUMAN).sum() >= 5
            led = episode.action[episode.source == Source.HUMAN]
            assert led[:, 1] == pytest.approx(0.5)
            assert episode.terminated[-1]
            assert episode.reward[-1] == 1.0
            assert episode.observations["images/wrist"].shape[1:] == (32, 32, 3)
            assert len(np.unique(episode.observations["images/wrist"], axis=0)) > 3
            assert np.ptp(episode.observations["state/tcp_pose"][:, 1]) > 0.002, "it moved along y of the tcp"
