"""The jobs of `actor_node`: a training, a practice, demonstrations, or an evaluation, with the robot behind topics."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import load_config, load_run_config
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError
from robot_rl.run.directory.run_directory import RunDirectory, default_run_path
from robot_rl.run.evaluate_run import evaluate_run
from robot_rl.run.train import train
from ros_nodes.jobs.demo_job import record
from ros_nodes.jobs.fleet_job import train_with_fleet
from ros_nodes.jobs.practice_job import practise
from ros_nodes.jobs.site import Connect

PATHS = ("config", "out", "demos", "run", "fleet")
"""Parameters that name files and folders."""


class ActorJobs:
    """Does the job that the node's parameters name.

    Args:
        config: The parameters.
        connect: Connects to robot and learner.
        log: Receives notes, one sentence each.
    """

    def __init__(self, config: ActorNodeConfig, connect: Connect, log: Callable[[str], object]) -> None:
        home = {name: os.path.expanduser(getattr(config, name)) for name in PATHS}  # no shell reads `out:=~/runs`
        self._config, self._connect, self._log = replace(config, **home), connect, log

    def run(self) -> list[str]:
        """Do the job, or continue it, and return its result, line by line.

        Raises:
            ConfigError: if a parameter that the job needs is missing.
            RobotRLError: for whatever a user can cause or cure.
        """
        jobs = {"train": self._train, "practice": self._practise, "demo": self._demonstrate, "eval": self._evaluate}
        return jobs[self._config.job]()

    def _train(self) -> list[str]:
        if self._config.fleet:
            return train_with_fleet(self._config, self._connect, self._log)
        config, path, resume = self._run_config()
        demos = Path(self._config.demos) if self._config.demos and not resume else None
        if demos is not None:
            with EpisodeStore.open(demos) as store:
                config = replace(config, demonstrations=len(store))
        site = self._connect()
        config = replace(config, processes=2, realtime=not site.lockstep)
        summary = train(config, path, resume=resume, demos=demos, deployment=site.deployment)
        return [*summary_lines(summary), f"run directory: {path}"]

    def _practise(self) -> list[str]:
        return practise(self._config, self._connect, self._log)

    def _demonstrate(self) -> list[str]:
        return record(self._config, self._connect)

    def _evaluate(self) -> list[str]:
        if not self._config.run:
            raise ConfigError("job:=eval needs run:=DIRECTORY, of the run whose policy is to be evaluated")
        record = Path(self._config.out) if self._config.out else None
        deployment = self._connect().deployment
        episodes = self._config.episodes or None
        # An actor computes on the CPU, as in a training: the GPU may be on the machine of the learner only.
        run = Path(self._config.run)
        return summary_lines(evaluate_run(run, episodes=episodes, record=record, deployment=deployment, device="cpu"))

    def _run_config(self) -> tuple[TrainConfig, Path, bool]:
        """Return the configuration, the run directory, and whether to continue the run in it."""
        settings = list(self._config.settings)
        file = Path(self._config.config) if self._config.config else None
        path = Path(self._config.out) if self._config.out else None
        if path is not None and RunDirectory.holds_run(path):
            begun = RunDirectory.read_config(path)  # raises if it is damaged
            self._log(f"continues the run in {path}")
            config = load_run_config(path / "config.yaml", settings, file)
            if self._config.demos:  # it has as many as were given, whatever the settings say
                config = replace(config, demonstrations=begun.demonstrations)
            return config, path, True
        config = load_config(file, settings)
        return config, path or default_run_path(config.task, config.seed), False
