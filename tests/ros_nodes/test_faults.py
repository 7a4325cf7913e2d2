"""Things that go wrong in a cell: each stops the arm or is refused, with a reason on the console and in diagnostics."""

import threading
import time

import msgpack
import numpy as np
import pytest
from fakes import SPEC
from PIL import Image
from real_cell import RealCell
from std_msgs.msg import String
from waiting import PATIENCE, eventually

from robot_rl.config.components import ReplayConfig, SACConfig, TrainConfig
from robot_rl.errors import CheckpointError, LinkError, RobotRLError, StaleStateError
from robot_rl.learn.perception import Perception
from robot_rl.link.learner_process import LearnerServer
from robot_rl.link.messages import PROTOCOL, Parameters
from robot_rl.link.remote_learner import RemoteLearner
from robot_rl.link.socket import PeerGoneError
from robot_rl.spec import ArraySpec
from ros_nodes.bridge.link_topics import ActorOverTopics, Conversations, LearnerOverTopics
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import VERSION, OutcomeMessage, to_text
from ros_nodes.node.robot_node_base import RobotNode

STILL = np.zeros(4, np.float32)


def refused(node, text):
    """Whether a node has said so, on the console and in its diagnostics, which are made of the same."""
    return eventually(lambda: any(text in problem for problem in node.problems))


def steps_until_stale(cell):
    """Steps until the environment refuses to; why."""
    end = time.monotonic() + PATIENCE
    with pytest.raises(StaleStateError) as caught:
        while time.monotonic() < end:
            cell.env.step(STILL)
            if cell.env._state is None:
                pytest.fail("the episode has ended before")
    return str(caught.value)


def begun(graph, pictures=None):
    cell = RealCell(graph, pictures)
    cell.reset(graph, lambda: cell.person.call("ready"))
    for _ in range(3):
        cell.env.step(STILL)
    return cell


def test_a_camera_that_freezes_stops_the_arm_and_is_named_with_the_cure(graph, tmp_path):
    def show(levels):
        for number, level in enumerate(levels):
            Image.fromarray(np.full((64, 64, 3), level, np.uint8)).save(tmp_path / f"{number:02d}.png")

    show(range(0, 200, 10))
    cell = begun(graph, tmp_path)
    show([90] * 20)
    assert "newest camera wrist is" in steps_until_stale(cell)
    assert refused(cell.camera, "camera wrist is frozen: its picture has not changed for 0.5 s; it is opened again")
    assert eventually(lambda: np.abs(cell.controller.velocity).max() < 1e-3)
    show(range(0, 200, 10))
    assert eventually(lambda: cell.camera.cameras[0].feed.state().fault is None)
    cell.reset(graph, lambda: cell.person.call("ready"))
    cell.env.step(STILL)


def test_stamps_that_jump_back_stop_the_arm_and_are_named(graph):
    cell = begun(graph)
    cell.controller.stamp_shift = -60 * 10**9
    assert "is" in steps_until_stale(cell)
    assert refused(cell.arm, "the pose's stamp does not rise")
    assert eventually(lambda: "the arm's" in cell.safety.health()[1])


def test_a_nan_in_the_wrench_stops_the_arm_and_is_named(graph):
    cell = begun(graph)
    cell.controller.wrench = np.array([0.0, np.nan, 0, 0, 0, 0])
    assert "newest wrench" in steps_until_stale(cell)
    assert eventually(lambda: "the arm's wrench is" in cell.safety.health()[1])
    assert refused(cell.arm, "the wrench was refused: its value has a NaN or an infinity")


def test_a_verdict_of_a_later_version_is_refused_and_both_versions_are_named(graph):
    cell = begun(graph)
    text = to_text(OutcomeMessage(1, cell.actor.wall.now(), True, 1.0, None, {}))
    later = text.replace(f'"version": {VERSION}', f'"version": {VERSION + 1}')
    publisher = cell.person.publisher(topics.VERDICT)
    assert eventually(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(String(data=later))
    assert refused(cell.actor, f"a OutcomeMessage of version {VERSION + 1}, this program reads {VERSION}; run the same")
    assert not cell.env.step(STILL)[2], "a success that is not understood is none"


class Link:
    """An actor and a learner on two nodes, joined by the topics of the link."""

    def __init__(self, graph):
        actor = graph.add(lambda **options: RobotNode("actor_node", **options))
        learner = graph.add(lambda **options: RobotNode("learner_node", **options))
        self.served = ActorOverTopics(learner)
        self.server = threading.Thread(target=self._serve, daemon=True)
        self.server.start()
        perception = Perception({"state/tag": ArraySpec((2,))})
        config = TrainConfig(processes=2, sac=SACConfig(hidden_sizes=(8, 8)), replay=ReplayConfig(capacity=500))
        peer = LearnerOverTopics(actor)
        self.actor = RemoteLearner(SPEC.environment, perception, config, wait_between_steps=True, peer=peer)

    def _serve(self):
        self.served.next_actor()
        LearnerServer(self.served).run()

    def raised(self):
        """What the actor raises when it looks between two steps."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                self.actor.catch_up()
            except RobotRLError as error:
                return error
            time.sleep(0.02)
        return None

    def parameters(self):
        return {name: value.numpy().copy() for name, value in self.actor.policy.policy_state().items()}

    def close(self):
        self.actor.peer.close(None)
        self.served.close()


@pytest.fixture
def link(graph):
    made = Link(graph)
    yield made
    made.close()


def test_weights_of_another_architecture_are_refused_and_nothing_of_them_is_taken_over(link):
    before = link.parameters()
    names = list(before)
    other = {name: array + 1.0 for name, array in before.items()}
    other[names[-1]] = np.zeros((5, 5), np.float32)
    link.served.send(Parameters(updates=10**6, arrays=other))
    error = link.raised()
    assert isinstance(error, CheckpointError)
    assert "these parameters belong to another policy" in str(error)
    assert names[-1] in str(error)
    assert all(np.array_equal(array, before[name]) for name, array in link.parameters().items())


def test_a_message_of_a_later_protocol_ends_the_conversation_and_both_versions_are_named(link):
    link.served._link.stream.post(msgpack.packb([PROTOCOL + 1, {"something": "else"}]))
    error = link.raised()
    assert isinstance(error, LinkError)
    assert f"version {PROTOCOL + 1}, this program {PROTOCOL}; run the same robot_rl" in str(error)


def test_a_frame_of_a_later_version_is_refused_and_both_versions_are_named(graph):
    actor = graph.add(lambda **options: RobotNode("actor_node", **options))
    learner = graph.add(lambda **options: RobotNode("learner_node", **options))
    served = ActorOverTopics(learner)
    sender = actor.publisher(topics.TO_LEARNER)
    assert eventually(lambda: sender.get_subscription_count() == 1)
    sender.publish(topics.TO_LEARNER.type(data=b"RRLF" + (99).to_bytes(2, "little") + bytes(60)))
    assert refused(learner, "the peer's frames are of version 99, this program reads 1; run the same robot_rl on both")
    served.close()


def test_the_first_words_of_an_actor_that_takes_anothers_place_are_heard():
    """They may wait before the learner, which is busy, has noticed that there is a new one."""
    said = Conversations()
    said.begin()
    said.add(b"first")
    said.next_actor()
    assert said.take() == b"first"
    said.begin()
    said.add(b"second")
    with pytest.raises(PeerGoneError):
        said.take()
    said.next_actor()
    assert said.take() == b"second"
