"""Puts a run together: directory, robot, learner, training, evaluation, and what people look at afterwards."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.store import STORE_HEAD, EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import CheckpointError, ConfigError, RobotRLError
from robot_rl.evaluate import Evaluation, evaluate, mean
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.learner import Learner
from robot_rl.learn.rollout import EpisodeResult, Rollout
from robot_rl.metrics import MetricsWriter, read_metrics
from robot_rl.plots import learning_curve
from robot_rl.progress import Progress
from robot_rl.registry import make_workcell
from robot_rl.run_directory import RunDirectory
from robot_rl.training import CHECKPOINT_KIND, LearnerPort, Training
from robot_rl.video import VideoRecorder

FILM = WorkcellOptions(cameras=("front", "wrist"), image_size=(240, 320))


class InterruptedRunError(RobotRLError):
    """Training was stopped by the user; its checkpoint is saved."""


def train(config: TrainConfig, path: Path, *, resume: bool) -> dict[str, Any]:
    """Runs the main job and returns its summary, which is also written to `summary.json`.

    Args:
        config: What to do; a resumed run must have the same, but for `env_steps`, `checkpoint_interval` and
            `evaluation`, which may be extended.
        path: The run directory.
        resume: Continue the run in that directory.

    Raises:
        InterruptedRunError: after Ctrl-C; the run can be resumed.
        RobotRLError: for whatever a user can cause or cure.
    """
    _check_device(config.device)
    opened = RunDirectory.resume(path, config.task) if resume else RunDirectory.create(path, config)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(opened)
        checkpoint = _checkpoint_to_resume(run) if resume else None
        if resume:
            _check_same(run.config, config)
        workcell = make_workcell(config.task)
        env = RobotEnv(workcell, interventions=config.intervention.enabled)
        stack.callback(env.close)
        learner = stack.enter_context(_learner(config, env))
        store = stack.enter_context(_store(run, config))
        for message in store.recovered:
            print(message, file=sys.stderr)
        resume_step = int(checkpoint["env_steps"]) if checkpoint else (0 if resume else None)
        metrics = stack.enter_context(MetricsWriter(run.metrics_path, run.tensorboard_path, resume_step))
        start = resume_step or 0
        with Progress(config.env_steps, f"train {config.task}", start=start) as progress:
            training = Training(
                config,
                env=env,
                checkpoint=run.checkpoint_path,
                learner=learner,
                store=store,
                metrics=metrics,
                progress=progress,
            )
            if checkpoint:
                training.load(checkpoint)
            with _stop_on_signal(training, progress):
                if not checkpoint:
                    store.set_aside(0, "recorded before the first checkpoint of a run that was started again")
                    training.demonstrate()
                finished = training.learn()
        if not finished:
            raise InterruptedRunError(
                f"stopped after {training.env_steps} of {config.env_steps} env steps and saved; "
                f"continue with: robot-rl train --resume --out {path}"
            )
        return _conclude(config, run, env, learner, training, metrics)


def evaluate_run(
    path: Path, *, episodes: int | None, seed: int | None, video: Path | None, device: Literal["cpu", "cuda"] | None
) -> tuple[TrainConfig, Evaluation]:
    """Evaluates the policy in a run's checkpoint on held-out resets; reads the run, writes nothing into it.

    Args:
        path: The run directory.
        episodes: How many; None takes the run's configuration, like `seed`.
        seed: Which resets.
        video: Where to film `evaluation.video_episodes` of them; None films none.
        device: Where to compute; None takes the run's.
    """
    config = RunDirectory.read_config(path)
    if device is not None:
        config = replace(config, device=device)
    _check_device(config.device)
    settings = config.evaluation
    settings = replace(settings, episodes=episodes or settings.episodes, seed=settings.seed if seed is None else seed)
    checkpoint = load_checkpoint(path / "checkpoint.pt", kind=CHECKPOINT_KIND)
    env = RobotEnv(make_workcell(config.task))
    with contextlib.closing(env):
        learner = Learner(env.spec_task, env.observation_specs, config)
        learner.policy.load_policy_state(
            {name: value.to(config.device) for name, value in checkpoint["learner"]["sac"]["modules"]["policy"].items()}
        )
        evaluation = _evaluate(replace(config, evaluation=settings), env, learner)
        if video is not None:
            film(config, learner, video, settings.video_episodes, settings.seed)
    return config, evaluation


def film(config: TrainConfig, learner: LearnerPort, path: Path, episodes: int, seed: int) -> None:
    """Films the first evaluation episodes, from the cameras of the scene."""
    env = RobotEnv(make_workcell(config.task, FILM), options=FILM)
    with contextlib.closing(env), VideoRecorder(path, 1.0 / env.spec_task.control_period) as recorder:
        rollout = Rollout(env, learner.policy, learner.packer, config.replay.history, [recorder])
        evaluate(rollout, episodes=episodes, seed=seed)


def _conclude(
    config: TrainConfig,
    run: RunDirectory,
    env: RobotEnv,
    learner: LearnerPort,
    training: Training,
    metrics: MetricsWriter,
) -> dict[str, Any]:
    """Evaluates, draws, films and sums up."""
    learned = training.wall_time
    evaluation = _evaluate(config, env, learner).summary()
    metrics.write("evaluation", training.env_steps, evaluation)
    records = read_metrics(run.metrics_path)
    learning_curve(
        records,
        run.learning_curve_path,
        title=f"{config.task}, seed {config.seed}",
        evaluation=evaluation,
        demo_cycle_time_s=training.demo_cycle_time,
    )
    if config.evaluation.video_episodes:
        film(config, learner, run.video_path, config.evaluation.video_episodes, config.evaluation.seed)
    rates = [(r["intervention_steps"], r["steps"], r["env_step"]) for r in records if r["kind"] == "episode"]
    tenth = training.env_steps / 10
    summary = {
        "task": config.task,
        "seed": config.seed,
        "env_steps": training.env_steps,
        "robot_minutes": training.env_steps * env.spec_task.control_period / 60.0,
        "updates": learner.updates,
        "utd": learner.update_to_data,
        **evaluation,
        "demo_cycle_time_s": training.demo_cycle_time,
        "intervention_rate": {
            "first_tenth": _rate([r for r in rates if r[2] <= tenth]),
            "last_tenth": _rate([r for r in rates if r[2] > 9 * tenth]),
        },
        "wall_s": training.wall_time,
        "learning_wall_s": learned,
        "device": config.device,
        "processes": config.processes,
        "config": config_to_dict(config),
        "provenance": run.provenance,
    }
    run.write_json(run.summary_path, summary)
    return summary


def _rate(rows: list[tuple[int, int, int]]) -> float | None:
    """Share of the steps in which the operator was in control."""
    steps = sum(row[1] for row in rows)
    return sum(row[0] for row in rows) / steps if steps else None


def _evaluate(config: TrainConfig, env: RobotEnv, learner: LearnerPort) -> Evaluation:
    env.interventions = False
    rollout = Rollout(env, learner.policy, learner.packer, config.replay.history)
    outcomes: list[bool] = []
    with Progress(config.evaluation.episodes, "evaluate", unit="episodes") as progress:

        def show(result: EpisodeResult) -> None:
            outcomes.append(result.success)
            progress.update(len(outcomes), success=mean(outcomes))

        return evaluate(rollout, episodes=config.evaluation.episodes, seed=config.evaluation.seed, on_episode=show)


@contextlib.contextmanager
def _learner(config: TrainConfig, env: RobotEnv) -> Iterator[LearnerPort]:
    """The learner, in this process or in another."""
    if config.processes == 1:
        yield Learner(env.spec_task, env.observation_specs, config)
        return
    raise ConfigError("processes=2 is not there yet")


def _store(run: RunDirectory, config: TrainConfig) -> EpisodeStore:
    if (run.episodes_path / STORE_HEAD).exists():
        return EpisodeStore.open(run.episodes_path, write=True)
    return EpisodeStore.create(run.episodes_path, {"task": config.task, "seed": config.seed})


def _checkpoint_to_resume(run: RunDirectory) -> dict[str, Any] | None:
    """The checkpoint, or None if the run had not come to write one."""
    if not run.checkpoint_path.exists():
        return None
    return load_checkpoint(run.checkpoint_path, kind=CHECKPOINT_KIND)


def _check_same(old: TrainConfig, new: TrainConfig) -> None:
    """A resumed run may be extended, not changed.

    Raises:
        CheckpointError: naming what differs.
    """
    extended = replace(
        old, env_steps=new.env_steps, checkpoint_interval=new.checkpoint_interval, evaluation=new.evaluation
    )
    if extended == new:
        return
    before, after = config_to_dict(extended), config_to_dict(new)
    changed = sorted(key for key in before if before[key] != after[key])
    raise CheckpointError(
        f"the run was started with other settings of {', '.join(changed)}; "
        "resume it without changing them, or start a new run in another directory"
    )


def _check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "device=cuda, but torch sees no CUDA device; use device=cpu, or install a CUDA build of torch"
        )


@contextlib.contextmanager
def _stop_on_signal(training: Training, progress: Progress) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) ends training with the running episode; a second one at once, without saving."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame  # where it was does not matter
        if training.stop_requested:
            raise KeyboardInterrupt
        training.stop_requested = True
        progress.log("stopping at the end of this episode, then saving; once more to stop at once without saving")

    old: dict[int, Callable[..., Any] | int | None] = {
        n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
