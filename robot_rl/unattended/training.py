"""A training beside which nobody is: where only a person could help, the arm holds, all is saved, and one is called."""

from __future__ import annotations

import contextlib
import logging
import math
from functools import partial
from pathlib import Path
from typing import Any

from robot_rl.calling.caller import Caller
from robot_rl.config.components import TrainConfig
from robot_rl.errors import InterruptedRunError
from robot_rl.run.conclude import OpenTraining, conclude
from robot_rl.run.deployment import Deployment
from robot_rl.run.resume import how_far, how_to_resume
from robot_rl.run.train import open_training
from robot_rl.system.process import stop_on_signal
from robot_rl.unattended.person_needed import call_for_help, fruitless

logger = logging.getLogger(__name__)


def train_unattended(
    config: TrainConfig, path: Path, *, deployment: Deployment, patience: float = math.inf, **how: Any
) -> dict[str, Any]:
    """Run a training in which nobody takes over, judges or makes the scene ready; return its summary.

    Args:
        config: The run's configuration.
        path: The run directory.
        deployment: Where it takes place; its `call` runs when a person is needed.
        patience: Robot time without a success after which a person is needed [s]; counted anew when it is resumed.
        how: How the run begins: `resume`, `demos`, `rewards` and `initial`, as for `train`.

    Raises:
        InterruptedRunError: after Ctrl-C, or where only a person could help; the run can be resumed.
        RobotRLError: for whatever else a user can cause or cure; the person is called then, too.
    """
    caller = Caller(deployment.call, 1, logger.warning)
    resuming = how_to_resume(path, deployment.resume_command)
    with open_training(config, path, deployment=deployment, **how) as opened:
        with contextlib.ExitStack() as failing:
            failing.push(partial(call_for_help, caller, "training", resuming))
            with stop_on_signal(opened.training.request_stop):
                reason = _run(opened, patience)
            if reason is None:
                return conclude(opened)
        if not opened.training.stop_requested:
            caller.call(f"{config.task} has {reason}")
        raise InterruptedRunError(f"{reason}, and saved; {resuming}")


def _run(opened: OpenTraining, patience: float) -> str | None:
    """Demonstrate and learn; return None when all steps are done, else why it ended before."""
    training, wanted = opened.training, opened.config.env_steps
    if not (opened.resumed or training.demonstrate()) or not training.pretrain():
        return "stopped before the first step"
    training.begin_learning()
    trouble, passed = None, 0.0
    while trouble is None and training.env_steps < wanted and not training.stop_requested:
        if (result := opened.play_next()) is not None:
            passed = 0.0 if result.success else passed + result.cycle_time
        trouble = opened.judge_lost or fruitless(passed, patience)
    done = training.end_learning()
    if training.stop_requested:
        return f"stopped after {how_far(training.env_steps, wanted)}"
    if trouble is not None and not done:
        return f"stopped safely and waits for a person: {trouble}; make the scene ready"
    return None
