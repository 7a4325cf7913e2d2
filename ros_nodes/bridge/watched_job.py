"""The job that runs on a robot, as its topics show it, for the operator console."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import String
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.clock import NS_PER_S
from robot_rl.console.job_state import JobState
from robot_rl.console.scene import Geometry
from robot_rl.data.schema import Source
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.errors import GraphError
from robot_rl.geometry import Pose
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.interface.described_arm import DescribedArm
from ros_nodes.interface.task_messages import Advanced, CameraCalibration, Estimates, TaskHead, from_text
from ros_nodes.node.operator_ready import FACT, to_make_ready
from ros_nodes.node.robot_node_base import RobotNode, is_neighbour

IDLE = 1.0
"""Time without a command after which no episode runs [s]."""


class WatchedJob:
    """Follows episodes, steps, and who is in control.

    Args:
        node: Its subscriptions are used.
        on_episode: Called when an episode starts.
    """

    def __init__(self, node: RobotNode, on_episode: Callable[[], None]) -> None:
        self._node, self._on_episode = node, on_episode
        self.arrivals = Arrivals()
        """Rung when the task is known."""
        self._head: TaskHead | None = None
        self._mounts: dict[str, CameraMount] = {}
        self._arm = DescribedArm()
        self.geometry = Geometry(self._mounts, self._arm.links)
        """Of the robot, as far as it is published."""
        self.targets: dict[str, Pose] = {}
        """The newest set-points that the safety node passed on, by arm; a single one has no name."""
        self.waits = False
        """Whether the task waits until the operator has made the scene ready."""
        self.advanced = -1
        """In lockstep, stamp [ns] of the state that the simulation waits with; -1 before the first."""
        self._episode, self._steps, self._call = -1, 0, ""
        self._led: dict[str, bool] = {}  # by arm, whether the operator leads it
        self._commanded = 0  # when the last command came
        node.subscribe(topics.HEAD, self._receive_head)
        node.subscribe(topics.ESTIMATES, self._receive_estimates)
        node.subscribe(topics.DIAGNOSTICS, self.receive_diagnostics)
        node.subscribe(topics.CALL, self._receive_call)
        node.subscribe(topics.ADVANCED, self._receive_advanced)
        node.subscribe(topics.ROBOT_DESCRIPTION, lambda message: self._arm.describe(message.data))
        self._names = node.subscribe(topics.JOINTS, self._receive_names)

    def wait_for_head(self, timeout: float) -> TaskHead:
        """Return the facts of the task.

        Raises:
            GraphError: if no node publishes them within `timeout` [s].
        """
        if not self.arrivals.wait_for(lambda: self._head is not None, timeout) or not self._head:
            raise GraphError(f"no node has published the task on {topics.HEAD.name}; is the robot running?")
        return self._head

    def show(self, board: JobState, *, stopped: bool, judged: bool) -> None:
        """Show the state of the job.

        Args:
            board: Where.
            stopped: Whether the safety node has stopped the arm.
            judged: Whether an actor receives judgements.
        """
        source = None
        if self._node.wall.now() - self._commanded < IDLE * NS_PER_S:  # an episode runs
            by_script = self._head is not None and self._head.operator == "script"
            operator = Source.SCRIPT if by_script else Source.HUMAN
            source = Source.HOLD if stopped else operator if any(self._led.values()) else Source.POLICY
        board.follow(f"episode {self._episode}", self._steps, source)
        board.call(self._call)
        if self.waits:
            board.phase("ready", self._to_do(), ("start",))
            return
        board.phase(
            "acting", "Move to take over; let go to hand back.", ("success", "failure", "reset") if judged else ()
        )

    def _to_do(self) -> str:
        if self._head is None or self._head.simulation is not None:
            return "Press Start; then lead."
        return f"{to_make_ready(self._head.spec).capitalize()}; then press Start."

    def _receive_head(self, message: String) -> None:
        known, self._head = self._head, from_text(TaskHead, message.data)
        if known is None:
            self._watch(self._head)
        self.arrivals.ring()

    def _receive_call(self, message: String) -> None:
        self._call = message.data

    def _watch(self, head: TaskHead) -> None:
        """Subscribe to what the arms and cameras of the task publish."""
        node, arms = self._node, tuple(head.spec.arms)
        for camera in head.cameras:
            node.subscribe(topics.CALIBRATION, partial(self._receive_calibration, camera), camera=camera)
        node.subscribe(topics.COMMAND.of_arms(arms), self._receive_command)
        for arm in head.spec.each:
            node.subscribe(topics.INTERVENTION.of_arm(arm), partial(self._receive_intervention, arm))
            node.subscribe(topics.SET_POINT.of_arm(arm), partial(self._receive_set_point, arm))

    def _receive_calibration(self, camera: str, message: String) -> None:
        mount = from_text(CameraCalibration, message.data).mount
        if mount is not None:
            self._mounts[camera] = mount

    def _receive_set_point(self, arm: str, message: PoseStamped) -> None:
        self.targets[arm] = convert.pose_of(message.pose)

    def _receive_names(self, message: JointState) -> None:
        self._node.destroy_subscription(self._names)  # they stay what they are
        self._arm.name(message.name)

    def _receive_estimates(self, message: String) -> None:
        episode = from_text(Estimates, message.data).episode
        if episode != self._episode:
            self._episode, self._steps = episode, 0
            self._on_episode()

    def _receive_intervention(self, arm: str, message: Joy) -> None:
        self._led[arm] = convert.intervention_of(message).active

    def _receive_command(self, message: MultiDOFJointTrajectory) -> None:
        if message.points:  # otherwise a stop
            self._steps, self._commanded = self._steps + 1, self._node.wall.now()

    def _receive_advanced(self, message: String) -> None:
        self.advanced = from_text(Advanced, message.data).stamp

    def receive_diagnostics(self, message: DiagnosticArray) -> None:
        """Note whether the task of this robot waits; reports of other robots in the domain do not count."""
        ours = [status for status in message.status if is_neighbour(self._node, status.name)]
        facts = {pair.key: pair.value for status in ours for pair in status.values}
        if FACT in facts:
            self.waits = facts[FACT] == "True"
