"""A task on a real robot, of which a person makes the scene ready and judges the outcome, or the arm itself does.

It is the other side of `RosTask`, as `sim_node` is in simulation. The person says that the scene is ready, that the
task is done, or that it has failed: by buttons of the device on `joy`, or by services. With `judge:=goal` the measured
pose decides (`GoalJudge`), and with `scene:=none` no episode waits for a person.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.client import Client
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from robot_rl.cell.goal import TARGET, TARGET_SPEC, Goal, GoalConfig
from robot_rl.cell.task_file import load_task
from robot_rl.config.nodes import TaskNodeConfig
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.task import Outcome, check_one_arm
from robot_rl.errors import ConfigError, StaleStateError
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import EpisodeStarted, Estimates, OutcomeMessage, TaskHead, to_text
from ros_nodes.node.operator_ready import FACT, OperatorReady, to_make_ready
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run
from ros_nodes.node.task_publisher import TaskPublisher
from ros_nodes.node.trigger_action import TriggerAction
from ros_nodes.nodes.goal_judge import GoalJudge

ESTIMATE_RATE = 20.0
"""How often it says that it estimates nothing [Hz], where nothing is: who reads an observation waits for that."""
MEASURES_PATIENCE = 3.0
"""Time for which an arm that publishes its pose may leave open what it measures [s]. One that never says it is no
`robot_node` of ours, or an older one; it publishes forces."""


class TaskNode(RobotNode):
    """The node; its parameters are those of `TaskNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("task_node", **options)
        self.config = config = declare(self, TaskNodeConfig)
        self._seed = config.episode_seed
        refuse_changes(self, TaskNodeConfig, {"episode_seed": self._set_seed})
        self.spec = load_task(Path(config.file).expanduser(), config.task)
        self._episode = 0
        self._person = OperatorReady(self)
        self._judged = True  # whether there is nothing to be judged
        self._outcomes = {"success": 0, "failure": 0}
        self._publish = TaskPublisher(self)
        self._arms = tuple(self.spec.each)
        self._tare = [self.create_client(Trigger, topics.below(arm, topics.TARE_SERVICE[0])) for arm in self._arms]
        # In a group of its own: while it waits for the person, everything else goes on.
        self.create_service(Trigger, topics.RESET[0], self._on_reset, callback_group=ReentrantCallbackGroup())
        self._action = TriggerAction(
            self, topics.RESET[0], self._reset, doing=lambda: to_make_ready(self.spec), cancel=self._person.give_up
        )
        self.create_service(SetBool, topics.OPERATOR_RESET[0], self._on_operator_reset)
        for (name, kind), say in (
            (topics.SUCCESS_SERVICE, lambda: self._judge(True)),
            (topics.FAILURE_SERVICE, lambda: self._judge(False)),
        ):
            self.create_service(kind, name, _answering(say))
        self._goal = self._make_goal() if config.judge == "goal" else None
        if self._goal is None:
            self.timer(1.0 / ESTIMATE_RATE, lambda: self._estimate(self.wall.now(), {}))
        observed, operator = ({}, "human") if self._goal is None else ({TARGET: TARGET_SPEC}, "script")
        size = (config.image_size, config.image_size)
        self._head = TaskHead(self.spec, observed, operator, False, size, self.spec.cameras, None, measures_wrench=None)
        self._publish.head(self._head)
        self._arm_since: float | None = None  # when somebody was first seen to publish the arm's pose
        self._measured: dict[str, bool] = {}  # by arm, whether it measures forces
        for arm in self._arms:
            self.subscribe(topics.MEASURES.of_arm(arm), partial(self._take_measures, arm))
        self.timer(1.0, self._settle_measures)

    def facts(self) -> Mapping[str, object]:
        """Episodes by their outcome, and whether somebody is waited for."""
        return {"episodes": self._episode, **self._outcomes, FACT: self._person.waits}

    def _take_measures(self, arm: str, message: String) -> None:
        self._measured[arm] = "wrench" in message.data.split()
        if len(self._measured) == len(self._arms):
            self._tell_measures(all(self._measured.values()))

    def _settle_measures(self) -> None:
        """Take forces for measured, where an arm is there and does not say what it measures."""
        if self._head.measures_wrench is not None:
            return
        now = time.monotonic()
        poses = [self.resolve_topic_name(topics.POSE.of_arm(arm).name) for arm in self._arms]
        if self._arm_since is None and all(map(self.count_publishers, poses)):
            self._arm_since = now
        if self._arm_since is not None and now - self._arm_since > MEASURES_PATIENCE:
            self._tell_measures(True)

    def _tell_measures(self, wrench: bool) -> None:
        if wrench != self._head.measures_wrench:
            self._head = replace(self._head, measures_wrench=wrench)
            self._publish.head(self._head)

    async def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        response.success, response.message = await self._reset()
        return response

    async def _reset(self) -> tuple[bool, str]:
        """Wait for the person, if one is needed; return whether an episode begins, and its facts or why it does not."""
        self._judged = True
        if self.config.scene == "person" and not await self._is_ready():
            return False, "another reset was asked for meanwhile, or it was cancelled"
        if self._goal is not None:
            try:
                self._goal.begin(self._seed)
            except StaleStateError as error:
                return False, str(error)
        self._episode, self._judged = self._episode + 1, False
        for client in filter(Client.service_is_ready, self._tare):
            client.call_async(Trigger.Request())  # as the contract of the wrench says: tared at reset
        return True, to_text(EpisodeStarted(self._episode, self.wall.now()))

    async def _is_ready(self) -> bool:
        """Ask the person, and wait."""
        self.get_logger().info(
            f"{to_make_ready(self.spec)}; then press `start` on the device or the console, or call "
            f"{self.resolve_service_name(topics.READY_SERVICE[0])}"
        )
        return await self._person.wait()

    def _on_operator_reset(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        response.success = True
        if self._goal is not None:
            response.message = str(self._goal.lead(request.data))
            return response
        self.get_logger().info("you demonstrate this episode" if request.data else "the policy acts; you may take over")
        return response

    def _judge(self, success: bool) -> str | None:
        """Decide the episode; return why that is of no use now, or None."""
        if self._judged:
            return "no episode is running that is not judged yet"
        failure = None if success else "judged by the operator"
        self._take_outcome(self.wall.now(), Outcome(success, success_reward(success), failure))
        return None

    def _take_outcome(self, stamp: int, outcome: Outcome) -> None:
        """Publish how a step of the running episode stands; nothing follows a decision."""
        if self._judged:
            return
        self._judged = outcome.success or outcome.failure is not None
        metrics = dict(outcome.metrics)
        verdict = OutcomeMessage(self._episode, stamp, outcome.success, outcome.reward, outcome.failure, metrics)
        self._publish.verdict(verdict)
        if self._judged:
            self._outcomes["success" if outcome.success else "failure"] += 1

    def _estimate(self, stamp: int, values: dict[str, list[float]]) -> None:
        self._publish.estimates(Estimates(self._episode, stamp, values))

    def _set_seed(self, seed: int) -> None:
        self._seed = seed

    def _make_goal(self) -> GoalJudge:
        """Return the judge.

        Raises:
            ConfigError: if `goal_spread` is not three numbers, or the task has several arms.
        """
        config = self.config
        check_one_arm(self.spec, "the judge `goal`")
        if len(config.goal_spread) != 3:
            raise ConfigError(f"goal_spread has {len(config.goal_spread)} numbers; it is x, y, z [m]")
        x, y, z = config.goal_spread
        goal = Goal(GoalConfig((x, y, z), config.goal_tolerance, config.goal_steps))
        return GoalJudge(self, self.spec, goal, estimate=self._estimate, judge=self._take_outcome)


def _answering(say: Callable[[], str | None]) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
    def answer(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        reason = say()
        response.success, response.message = reason is None, reason or ""
        return response

    return answer


def main() -> int:
    """Run the node."""
    return run(TaskNode)


if __name__ == "__main__":
    sys.exit(main())
