"""Practice: tasks that leave the scene as the next one needs it, learned in turn on one robot, without resets.

Each task is a training of its own, with its policy, its store and its checkpoint in a folder of the practice. This
module opens them; whose turn it is, and the scene, are the concern of `session`.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.calling.caller import Caller
from robot_rl.config.consistency import check_consistent
from robot_rl.errors import ConfigError, InterruptedRunError
from robot_rl.practice.files import PracticeFiles, PracticePlan
from robot_rl.practice.place import Configs, PracticePlace, wanted_options
from robot_rl.practice.session import Practice
from robot_rl.practice.stage import Stage
from robot_rl.run.conclude import OpenTraining, import_ahead
from robot_rl.run.resume import how_to_resume
from robot_rl.run.train import open_training
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Part, Progress
from robot_rl.unattended.person_needed import call_for_help

if TYPE_CHECKING:  # the console takes a second to import
    from robot_rl.hil.turns_operator import TurnsOperator

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
    person: TurnsOperator | None = None,
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
        person: Who takes over, judges and makes the scene ready, at a device or the console; None: nobody.

    Raises:
        ConfigError: if settings contradict each other, the tasks do not meet, one cannot begin without a reset, or
            nobody judges its episodes.
        InterruptedRunError: after Ctrl-C, or where a practice is stuck and nobody is there; it can be resumed.
        RobotRLError: for whatever else a user can cause or cure.
    """
    place = place or PracticePlace()
    for config in configs.values():  # before an arm is opened, or a task demonstrated
        check_consistent(config, resumed=resume)
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
        if person is not None:  # whom an advisor may call, too
            place = replace(place, deployment=replace(place.deployment, call=call))
        trainings = _open_trainings(stack, configs, files, plan, place, stage, progress, person)
        session = Practice(configs, plan, trainings, stage, files, caller, progress, place, person)
        how = how_to_resume(path, place.resume_command)
        with stop_on_signal(session.request_stop), contextlib.ExitStack() as failing:
            failing.push(partial(call_for_help, caller, "practice", how))
            reason = session.run() or session.evaluate()
        if reason is not None:
            raise InterruptedRunError(f"{reason}, and saved; {how}")
        shown.close()
        return session.conclude()


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
    person: TurnsOperator | None,
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
            if person is not None:
                there = replace(there, assistance=person.beside(task))
            elif plan.unattended:
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
            if person is not None:
                stage.give_robot(task, person.io)
        if person is not None:
            stack.enter_context(person.serve())
    except BaseException:
        for opened_ in trainings.values():
            opened_.run.begun = False
        raise
    return trainings
