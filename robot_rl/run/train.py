"""The main job: demonstrations in, a policy out, with an operator able to intervene at every step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robot_rl.base_policy.run_base import check_base, open_base
from robot_rl.calling.advisor import make_advisor
from robot_rl.config.components import TrainConfig
from robot_rl.errors import InterruptedRunError
from robot_rl.learn.hindsight import make_relabeller
from robot_rl.run.conclude import OpenTraining, conclude, import_ahead
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.human_labels import deliver_recorded
from robot_rl.run.lineage.initial_parts import InitialParts
from robot_rl.run.resume import encode_again, explain_resume, how_far, how_to_resume, keep_settings
from robot_rl.run.training_files import open_training_files
from robot_rl.run.training_loop import Training
from robot_rl.run.training_record import TrainingRecord
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Display, Progress


def train(
    config: TrainConfig,
    path: Path,
    *,
    resume: bool,
    demos: Path | None = None,
    rewards: str | None = None,
    deployment: Deployment | None = None,
    initial: InitialParts | None = None,
) -> dict[str, Any]:
    """Run the main job and return its summary, which is also written to `summary.json`.

    Args:
        config: The run's configuration; which settings a resumed run may change, see `checkpoint_to_resume`.
        path: The run directory.
        resume: Continue the run in that directory.
        demos: Store of demonstrations to begin a new run with, instead of recording them.
        rewards: Name of an overlay with other rewards for these; None takes the recorded ones.
        deployment: Where the run takes place and which human operator assists; None is this process without one.
        initial: What a new run takes over from another one; None: nothing.

    Raises:
        InterruptedRunError: after Ctrl-C; the run can be resumed.
        RobotRLError: for whatever a user can cause or cure.
    """
    opening = open_training(
        config, path, resume=resume, demos=demos, rewards=rewards, deployment=deployment, initial=initial
    )
    with opening as opened:
        training = opened.training
        with stop_on_signal(training.request_stop):
            finished = training.run(resumed=opened.resumed)
        if not finished or training.stop_requested:
            raise InterruptedRunError(
                f"stopped after {len(opened.store)} episodes and {how_far(training.env_steps, config.env_steps)}, "
                f"and saved; {how_to_resume(path, opened.deployment.resume_command)}"
            )
        return conclude(opened)


@contextlib.contextmanager
def open_training(
    config: TrainConfig,
    path: Path,
    *,
    resume: bool,
    demos: Path | None = None,
    rewards: str | None = None,
    deployment: Deployment | None = None,
    initial: InitialParts | None = None,
    display: Display | None = None,
) -> Iterator[OpenTraining]:
    """Open all parts of a training: its files, environment and learner; a resumed one continues from its checkpoint.

    `display` shows its progress; None makes one. The other arguments, and the errors, are those of `train`.
    """
    deployment = deployment or Deployment()
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(
            open_training_files(config, path, deployment, resume=resume, demos=demos, initial=initial)
        )
        config, reward = files.config, files.reward()
        files.load_checkpoint()
        if not deployment.repeatable:
            import_ahead()
        observed, helped = reward.observe(workcell_options(config)), config.intervention.enabled
        env = stack.enter_context(deployment.environment(config.task, observed, reward, interventions=helped))
        given = demos is not None or (initial is not None and initial.demonstrations is not None)
        if not given and config.demonstrations and not resume:
            deployment.check_demonstrator(env)
        labels = stack.enter_context(reward.labels(env))
        potential = reward.potential(env.environment_spec)
        base = stack.enter_context(open_base(config, env, path if resume else None))
        learner = stack.enter_context(deployment.open_learner(config, env, potential))
        hindsight = make_relabeller(env, learner.perception, config)
        if files.initial is not None:
            files.initial.give(learner, env, config)
        stack.enter_context(files.begin(reward, env, deployment=deployment, demos=demos, overlay=rewards))
        stack.enter_context(explain_resume(deployment.resumed_in or path, deployment.resume_command))
        shown = stack.enter_context(contextlib.ExitStack())
        if display is None:
            display = shown.enter_context(Progress(config.env_steps, f"train {config.task}", start=files.env_steps))
        record = TrainingRecord(env.environment_spec, files.metrics, display)
        assistance = deployment.assistance
        advisor = make_advisor(
            config.intervention.call,
            env,
            learner,
            count=record.call,
            show=[] if assistance is None else [assistance.call],
            log=record.log,
            command=deployment.call,
            env_steps=lambda: training.env_steps,
        )
        training = Training(
            config,
            env=env,
            checkpoint=files.run.checkpoint_path,
            learner=learner,
            store=files.store,
            record=record,
            assistance=assistance,
            advisor=advisor,
            retry=deployment.retry(record.log),
            labels=labels,
            hindsight=hindsight,
            base=base,
            aside=deployment.aside,
        )
        if files.checkpoint:
            check_base(base, files.checkpoint)
            encode_again(files.checkpoint, files.store, learner.perception, record.log)
            training.load(files.checkpoint, play_again=deployment.repeatable)
            deliver_recorded(files.store, learner)
        if assistance is not None:
            stack.enter_context(assistance.session(path, files.metrics))
        if files.resumed:
            keep_settings(files.run, config)
            files.run.record_place(deployment.facts)
        files.run.begun = True
        resumed = bool(files.checkpoint)
        yield OpenTraining(config, training, env, learner, files.run, files.store, deployment, labels, resumed, shown)
