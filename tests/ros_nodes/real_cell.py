"""A real arm's cell: a controller that stands in for the arm, our nodes around it, and a person with a gamepad."""

import time

import numpy as np
from cartesian_controller import Controller
from sensor_msgs.msg import Joy
from std_srvs.srv import Trigger
from waiting import PATIENCE, eventually

from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.bringup.table import table_folder
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.camera_node import CameraNode
from ros_nodes.nodes.robot_node import ArmNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.task_node import TaskNode
from ros_nodes.nodes.teleop_node import TeleopNode

NAMESPACE = ["--ros-args", "-r", "__ns:=/cell"]


EXAMPLE = table_folder() / "task.yaml"
OLD = 1.5
"""Largest age of a state [s], for a busy machine."""


class Person(RobotNode):
    """Has a gamepad: holds it as told, and asks for services."""

    def __init__(self, **options):
        super().__init__("person", cli_args=NAMESPACE, **options)
        self.axes, self.buttons = np.zeros(8, np.float32), [0] * 11  # as joy_node publishes a gamepad
        self._joy = self.publisher(topics.JOY)
        self.services_ = {name: self.create_client(Trigger, f"task/{name}") for name in ("ready", "success", "failure")}
        self.timer(
            0.05, lambda: self._joy.publish(Joy(axes=self.axes.tolist(), buttons=self.buttons, header=self.now()))
        )

    def now(self):
        return convert.header(self.wall.now(), "tcp")

    def lead(self, deflection):
        """Leads up and down by the right stick."""
        self.axes[4] = deflection

    def press(self, button):
        self.buttons[button] = 1
        time.sleep(0.2)
        self.buttons[button] = 0

    def call(self, name):
        client = self.services_[name]
        assert client.wait_for_service(PATIENCE)
        future = client.call_async(Trigger.Request())
        assert eventually(future.done, 10.0)
        return future.result()

    def demonstrate(self, seconds):
        """Makes ready what waits to begin, leads for a while, and says that it is done; whether there was anything."""
        if not self.call("ready").success:
            return False
        self.lead(0.5)
        time.sleep(seconds)
        self.lead(0.0)
        return self.call("success").success


class RealCell:
    """The cell; with a source of pictures, it has a camera. The task is the example, or that of another file.

    An arm without forces has no `wrench_topic`.
    """

    def __init__(self, graph, pictures=None, task_file=EXAMPLE, wrench_topic="/external_wrench", **of_task):
        made = lambda kind: lambda **options: kind(cli_args=NAMESPACE, **options)  # noqa: E731
        self.controller, self.person = graph.add(Controller), graph.add(Person)
        low, high = [0.0, -1.0, 0.0], [1.0, 1.0, 1.0]
        arm = {"wrench_topic": wrench_topic, "wrench_frame": "base", "cap_box_low": low, "cap_box_high": high}
        self.arm = graph.add(made(ArmNode), max_age=OLD, **arm)
        self.safety = graph.add(made(SafetyNode), max_age=OLD, box_low=low, box_high=high)
        graph.add(made(TeleopNode))
        self.task = graph.add(made(TaskNode), task="plug", file=str(task_file), image_size=64, **of_task)
        self.actor = graph.add(lambda **options: RobotNode("actor_node", cli_args=NAMESPACE, **options))
        config = ActorNodeConfig(
            graph_timeout=PATIENCE, max_age=OLD, max_camera_age=OLD, max_skew=0.5, operator_timeout=OLD
        )
        options = WorkcellOptions(("wrist",) if pictures else (), (64, 64))
        if pictures:
            self.camera = graph.add(
                made(CameraNode),
                cameras=[f"wrist={pictures}" if ":" in str(pictures) else f"wrist=file:{pictures}"],
                image_size=64,
                frozen_after=0.5,
            )
        self.workcell = RosWorkcell(self.actor, config).make("plug", options)
        self.env = RobotEnv(self.workcell, interventions=True, options=options)

    def reset(self, graph, say_ready, **options):
        """Starts an episode, with somebody who says that the scene is ready once that is asked for."""
        waits = lambda: self.task.facts()["waits_for_person"]  # noqa: E731
        helper = graph.thread(lambda: eventually(waits) and say_ready())
        self.env.reset(seed=3, options=options)
        helper.join()
