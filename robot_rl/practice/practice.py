"""Practice: tasks that leave the scene as the next one needs it, learned in turn on one robot, without resets.

Each task is a training of its own, with its policy, its store and its checkpoint in a folder of the practice. This
module only decides whose turn it is, and hands on the scene.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from robot_rl.calling.caller import Caller
from robot_rl.config.components import TrainConfig
from robot_rl.errors import InterruptedRunError
from robot_rl.practice.files import PracticeFiles, PracticePlan, PracticeState
from robot_rl.practice.meeting import check_tasks_meet
from robot_rl.practice.stage import Stage
from robot_rl.practice.turns import Turns
from robot_rl.run.conclude import OpenTraining, conclude
from robot_rl.run.demonstrate import record_demonstrations
from robot_rl.run.deployment import Deployment
from robot_rl.run.resume import how_to_resume
from robot_rl.run.train import open_training
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Part, Progress

logger = logging.getLogger(__name__)

RESUME = "robot-rl practice --resume --out"


def practice(
    config: TrainConfig,
    path: Path,
    plan: PracticePlan,
    *,
    resume: bool,
    call: str = "",
    calls_per_hour: int = 6,
    deployment: Deployment | None = None,
) -> dict[str, Any]:
    """Learn tasks in turn and return the summary, which is also written to `summary.json`.

    Nothing that was recorded is played again: a resumed practice learns from it, and goes on in the scene and with the
    task at which it stopped, however it stopped.

    Args:
        config: The configuration of each training; `env_steps` counts those of all tasks together.
        path: Directory of the practice.
        plan: What is practised, and who is beside the robot; of a resumed practice, its own.
        resume: Continue the practice in that directory.
        call: The user's command line that calls the person, with the message as its last argument; empty: none.
        calls_per_hour: Most calls within an hour.
        deployment: Where it takes place; None is a simulation in this process.

    Raises:
        ConfigError: if the tasks do not meet, or one cannot begin without a reset.
        InterruptedRunError: after Ctrl-C, or where an unattended practice is stuck; it can be resumed.
        RobotRLError: for whatever else a user can cause or cure.
    """
    deployment, tasks = deployment or Deployment(), plan.tasks
    caller = Caller(call, calls_per_hour, logger.warning)
    if resume:
        files = PracticeFiles(path)
    else:
        PracticeFiles.check_free(path)
        check_tasks_meet(config, tasks, deployment)
        files = PracticeFiles.create(path, plan)
    if plan.unattended:
        config = replace(config, intervention=replace(config.intervention, enabled=False))
    stage, done = Stage(), dict.fromkeys(tasks, 0)
    with contextlib.ExitStack() as stack:
        shown = stack.enter_context(contextlib.ExitStack())
        progress = shown.enter_context(Progress(config.env_steps, f"practise {', '.join(tasks)}"))
        trainings: dict[str, OpenTraining] = {}
        for task in tasks:
            place = replace(
                deployment,
                workcell=stage.workcell(deployment.workcell),
                repeatable=False,
                aside=partial(stage.resetting, task),
                resume_command=RESUME,
                resumed_in=path,
                facts={**deployment.facts, "practice": list(tasks)},
            )
            part, own = Part(progress, task, done), path / task
            opened = open_training(
                replace(config, task=task), own, resume=files.has_run(task), deployment=place, display=part
            )
            trainings[task] = stack.enter_context(opened)
        session = Practice(config, plan, trainings, stage, files, caller, progress)
        with stop_on_signal(session.request_stop):
            reason = session.run()
        if reason is not None:
            raise InterruptedRunError(f"{reason}, and saved; {how_to_resume(path, RESUME)}")
        shown.close()
        return session.conclude()


class Practice:
    """The loop of a practice.

    Args:
        config: The configuration of each training.
        plan: What is practised, and who is beside the robot.
        trainings: By task, in turn.
        stage: The scene.
        files: The files of the practice.
        caller: Calls the person.
        progress: Progress of all tasks.
    """

    def __init__(
        self,
        config: TrainConfig,
        plan: PracticePlan,
        trainings: Mapping[str, OpenTraining],
        stage: Stage,
        files: PracticeFiles,
        caller: Caller,
        progress: Progress,
    ) -> None:
        self._config, self._plan, self._trainings, self._stage = config, plan, trainings, stage
        self._files, self._caller, self._progress = files, caller, progress
        state = files.state()
        self._turns = Turns(tuple(trainings), plan.patience, state.next, state.fruitless_s)
        self._calls, self._resets = state.calls, state.resets
        stage.between_s = state.between_s
        if state.current:
            stage.restore(state.current, state.scene)
            if self._turns.stuck(stage.obstacles()) is not None:  # whoever resumes it has made the scene ready
                self._turns.helped()
                self._resets += 1
                stage.current = ""
        self._stop = False

    @property
    def env_steps(self) -> int:
        """Online steps of all tasks so far."""
        return sum(opened.training.env_steps for opened in self._trainings.values())

    @property
    def robot_s(self) -> float:
        """Robot time so far: online episodes, and the ways between them [s]."""
        steps = (
            opened.training.env_steps * opened.env.environment_spec.control_period
            for opened in self._trainings.values()
        )
        return sum(steps) + self._stage.between_s

    @property
    def person_s(self) -> float:
        """Time for which an operator has led and demonstrated [s]."""
        return sum(float(opened.training.record.effort.figures["seconds"]) for opened in self._trainings.values())

    def request_stop(self) -> None:
        """End the practice with the running episode; for a signal handler."""
        self._stop = True
        for opened in self._trainings.values():
            opened.training.stop_requested = True
        self._progress.log("stopping at the end of this episode, then saving; once more to stop at once")

    def run(self) -> str | None:
        """Demonstrate and learn; return None when all steps are done, else why it ended before."""
        self._demonstrate()
        for opened in self._trainings.values():
            training = opened.training
            if self._stop or not (opened.resumed or training.demonstrate()) or not training.pretrain():
                return "stopped before the first step"
        for opened in self._trainings.values():
            opened.training.begin_learning()
        reason = None
        while reason is None and self.env_steps < self._config.env_steps and not self._stop:
            reason = self._call_if_stuck()
            if reason is None:
                self._play()
        self._save()
        for opened in self._trainings.values():
            opened.training.end_learning()
        if reason is None and self._stop:
            reason = f"stopped after {self.env_steps} of {self._config.env_steps} env steps"
        return reason

    def _demonstrate(self) -> None:
        """Let the operator demonstrate the tasks in turn, so that nobody has to make the scene ready in between."""
        for number in range(self._config.demonstrations):
            for task, opened in self._trainings.items():
                store = opened.store
                if opened.resumed or len(store) > number or self._stop:
                    continue
                self._make_ready(task)
                record_demonstrations(
                    opened.deployment.demonstrator(opened.env),
                    store,
                    episodes=number + 1,
                    seed=self._config.seed,
                    stop=lambda: self._stop,
                    retry=opened.deployment.retry(self._progress.log),
                    may_start=opened.training.may_start,
                    log=self._progress.log,
                )
                if len(store) > number:
                    self._progress.update(0, demonstrations=f"{number + 1}/{self._config.demonstrations} {task}")
                    self._stage.clear(tidy=not store.summaries()[-1].success)
        self._progress.update(self.env_steps, demonstrations=None)

    def _make_ready(self, task: str) -> None:
        """Choose whether the next episode of a task begins in the scene as it is, or has to reset it."""
        place = self._stage.places[task]
        place.task.resets = not self._stage.current or self._stage.obstacles()[task] is not None
        self._stage.current = task

    def _call_if_stuck(self) -> str | None:
        """Pass the turn to a task that can begin; call the person if none can.

        Returns:
            Why the practice has to end, as nobody is there; None if it goes on.
        """
        turns, stage = self._turns, self._stage
        if not stage.current:  # the scene was laid out for the first task
            return None
        if (trouble := turns.stuck(stage.obstacles())) is None:
            return None
        message = f"{self._turns.next} needs a person: {trouble}"
        self._calls += self._caller.call(message)
        if self._plan.unattended:
            return f"stopped safely and waits, as nobody is there to help: {trouble}"
        self._resets += 1
        turns.helped()
        self._progress.log("the scene was reset, which counts as a manual reset")
        stage.current = ""
        return None

    def _play(self) -> None:
        """Play one episode of the task whose turn it is, and clear up after it."""
        task, turns, stage = self._turns.next, self._turns, self._stage
        opened = self._trainings[task]
        self._make_ready(task)
        self._save()  # with the scene, so that a killed practice goes on with this episode
        result = opened.training.play_next()
        stage.places[task].task.resets = False
        if result is None:
            return
        between = stage.between_s
        stage.clear(tidy=not result.success)
        turns.after(task, success=result.success, seconds=result.cycle_time + stage.between_s - between)
        self._files.record(
            {
                "task": task,
                "env_step": self.env_steps,
                "success": result.success,
                "assisted": result.assisted,
                "steps": result.steps,
                "robot_s": round(self.robot_s, 3),
                "person_s": round(self.person_s, 3),
                "calls": self._calls,
                "manual_resets": self._resets,
            }
        )

    def _save(self) -> None:
        """Write whose turn it is, and the scene."""
        stage, turns = self._stage, self._turns
        place = stage.places.get(stage.current)
        state = PracticeState(
            next=turns.next,
            current="" if place is None or place.task.resets else stage.current,
            scene=stage.save(),
            fruitless_s=turns.fruitless_s,
            between_s=stage.between_s,
            calls=self._calls,
            resets=self._resets,
        )
        self._files.save(state)

    def conclude(self) -> dict[str, Any]:
        """Evaluate every policy on held-out resets; return the summary, which is written with the picture."""
        summaries = {}
        for task, opened in self._trainings.items():
            with self._stage.resetting(task):
                summaries[task] = conclude(opened)
        summary = {
            "tasks": summaries,
            "env_steps": self.env_steps,
            "robot_minutes": self.robot_s / 60.0,
            "between_minutes": self._stage.between_s / 60.0,
            "person_minutes": self.person_s / 60.0,
            "calls": self._calls,
            "manual_resets": self._resets,
            "unattended": self._plan.unattended,
        }
        self._files.conclude(summary)
        return summary
