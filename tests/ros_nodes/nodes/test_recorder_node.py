"""The real recorder node: what passed on real topics is in the bag, and becomes episodes."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from ros_nodes_graph import DOMAIN
from running import environment, robot_rl
from std_srvs.srv import SetBool
from waiting import eventually

from robot_rl.data.store.store import EpisodeStore
from robot_rl.geometry import Pose
from robot_rl.teleop.intervention import Intervention
from ros_nodes.bridge.bag_definitions import load_type, message_type
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.recorder_node import RecorderNode

pytest.importorskip("mcap_ros2", reason="bags need mcap: pip install 'robot_rl[mcap]'")
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.reader import read_ros2_messages

DOCUMENT = Path(__file__).parents[3] / "docs" / "ros2.md"
DOWN = np.array([0.0, 1.0, 0.0, 0.0])


class Robot(RobotNode):
    """Publishes numbered poses, wrenches, frames and interventions, and something latched."""

    def __init__(self, **options):
        super().__init__("robot", **options)
        self.number = 0
        self._pose, self._twist = self.publisher(topics.POSE), self.publisher(topics.TWIST)
        self._wrench, self._hand = self.publisher(topics.WRENCH), self.publisher(topics.INTERVENTION)
        self._image, self._head = self.publisher(topics.IMAGE, camera="wrist"), self.publisher(topics.HEAD)
        self._head.publish(topics.HEAD.type(data="said before"))
        self.timer(0.02, self.tell)
        self.record = self.create_client(SetBool, topics.RECORD_SERVICE[0])

    def tell(self):
        self.number += 1
        stamp, n = self.wall.now(), float(self.number)
        self._pose.publish(convert.pose_message(stamp, Pose(np.array([n, 0.5, 0.2]), DOWN)))
        self._twist.publish(convert.twist_message(stamp, np.full(6, n)))
        self._wrench.publish(convert.wrench_message(stamp, np.full(6, -n)))
        self._image.publish(convert.image_message(stamp, np.full((8, 8, 3), self.number % 250, np.uint8), "wrist"))
        motion = np.full(6, 0.001 * n, np.float32)
        self._hand.publish(convert.intervention_message(Intervention(stamp, True, motion)))

    def ask(self, on):
        assert self.record.wait_for_service(30)
        future = self.record.call_async(SetBool.Request(data=on))
        assert eventually(future.done)
        return future.result()


def recorded(graph, folder, seconds=1.5, **parameters):
    robot, recorder = graph.add(Robot), graph.add(RecorderNode, folder=str(folder), **parameters)
    begun = robot.ask(True)
    assert begun.success
    assert eventually(lambda: int(recorder.facts()["messages"]) > 20)
    time.sleep(seconds)
    assert robot.ask(True).message == begun.message, "one bag at a time"
    done = robot.ask(False)
    assert done.success
    assert "0 dropped" in done.message
    (bag,) = folder.iterdir()
    assert str(bag) == begun.message
    return robot, recorder, bag


def test_all_topics_are_in_the_bag_also_what_was_said_before_and_nothing_is_missing(graph, tmp_path):
    robot, recorder, bag = recorded(graph, tmp_path / "bags")
    messages = {}
    for message in read_ros2_messages(str(bag)):
        messages.setdefault(message.channel.topic, []).append(message.ros_msg)
    wanted = {"/current_pose", "/current_twist", "/wrench", "/camera/wrist/image_raw", "/intervention", "/task/head"}
    assert wanted | {"/heartbeat/recorder_node", "/diagnostics"} <= set(messages)
    numbers = [int(pose.pose.position.x) for pose in messages["/current_pose"]]
    assert len(numbers) > 20
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert [m.data for m in messages["/task/head"]] == ["said before"]
    assert recorder.facts() == {}
    assert recorder.health()[1] == "does not record"
    assert robot.ask(False).message == "nothing was being recorded"


def test_only_the_topics_that_are_named_are_recorded(graph, tmp_path):
    _, _, bag = recorded(graph, tmp_path / "bags", topics=["current_pose", "wrench"], seconds=0.2)
    assert {m.channel.topic for m in read_ros2_messages(str(bag))} == {"/current_pose", "/wrench"}


def test_a_bag_becomes_episodes_by_the_mapping_of_the_document(graph, tmp_path):
    _, _, bag = recorded(graph, tmp_path / "bags")
    text = DOCUMENT.read_text()
    mapping = text[text.index("    rate: 10 ") :].split("\n\n")[0]
    (tmp_path / "mapping.yaml").write_text("\n".join(line[4:] for line in mapping.splitlines()))
    done = robot_rl("data", "import", bag, "--mapping", tmp_path / "mapping.yaml", "--out", tmp_path / "store")
    assert done.returncode == 0, done.stderr
    with EpisodeStore.open(tmp_path / "store") as store:
        episode = store.read(store.ids()[0])
    assert len(episode) >= 10
    numbers = episode.observations["state/tcp_pose"][:, 0]
    assert (np.diff(numbers) > 0).all()
    # A sample may be taken between the messages of one round.
    assert np.abs(episode.observations["state/wrench"][:, 2] + numbers).max() <= 1
    rounds = episode.observations["images/wrist"][:, 0, 0, 0].astype(int)
    assert np.abs((rounds - numbers + 125) % 250 - 125).max() <= 1
    assert np.abs(episode.action[:, 0] - 0.001 * numbers[:-1]).max() < 0.012, "of within a step of 0.1 s"


def test_a_recorder_that_is_asked_at_the_start_and_ended_by_ctrl_c_completes_its_bag(graph, tmp_path):
    robot = graph.add(Robot)
    arguments = ["--ros-args", "-p", f"folder:={tmp_path / 'bags'}", "-p", "start:=true"]
    variables = {"ROS_DOMAIN_ID": str(DOMAIN), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    command = [sys.executable, "-m", "ros_nodes.nodes.recorder_node", *arguments]
    process = subprocess.Popen(command, env=environment(**variables), stderr=subprocess.PIPE, text=True)
    try:
        assert eventually(lambda: list(tmp_path.glob("bags/*.mcap.part")))
        assert eventually(lambda: robot.count_subscribers("current_pose") > 0)
        time.sleep(2.0)
        process.terminate()
        assert process.wait(30) == 0, process.stderr.read()
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
    (bag,) = (tmp_path / "bags").iterdir()
    assert bag.suffix == ".mcap"
    assert any(m.channel.topic == "/current_pose" for m in read_ros2_messages(str(bag)))


def test_a_folder_that_cannot_be_written_is_the_answer(graph, tmp_path):
    (tmp_path / "file").write_text("")
    robot = graph.add(Robot)
    graph.add(RecorderNode, folder=str(tmp_path / "file"))
    answer = robot.ask(True)
    assert not answer.success
    assert "a file is in the way; choose another directory" in answer.message


@pytest.mark.parametrize(
    "name", sorted({f"{t.type.__module__.split('.')[0]}/msg/{t.type.__name__}" for t in topics.TOPICS})
)
def test_definitions_are_those_by_which_the_bytes_are_read(name):
    """What ROS has serialised is decoded by the definition to the same fields."""
    kind = message_type(name)
    message = load_type(name)()
    decoder = DecoderFactory()
    schema = type("Schema", (), {"id": 1, "name": name, "encoding": "ros2msg", "data": kind.definition.encode()})()
    decoded = decoder.decoder_for("cdr", schema)(serialize_message(message))
    assert deserialize_message(serialize_message(message), type(message)) == message
    assert set(decoded.__slots__) == set(message.get_fields_and_field_types())
