"""The main job on a robot: demonstrations, learning with interventions, evaluation; robot and learner behind topics.

It is `robot-rl train`, `demo` or `eval` at another site: the same loops, records and files. It needs no simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_rl.cli.summary_text import summary_lines
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import load_config, load_run_config
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import ConfigError
from robot_rl.hil.remote_operator import RemoteOperator
from robot_rl.run.demonstrate import demonstrate
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.run.directory.run_directory import RunDirectory, default_run_path
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.make_reward import RewardSetup
from robot_rl.run.train import train
from ros_nodes.bridge.link_topics import LearnerOverTopics
from ros_nodes.bridge.ros_operator import RosOperator
from ros_nodes.bridge.ros_robot_io import RosRobotIO
from ros_nodes.bridge.ros_workcell import RosWorkcell
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
        self._person = RemoteOperator()
        RosOperator(self, self._person)

    def facts(self) -> Mapping[str, object]:
        """How far apart in time the parts of the observations were, what was refused, and what waits to be sent."""
        facts: dict[str, object] = {"messages_waiting": self._learner.waiting} if self._learner else {}
        if self._io is None:
            return facts
        parts = self._io.parts
        if skews := list(parts.skews):
            p50, p99 = np.percentile(skews, [50, 99])
            facts |= {"skew_p50_ms": 1e3 * float(p50), "skew_p99_ms": 1e3 * float(p99)}
        facts |= {f"received {part}": count for part, count in parts.received.items()}
        return facts | dict(parts.refusals)

    def run(self) -> int:
        """Does its job, or goes on with it; returns the exit code."""
        jobs = {"train": self._train, "demo": self._demonstrate, "eval": self._evaluate}
        for line in jobs[self.config.job]():
            self.get_logger().info(line)
        return 0

    def _train(self) -> list[str]:
        config, path, resume = self._run_config()
        demos = Path(self.config.demos) if self.config.demos and not resume else None
        if demos is not None:
            with EpisodeStore.open(demos) as store:
                config = replace(config, demonstrations=len(store))
        deployment, lockstep = self._deployment()
        config = replace(config, processes=2, realtime=not lockstep)
        summary = train(config, path, resume=resume, demos=demos, deployment=deployment)
        return [*summary_lines(summary), f"run directory: {path}"]

    def _demonstrate(self) -> list[str]:
        if not self.config.out:
            raise ConfigError("job:=demo needs out:=DIRECTORY, of the store for the demonstrations")
        config = load_config(Path(self.config.config) if self.config.config else None, list(self.config.settings))
        count, path = self.config.episodes or config.demonstrations, Path(self.config.out)
        deployment, _ = self._deployment()
        observed = RewardSetup.from_config(config.reward).observe(workcell_options(config))
        calibrations = Calibrations.of(config, deployment.calibrations(observed.cameras))
        facts = demonstrate(
            config.task,
            path,
            episodes=count,
            seed=config.seed,
            observed=observed,
            deployment=deployment,
            resume=True,
            calibrations=calibrations,
        )
        return [f"{facts['episodes']} demonstrations, {facts['success_rate']:.0%} successful: {path}"]

    def _evaluate(self) -> list[str]:
        if not self.config.run:
            raise ConfigError("job:=eval needs run:=DIRECTORY, of the run whose policy is to be evaluated")
        record = Path(self.config.out) if self.config.out else None
        deployment, _ = self._deployment()
        episodes = self.config.episodes or None
        # Who acts computes on the CPU, as while training: a GPU may be where the learner was, and nowhere else.
        run = Path(self.config.run)
        return summary_lines(evaluate_run(run, episodes=episodes, record=record, deployment=deployment, device="cpu"))

    def _deployment(self) -> tuple[Deployment, bool]:
        """The robot and the learner behind topics, and whether time waits for us."""
        workcell = RosWorkcell(self, self.config)

        def make_workcell(task: str, options: WorkcellOptions) -> Workcell:
            cell = workcell.make(task, options)
            self._io = cell.io if isinstance(cell.io, RosRobotIO) else None
            return cell

        def make_learner() -> LearnerOverTopics:
            self._learner = LearnerOverTopics(self)
            return self._learner

        lockstep = workcell.head.lockstep
        deployment = Deployment(
            make_workcell,
            make_learner if self.config.learner == "node" else None,
            repeatable=lockstep,
            lost_episodes=0 if lockstep else LOST_EPISODES,
            can_film=False,
            calibrations=workcell.calibrations,
            assistance=self._person,
        )
        return deployment, lockstep

    def _run_config(self) -> tuple[TrainConfig, Path, bool]:
        """What to do, where, and whether to go on with what is there."""
        settings = list(self.config.settings)
        path = Path(self.config.out) if self.config.out else None
        if path is not None and (path / "provenance.json").is_file():
            RunDirectory.read_config(path)  # says what is wrong with it
            self.get_logger().info(f"continues the run in {path}")
            return load_run_config(path / "config.yaml", settings), path, True
        config = load_config(Path(self.config.config) if self.config.config else None, settings)
        return config, path or default_run_path(config.task, config.seed), False


def main() -> int:
    """Runs the node."""
    torch.set_num_threads(1)
    return run_job(ActorNode, lambda node, _: node.run())


if __name__ == "__main__":
    sys.exit(main())
