"""The arm judges its task itself, behind topics: a goal in the base frame, and the pose that is measured.

It is for `task_node` what `GoalTask` and `GoalOperator` are in one process, of the same `Goal`.
"""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import PoseStamped
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.cell.goal import TARGET, Goal
from robot_rl.clock import NS_PER_S
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.errors import StaleStateError
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.task_publisher import VERDICT_LEAD

MAX_AGE = 0.5
"""Oldest pose around which a goal is drawn [s]."""


class GoalJudge:
    """Says where the goal is at every pose, judges once a step, and demonstrates on request.

    A step is judged by the first pose that was measured when it is about to end, `VERDICT_LEAD` before its control
    period is over, also if that pose is read after the command of the next step, as on a busy machine; steps are known
    by their commands.

    Args:
        node: Whose subscriptions and publishers.
        spec: Facts of the task.
        goal: The point.
        estimate: Given what is observed of the goal at the stamp of each pose [ns].
        judge: Given the outcome of each step, and the stamp of the pose that was judged [ns].
    """

    def __init__(
        self,
        node: RobotNode,
        spec: TaskSpec,
        goal: Goal,
        *,
        estimate: Callable[[int, dict[str, list[float]]], None],
        judge: Callable[[int, Outcome], None],
    ) -> None:
        self._node, self._spec, self._goal = node, spec, goal
        self._estimate, self._judge = estimate, judge
        self._pose: Pose | None = None
        self._stamp = -1  # of that pose [ns]
        self._steps_left = 0  # of the running episode; what is commanded after it is no step
        self._judge_at: list[int] = []  # when each commanded step is judged that has not been yet [ns]
        self._demonstrates = False
        self._interventions = node.publisher(topics.INTERVENTION)
        node.subscribe(topics.POSE, self._take_pose, qos.READING)
        node.subscribe(topics.SAFE_COMMAND, self._take_command)

    def begin(self, seed: int) -> None:
        """Draw the goal of an episode around where the arm is.

        Raises:
            StaleStateError: if that is not known.
        """
        age = (self._node.wall.now() - self._stamp) / NS_PER_S if self._pose is not None else float("inf")
        if self._pose is None or age > MAX_AGE:
            raise StaleStateError(age, MAX_AGE, what="pose of the arm", hint=f"who publishes {topics.POSE.name}?")
        self._goal.draw(seed, self._pose)
        self._steps_left, self._judge_at, self._demonstrates = self._spec.max_steps, [], False

    def lead(self, demonstrate: bool) -> int:
        """Lead the episode, or leave it to the policy; return the stamp of the first intervention [ns]."""
        self._demonstrates = demonstrate
        return self._act()

    def _act(self) -> int:
        stamp = self._node.wall.now()
        action = None
        if self._demonstrates and self._pose is not None:
            action = self._goal.towards(self._pose, self._spec)
        self._interventions.publish(convert.operator_message(stamp, action, self._spec))
        return stamp

    def _take_pose(self, message: PoseStamped) -> None:
        self._pose, self._stamp = convert.pose_of(message.pose), convert.stamp_of(message.header.stamp)
        self._estimate(self._stamp, {TARGET: self._goal.seen_from(self._pose).tolist()})
        if self._demonstrates:  # else it keeps silent, so that a person's device is heard
            self._act()
        ended = [at for at in self._judge_at if at <= self._stamp]
        if ended:  # several, where no pose came in time for each: one place of the arm is judged once
            self._judge_at = self._judge_at[len(ended) :]
            self._judge(self._stamp, self._goal.judge(self._pose))

    def _take_command(self, message: MultiDOFJointTrajectory) -> None:
        if self._steps_left > 0 and convert.command_of(message) is not None:
            period = round((self._spec.control_period - VERDICT_LEAD) * NS_PER_S)
            self._judge_at.append(convert.stamp_of(message.header.stamp) + period)
            self._steps_left -= 1
