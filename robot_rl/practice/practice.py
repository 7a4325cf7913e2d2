"""Practice: tasks that leave the scene as the next one needs it, learned in turn on one robot, without resets.

Each task is a training of its own, with its policy, its store and its checkpoint in a folder of the practice. This
module only decides whose turn it is, and hands on the scene.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from robot_rl.calling.caller import Caller
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.errors import ConfigError, InterruptedRunError
from robot_rl.practice.files import PracticeFiles, PracticePlan, PracticeState
from robot_rl.practice.judged_episodes import judged_episodes
from robot_rl.practice.place import Configs, PracticePlace, wanted_options
from robot_rl.practice.stage import Stage
from robot_rl.practice.turns import Turns
from robot_rl.run.conclude import OpenTraining, conclude, import_ahead
from robot_rl.run.demonstrate import record_demonstrations
from robot_rl.run.evaluation import Evaluation, HeldOut
from robot_rl.run.resume import how_far, how_to_resume
from robot_rl.run.train import open_training
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Part, Progress

logger = logging.getLogger(__name__)


def practice(
    configs: Configs,
    path: Path,
    plan: PracticePlan,
    *,
    resume: bool,
    call: str = "",
    calls_per_hour: int = 6,
    place: PracticePlace | None = None,
) -> dict[str, Any]:
    """Learn tasks in turn and return the summary, which is also written to `summary.json`.

    Nothing that was recorded is played again: a resumed practice learns from it, and goes on in the scene and with the
    task at which it stopped, however it stopped.

    Args:
        configs: The configuration of each training, in turn; `env_steps`, in all the same, counts those of all tasks.
        path: Directory of the practice.
        plan: What is practised, and who is beside the robot; of a resumed practice, its own.
        resume: Continue the practice in that directory.
        call: The user's command line that calls the person, with the message as its last argument; empty: none.
        calls_per_hour: Most calls within an hour.
        place: Where it takes place; None is a simulation in this process.

    Raises:
        ConfigError: if the tasks do not meet, one cannot begin without a reset, or nobody judges its episodes.
        InterruptedRunError: after Ctrl-C, or where a practice is stuck and nobody is there; it can be resumed.
        RobotRLError: for whatever else a user can cause or cure.
    """
    place = place or PracticePlace()
    _check_success_is_judged(configs)
    caller = Caller(call, calls_per_hour, logger.warning)
    files = PracticeFiles(path)
    runs = {task: path / task if resume and files.has_run(task) else None for task in configs}
    if not resume:
        PracticeFiles.check_free(path)
        place.check(configs)
    wanted = wanted_options(configs, place, runs)
    if not place.deployment.repeatable:
        import_ahead()
    with contextlib.ExitStack() as stack:
        stack.enter_context(place.opened(wanted))
        if not resume:
            files = PracticeFiles.create(path, plan, configs)
        stage, shown = Stage(), stack.enter_context(contextlib.ExitStack())
        steps = next(iter(configs.values())).env_steps
        progress = shown.enter_context(Progress(steps, f"practise {', '.join(configs)}"))
        trainings = _open_trainings(stack, configs, files, plan, place, stage, progress)
        session = Practice(configs, plan, trainings, stage, files, caller, progress, place)
        how = how_to_resume(path, place.resume_command)
        with stop_on_signal(session.request_stop), contextlib.ExitStack() as failing:
            failing.push(partial(_call_for_help, caller, how))
            reason = session.run() or session.evaluate()
        if reason is not None:
            raise InterruptedRunError(f"{reason}, and saved; {how}")
        shown.close()
        return session.conclude()


def _call_for_help(
    caller: Caller, how: str, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
) -> None:
    """Call the person when an error ends the practice, whatever it is, as nobody may be there; log how to go on."""
    del kind, trace
    if isinstance(error, Exception):  # no Ctrl-C
        caller.call(f"the practice has ended, and needs a person: {error}")
        if how not in str(error):
            logger.warning("what was recorded is kept; %s", how)


def _check_success_is_judged(configs: Configs) -> None:
    """Check that somebody finds out whether each episode succeeded, as the next turn depends on that."""
    for task, config in configs.items():
        if config.reward.kind == "preferences":
            raise ConfigError(
                f"{task} cannot be practised with reward.kind=preferences: they do not show whether an episode "
                "succeeded, and so whose turn it is; valid: task, classifier, labels"
            )


def _open_trainings(
    stack: contextlib.ExitStack,
    configs: Configs,
    files: PracticeFiles,
    plan: PracticePlan,
    place: PracticePlace,
    stage: Stage,
    progress: Progress,
) -> dict[str, OpenTraining]:
    """Open the training of every task; if one is refused, those that were made for it go again."""
    deployment, done = place.deployment, dict.fromkeys(configs, 0)
    trainings: dict[str, OpenTraining] = {}
    try:
        for task, config in configs.items():
            there = replace(
                deployment,
                workcell=stage.workcell(deployment.workcell),
                repeatable=False,
                aside=partial(stage.resetting, task),
                resume_command=place.resume_command,
                resumed_in=files.path,
                facts={**deployment.facts, "practice": list(configs)},
            )
            if plan.unattended:
                config = replace(config, intervention=replace(config.intervention, enabled=False))
            begun, store = files.has_run(task), plan.demos.get(task)
            opened = open_training(
                config,
                files.path / task,
                resume=begun,
                demos=Path(store) if store and not begun else None,
                deployment=there,
                display=Part(progress, task, done),
            )
            trainings[task] = stack.enter_context(opened)
    except BaseException:
        for opened_ in trainings.values():
            opened_.run.begun = False
        raise
    return trainings


class Practice:
    """The loop of a practice.

    Args:
        configs: The configuration of each training.
        plan: What is practised, and who is beside the robot.
        trainings: By task, in turn.
        stage: The scene.
        files: The files of the practice.
        caller: Calls the person.
        progress: Progress of all tasks.
        place: Where it takes place.
    """

    def __init__(
        self,
        configs: Configs,
        plan: PracticePlan,
        trainings: Mapping[str, OpenTraining],
        stage: Stage,
        files: PracticeFiles,
        caller: Caller,
        progress: Progress,
        place: PracticePlace,
    ) -> None:
        self._configs, self._plan, self._trainings, self._stage, self._place = configs, plan, trainings, stage, place
        self._env_steps = next(iter(configs.values())).env_steps
        self._evaluated: dict[str, Evaluation] = {}
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
        while reason is None and self.env_steps < self._env_steps and not self._stop:
            reason = self._call_if_stuck()
            if reason is None:
                self._play()
        self._save()
        for opened in self._trainings.values():
            opened.training.end_learning()
        if reason is None and self._stop:
            reason = f"stopped after {how_far(self.env_steps, self._env_steps)}"
        return reason

    def evaluate(self) -> str | None:
        """Evaluate the policies in turn where no program can reset the scene; return why it ended before, if it did.

        Each policy plays in the scene that the other one has left, until all have played as many episodes as wanted.
        """
        if self._place.resets:
            return None
        with contextlib.ExitStack() as stack:
            held = {task: stack.enter_context(judged_episodes(opened)) for task, opened in self._trainings.items()}
            reason = self._evaluate_in_turn(held)
        self._save()
        self._evaluated = {task: one.evaluation for task, one in held.items()}
        return reason

    def _evaluate_in_turn(self, held: Mapping[str, HeldOut]) -> str | None:
        self._turns = Turns(tuple(held), self._plan.patience, self._turns.next)
        wanted = {task: config.evaluation.episodes for task, config in self._configs.items()}
        reason, between = None, self._stage.between_s
        while reason is None and any(len(held[task].results) < wanted[task] for task in held):
            if self._stop:
                reason = "stopped in the evaluation, which will begin again"
            elif (reason := self._call_if_stuck()) is None:
                self._take_turn(lambda task: held[task].play())
                self._stage.between_s = between  # which counts what was practised
                done = ", ".join(f"{task} {len(held[task].results)}/{wanted[task]}" for task in held)
                self._progress.update(self.env_steps, evaluated=done)
        return reason

    def _demonstrate(self) -> None:
        """Let the operator demonstrate the tasks in turn, so that nobody has to make the scene ready in between."""
        wanted = {task: config.demonstrations for task, config in self._configs.items()}
        for number in range(max(wanted.values())):
            for task, opened in self._trainings.items():
                store = opened.store
                if opened.resumed or len(store) >= min(number + 1, wanted[task]) or self._stop:
                    continue
                self._make_ready(task)
                record_demonstrations(
                    opened.deployment.demonstrator(opened.env),
                    store,
                    episodes=number + 1,
                    seed=self._configs[task].seed,
                    stop=lambda: self._stop,
                    retry=opened.deployment.retry(self._progress.log),
                    may_start=opened.training.may_start,
                    log=self._progress.log,
                )
                if len(store) > number:
                    self._progress.update(0, demonstrations=f"{number + 1}/{wanted[task]} {task}")
                    self._clear(tidy=not store.summaries()[-1].success)
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
        if (lost := self._judge_lost()) is not None:
            self._calls += self._caller.call(lost)
            return f"stopped safely, as {lost}"
        if not stage.current:  # the scene was laid out for the first task
            return None
        if (trouble := turns.stuck(stage.obstacles())) is None:
            return None
        message = f"{self._turns.next} needs a person: {trouble}"
        self._calls += self._caller.call(message)
        if not self._place.resets:
            return f"stopped safely and waits for a person: {trouble}; make the scene ready for {turns.next}"
        if self._plan.unattended:
            return f"stopped safely and waits, as nobody is there to help: {trouble}"
        self._resets += 1
        turns.helped()
        self._progress.log("the scene was reset, which counts as a manual reset")
        stage.current = ""
        return None

    def _judge_lost(self) -> str | None:
        """Return which task has lost its judge, if one has: then nobody knows whose turn it is."""
        for task, opened in self._trainings.items():
            if opened.labels is not None and (why := opened.labels.ended):
                return f"no more labels come for {task}: {why}"
        return None

    def _take_turn(self, play: Callable[[str], EpisodeResult | None]) -> tuple[str, EpisodeResult] | None:
        """Have the task whose turn it is play an episode, and clear up after it; None if it could not start yet."""
        task, turns, stage = self._turns.next, self._turns, self._stage
        self._make_ready(task)
        self._save()  # with the scene, so that a killed practice goes on with this episode
        before = stage.between_s
        stage.depart()
        result = play(task)
        stage.places[task].task.resets = False
        if result is None:
            return None
        turns.after(task, success=result.success, seconds=result.cycle_time + stage.between_s - before)
        if not self._place.resets:  # the scene is as the episode has left it, even if the arm is lost on its way
            self._save()
        before = stage.between_s
        self._clear(tidy=not result.success)
        turns.fruitless_s += stage.between_s - before
        return task, result

    def _clear(self, *, tidy: bool) -> None:
        """Clear up after an episode; an arm that is not heard for a moment has time to come back."""
        deployment = self._trainings[self._stage.current].deployment
        retry = deployment.retry(self._progress.log).until(lambda: self._stop)
        while not retry.attempt(lambda: self._stage.clear(tidy=tidy)) and not self._stop:
            pass

    def _play(self) -> None:
        """Play and learn from an episode of the task whose turn it is."""
        if (taken := self._take_turn(lambda task: self._trainings[task].play_next())) is None:
            return
        task, result = taken
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
        """Evaluate every policy that is not yet; return the summary, which is written with the picture."""
        summaries = {}
        for task, opened in self._trainings.items():
            with self._stage.resetting(task):
                summaries[task] = conclude(opened, self._evaluated.get(task))
        summary = {
            "tasks": summaries,
            "env_steps": self.env_steps,
            "robot_minutes": self.robot_s / 60.0,
            "between_minutes": self._stage.between_s / 60.0,
            "person_minutes": self.person_s / 60.0,
            "calls": self._calls,
            "manual_resets": self._resets,
            "unattended": self._plan.unattended,
            "evaluated": "held-out resets" if self._place.resets else "episodes in turn",
        }
        self._files.conclude(summary)
        return summary
