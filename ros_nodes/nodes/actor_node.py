"""The main job on a robot: demonstrations, learning with interventions, evaluation; robot and learner behind topics.

It is `robot-rl train`, `practice`, `demo` or `eval` at another site: the same loops, records and files. It needs no
simulator.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_rl.arm.control_thread import acting
from robot_rl.cell.robot_place import robot_facts
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.hil.remote_operator import RemoteOperator
from robot_rl.run.deployment import Deployment
from ros_nodes.bridge.link_topics import LearnerOverTopics
from ros_nodes.bridge.ros_operator import RosOperator
from ros_nodes.bridge.ros_robot_io import RosRobotIO
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.jobs.actor_jobs import ActorJobs
from ros_nodes.jobs.site import Site
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_job

LOST_EPISODES = 20
"""How many episodes in a row may be lost because the robot is not heard, before the run ends."""


class ActorNode(RobotNode):
    """The node; its parameters are those of `ActorNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("actor_node", **options)
        self.config = declare(self, ActorNodeConfig)
        refuse_changes(self, ActorNodeConfig)
        self._learner: LearnerOverTopics | None = None
        self._io: RosRobotIO | None = None
        self._operator = RemoteOperator()
        RosOperator(self, self._operator)

    def facts(self) -> Mapping[str, object]:
        """Return the skew of the parts of observations, the refused messages, and those that wait to be sent."""
        facts: dict[str, object] = {"messages_waiting": self._learner.waiting} if self._learner else {}
        if self._io is None:
            return facts
        for arm, parts in self._io.arms.items():
            named = f"{arm} " if arm else ""
            if skews := list(parts.skews):
                p50, p99 = np.percentile(skews, [50, 99])
                facts |= {f"{named}skew_p50_ms": 1e3 * float(p50), f"{named}skew_p99_ms": 1e3 * float(p99)}
            facts |= {f"received {named}{part}": count for part, count in parts.received.items()}
            facts |= {f"{named}{refused}": count for refused, count in parts.refusals.items()}
        return facts | ({} if "" in self._io.arms else {"largest_skew_between_arms_ms": 1e3 * self._io.skew})

    def run(self) -> int:
        """Do the job, or continue it, and return the exit code."""
        for line in ActorJobs(self.config, self._connect, self.get_logger().info).run():
            self.get_logger().info(line)
        return 0

    def _connect(self) -> Site:
        """Return the robot and the learner behind topics."""
        workcell = RosWorkcell(self, self.config)

        def make_workcell(task: str, options: WorkcellOptions) -> Workcell:
            cell = workcell.make(task, options)
            self._io = cell.io if isinstance(cell.io, RosRobotIO) else None
            if workcell.head.lockstep:
                return cell
            with contextlib.ExitStack() as stack:  # an arm does not wait, so the thread that acts is not to wait either
                stack.callback(cell.close)
                stack.enter_context(acting())
                return replace(cell, close=stack.pop_all().close)

        def make_learner() -> LearnerOverTopics:
            self._learner = LearnerOverTopics(self)
            return self._learner

        lockstep = workcell.head.lockstep
        deployment = Deployment(
            make_workcell,
            lambda config: workcell.head.cameras,
            make_learner if self.config.learner == "node" and not self.config.fleet else None,
            repeatable=lockstep,
            lost_episodes=0 if lockstep else LOST_EPISODES,
            can_film=False,
            calibrations=workcell.calibrations,
            assistance=self._operator,
            facts=self._facts_of_robot(),
            resume_command="the same `robot-rl up` (or `ros2 launch`) and --out",
        )
        return Site(deployment, lockstep, tuple(turn.spec.name for turn in workcell.head.turns))

    def _facts_of_robot(self) -> dict[str, Any]:
        return robot_facts(Path(self.config.robot_file)) if self.config.robot_file else {}


def main() -> int:
    """Run the node."""
    torch.set_num_threads(1)
    return run_job(ActorNode, lambda node, _: node.run())


if __name__ == "__main__":
    sys.exit(main())
