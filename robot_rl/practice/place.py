"""Where a practice takes place: a simulation, whose scene a program can lay out anew, or an arm, where it cannot.

Everything else of a practice is the same in both.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from robot_rl.config.components import TrainConfig
from robot_rl.env.task import WorkcellOptions
from robot_rl.practice.meeting import check_tasks_meet
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.make_reward import RewardSetup

RESUME = "robot-rl practice --resume --out"

Configs = Mapping[str, TrainConfig]
"""The configuration of each task's training, in turn."""


def _nothing_to_open(wanted: Mapping[str, WorkcellOptions]) -> contextlib.AbstractContextManager[object]:
    del wanted
    return contextlib.nullcontext()


@dataclass(frozen=True)
class PracticePlace:
    """The place; the defaults are a simulation in this process.

    Attributes:
        deployment: Of each training.
        check: Checks that the tasks meet, before anything is made.
        opened: Entered before the trainings are opened, with what each task observes; opens what they share.
        resets: The scene can be laid out anew by the program: whenever it is needed, and for evaluations. Where it
            cannot, the policies are evaluated in turn, each in the scene that the other one leaves, and a person is
            needed where none goes on.
        resume_command: The command that continues a practice, up to the name of its directory.
        may_move: Returns whether the arm may move; waits a moment while a supervisor elsewhere has latched a stop.
    """

    deployment: Deployment = field(default_factory=Deployment)
    check: Callable[[Configs], None] = lambda configs: check_tasks_meet(configs, Deployment())
    opened: Callable[[Mapping[str, WorkcellOptions]], contextlib.AbstractContextManager[object]] = _nothing_to_open
    resets: bool = True
    resume_command: str = RESUME
    may_move: Callable[[], bool] = lambda: True


def wanted_options(
    configs: Configs, place: PracticePlace, runs: Mapping[str, Path | None]
) -> dict[str, WorkcellOptions]:
    """Return what each task observes: what its policy wants, and its judge.

    Args:
        configs: Of the trainings.
        place: Where.
        runs: The directory of each training that goes on, whose own files judge; None for a new one.

    Raises:
        RobotRLError: if a file of a judge cannot be read.
    """
    wanted = {}
    for task, config in configs.items():
        reward = (
            RewardSetup.from_config(config.reward)
            if (run := runs[task]) is None
            else RewardSetup.of_run(run, config.reward)
        )
        wanted[task] = reward.observe(workcell_options(place.deployment.with_cameras(config)))
    return wanted
