"""The workcell behind topics: what `RobotEnv` stands on, here and on the robot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from std_msgs.msg import String

from robot_rl.clock import Clock
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.state_assembler import camera_part
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import GraphError
from robot_rl.run.directory.calibrations import CalibrationRecord
from ros_nodes.bridge.lockstep_clock import LockstepClock
from ros_nodes.bridge.ros_intervention import RosIntervention
from ros_nodes.bridge.ros_robot_io import RosRobotIO, freshness_of
from ros_nodes.bridge.ros_task import RosScene, RosTask, RosTurn, TaskServer
from ros_nodes.bridge.task_check import check_task
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import CameraCalibration, TaskHead, from_text
from ros_nodes.node.robot_node_base import RobotNode


class _Connection(NamedTuple):
    """An arm behind topics, and the node that has the task."""

    io: RosRobotIO
    lockstep: LockstepClock | None
    server: TaskServer
    scene: RosScene | None
    cameras: tuple[str, ...]


class RosWorkcell:
    """The other nodes as robot, clock, task and operator.

    Args:
        node: Whose publishers, subscriptions and clients; it is being spun in another thread.
        config: How old things may be, and how long to wait for the other nodes.

    Raises:
        GraphError: if a node that is needed does not show up.
    """

    def __init__(self, node: RobotNode, config: ActorNodeConfig) -> None:
        self._node, self._config = node, config
        self._arrivals = Arrivals()
        self._head: TaskHead | None = None
        self._shared: _Connection | None = None  # by tasks that take turns
        node.subscribe(topics.HEAD, self._receive_head)
        self._intervention = RosIntervention(node, self._arrivals)
        if not self._arrivals.wait_for(lambda: self._head is not None, config.graph_timeout):
            raise GraphError(
                f"no node has published the task on {topics.HEAD.name} within {config.graph_timeout:g} s; "
                f"is sim_node or task_node running in this namespace and ROS domain?{self._seen()}"
            )

    @property
    def head(self) -> TaskHead:
        """The facts of the task, as its node publishes them."""
        if self._head is None:
            raise GraphError("the task is not known yet")
        return self._head

    def calibrations(self, cameras: Sequence[str]) -> list[CalibrationRecord]:
        """Return the calibrations that these cameras publish; drivers other than ours publish none.

        Raises:
            GraphError: if a camera of ours announces one and does not send it.
        """
        received: dict[str, CameraCalibration] = {}
        node, limit = self._node, self._config.graph_timeout

        def receive(camera: str, message: String) -> None:
            received[camera] = from_text(CameraCalibration, message.data)
            self._arrivals.ring()

        names = {c: node.resolve_topic_name(topics.CALIBRATION.name.format(camera=c)) for c in cameras}
        for camera in cameras:
            node.subscribe(topics.CALIBRATION, partial(receive, camera), camera=camera)
        images = [node.resolve_topic_name(topics.IMAGE.name.format(camera=c)) for c in cameras]
        self._arrivals.wait_for(lambda: all(node.count_publishers(name) for name in images), limit)
        if not self._arrivals.wait_for(
            lambda: all(c in received or not node.count_publishers(name) for c, name in names.items()), limit
        ):
            silent = ", ".join(names[c] for c in cameras if c not in received)
            raise GraphError(f"nothing has come on {silent} within {limit:g} s, although it is published")
        return [message.record for message in received.values() if message.record is not None]

    def make(self, task: str, options: WorkcellOptions) -> Workcell:
        """Return the workcell, once every node that is needed is there.

        Raises:
            GraphError: if the task is another, or a node is missing.
            UnknownNameError: if a camera is not published.
        """
        head = self.head.of_turn(task)
        check_task(head, task, options)
        if not head.turns:
            return self._workcell(head, self._connect(options.cameras))
        if self._shared is None:  # tasks that take turns have one arm, which sees all that there is to see
            self._shared = self._connect(head.cameras)
        return self._workcell(head, self._shared)

    def _connect(self, cameras: Sequence[str]) -> _Connection:
        """Return the arm behind topics, with these cameras."""
        node, head = self._node, self.head
        freshness = freshness_of(
            max_age=self._config.max_age,
            max_camera_age=self._config.max_camera_age,
            max_skew=self._config.max_skew,
            lockstep=head.lockstep,
        )
        lockstep = LockstepClock(node, self._arrivals) if head.lockstep else None
        io = RosRobotIO(
            node,
            lockstep or node.wall,
            self._arrivals,
            cameras=cameras,
            freshness=freshness,
            lockstep=head.lockstep,
            arms=tuple(head.spec.arms),
        )
        server = TaskServer(node, self._arrivals, self._task_server())
        return _Connection(io, lockstep, server, RosScene(node, server) if head.turns else None, tuple(cameras))

    def _workcell(self, head: TaskHead, arm: _Connection) -> Workcell:
        """Return the workcell of a task with an arm behind topics."""
        node, io, lockstep = self._node, arm.io, arm.lockstep
        clock: Clock = lockstep or node.wall

        def ready(stamp: int) -> None:
            """Wait for measurements from `stamp` [ns] on."""
            if lockstep is not None:
                lockstep.wait_for_stamp(stamp)
                return
            sources = [(f"{name} pose".strip(), parts, "pose") for name, parts in io.arms.items()]
            sources += [(camera_part(name), io.parts, camera_part(name)) for name in arm.cameras]
            arrived = self._arrivals.wait_for(
                lambda: task_.estimated(stamp) and all(parts.stamp(part) >= stamp for _, parts, part in sources), 10.0
            )
            if not arrived:
                ages = ", ".join(f"{what} {parts.age(part, clock.now()):.2f} s" for what, parts, part in sources)
                raise GraphError(f"nothing has been measured since the reset; newest: {ages}")

        task_: RosTask
        if arm.scene is None:
            task_ = RosTask(node, head, self._arrivals, server=arm.server, ready=ready)
        else:
            task_ = RosTurn(node, head, self._arrivals, server=arm.server, ready=ready, scene=arm.scene)
        operator = self._intervention.make_operator(head, clock, self._config.operator_timeout)
        if lockstep is not None:
            lockstep.last_command = lambda: io.last_stamp
            lockstep.measured += [io.complete_at, task_.estimated]
            frames = [camera_part(name) for name in arm.cameras]
            lockstep.measured.append(lambda stamp: all(io.parts.stamp(part) >= stamp for part in frames))
            lockstep.answered.append(task_.judged)
            if operator is not None:
                lockstep.answered.append(self._intervention.answered)
        self._wait_for_graph(io, measuring=lockstep is None)
        return Workcell(
            io=io,
            clock=clock,
            task=task_,
            operator=operator,
            operator_source=self._intervention.source_of(head),
            close=lambda: None,
            await_frames=io.await_frames,
            measures_wrench=self.head.measures_wrench is not False,
            takes_wrench=head.simulation is not None,
            scene=arm.scene,
        )

    def _wait_for_graph(self, io: RosRobotIO, *, measuring: bool) -> None:
        """Wait until somebody measures, somebody receives commands, and nobody else gives any.

        With `measuring`, every part of the arm's state has come, too; in lockstep that is not before the first reset.
        """
        node = self._node
        arms = list(io.arms)
        needed = [node.resolve_topic_name(t.of_arm(arm).name) for arm in arms for t in topics.MEASURED]
        guarded = [node.resolve_topic_name(topics.SET_POINT.of_arm(arm).name) for arm in arms if arm]
        command = node.resolve_topic_name(topics.COMMAND.name)
        commander = node.sole_writer(topics.COMMAND)

        def wrong() -> list[str]:
            reasons = [f"nobody publishes {name}" for name in needed if not node.count_publishers(name)]
            if measuring and not reasons:
                reasons += [f"no {part} has come" for part in io.missing()]
            if self.head.measures_wrench is None:
                measures = " or ".join(node.resolve_topic_name(topics.MEASURES.of_arm(arm).name) for arm in arms)
                reasons.append(f"{measures} has not said whether the arm measures forces; is robot_node running?")
            if not io.listeners():
                reasons.append(f"nobody listens to {command}; is safety_node running?")
            elif not all(map(node.count_publishers, guarded)):
                reasons.append(f"safety_node does not guard these arms; start it with arms:=[{', '.join(arms)}]")
            return [*reasons, *filter(None, [commander.conflict()])]

        if not self._arrivals.wait_for(lambda: not wrong(), self._config.graph_timeout):
            raise GraphError(f"after {self._config.graph_timeout:g} s: {'; '.join(wrong())}")

    def _task_server(self) -> str:
        """Return the node that publishes the task."""
        topic = self._node.resolve_topic_name(topics.HEAD.name)

        def alone() -> bool:
            """Return whether there is one; DDS does not know the node of a new publisher for a moment."""
            names = _publishers(self._node, topic)
            return len(names) == 1 and names[0] in _nodes(self._node)

        found = self._arrivals.wait_for(alone, self._config.graph_timeout)
        names = _publishers(self._node, topic)
        if not found:
            raise GraphError(f"exactly one node has to publish {topic}; here: {', '.join(names) or 'none'}")
        return names[0]

    def _seen(self) -> str:
        names = sorted(set(self._node.get_node_names()) - {self._node.get_name()})
        return f" Nodes seen: {', '.join(names)}." if names else " No other node is seen."

    def _receive_head(self, message: String) -> None:
        self._head = from_text(TaskHead, message.data)
        self._arrivals.ring()


def _nodes(node: RobotNode) -> set[str]:
    """Return the full names of all nodes."""
    return {f"{where.rstrip('/')}/{name}" for name, where in node.get_node_names_and_namespaces()}


def _publishers(node: RobotNode, topic: str) -> list[str]:
    """Return the full names of the nodes that publish on a topic; even if they were just killed."""
    infos = node.get_publishers_info_by_topic(topic)
    return sorted({f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in infos})
