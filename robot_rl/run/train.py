"""Puts a run together: directory, robot, learner, training, evaluation, and what people look at afterwards."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch

from robot_rl.clock import stands_still
from robot_rl.config.components import EvaluationConfig, RewardConfig, TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.load import config_to_dict
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import (
    InterruptedRunError,
    RenderError,
    RunDirectoryError,
    UnknownNameError,
)
from robot_rl.hil.local_operator import assisted, interventions_drawn
from robot_rl.hil.operator_setup import OperatorOptions
from robot_rl.learn.actor import EpisodeResult, Observer, Rollout, StoreRecorder
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.learn.engine.hardware import check_device
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.networks.networks import Policy, make_policy
from robot_rl.learn.perception import Perception, Potential, make_perception
from robot_rl.link.remote_learner import RemoteLearner
from robot_rl.reward.classifier.classifier import ClassifierFile
from robot_rl.reward.heads.progress_head import ProgressHeadFile
from robot_rl.run.demonstrate import adopt_demonstrations, check_calibrations
from robot_rl.run.deployment import Site
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.run.directory.metrics import MetricsWriter, read_metrics
from robot_rl.run.directory.pinned_files import (
    classifier_of,
    classifier_of_run,
    keep_classifier,
    keep_shaping_head,
    potential_of,
    shaping_head_of,
    shaping_head_of_run,
)
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.episode_retry import Patience
from robot_rl.run.evaluation import Evaluation, evaluate, mean
from robot_rl.run.human_labels import tell_again
from robot_rl.run.label_rewards import LabelledTraining, labelled
from robot_rl.run.make_reward import rewarded, watched
from robot_rl.run.resume import checkpoint_to_resume, how_to_resume, perceive_again, say_how_to_resume
from robot_rl.run.training_loop import Training
from robot_rl.system.model_files import TRAINING
from robot_rl.system.process import stop_on_signal
from robot_rl.system.progress import Progress
from robot_rl.viz.film import FilmRecorder

FILM_SIZE = (240, 320)
"""Height and width of each camera's picture in a video [px]."""


def train(
    config: TrainConfig,
    path: Path,
    *,
    resume: bool,
    demos: Path | None = None,
    rewards: str | None = None,
    operator: OperatorOptions | None = None,
    site: Site | None = None,
) -> dict[str, Any]:
    """Runs the main job and returns its summary, which is also written to `summary.json`.

    Args:
        config: What to do; a resumed run must have the same, but for `env_steps`, `processes`, `realtime`,
            `reaction_time`, `max_lead_steps`, `checkpoint_interval`, `evaluation`, `reward.budget` and the encoder's
            `crops`, `shift` and `precision`, which may change.
        path: The run directory.
        resume: Continue the run in that directory.
        demos: Store of demonstrations to begin a new run with, instead of having them made.
        rewards: Name of the overlay that says what these are worth; None takes what was recorded.
        operator: How a person takes part, in the place of the scripted operator; None without one.
        site: Where it takes place; None is here.

    Raises:
        InterruptedRunError: after Ctrl-C; the run can be resumed.
        RobotRLError: for whatever a user can cause or cure.
    """
    site = site or Site()
    if site.learner is None:  # otherwise it is elsewhere, and looks for itself
        check_device(config.device)
    check_consistent(config)
    calibrations = Calibrations.of(config, site.calibrations(workcell_options(config).cameras))
    check_calibrations(None if resume else demos, calibrations)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(RunDirectory.resume(path, config.task)) if resume else None
        if run is not None:
            calibrations.check_same(RunDirectory.read_calibrations(path), path)
        classifier = classifier_of(config.reward) if run is None else classifier_of_run(path, config.reward)
        shaping = shaping_head_of(config.reward) if run is None else shaping_head_of_run(path, config.reward)
        checkpoint = checkpoint_to_resume(run, config) if run is not None else None
        observed = workcell_options(config, classifier, shaping)
        assistance = None
        if operator is None:
            helped = config.intervention.enabled
            env = _environment(config, observed, classifier, site, interventions=helped)
            stack.callback(env.close)
        else:
            assistance = stack.enter_context(assisted(config, observed, classifier, operator, path))
            env = assistance.env
        labels = stack.enter_context(labelled(config, env))
        potential = potential_of(shaping, config.reward, env.spec_task) if shaping is not None else None
        learner = stack.enter_context(_learner(config, env, site, potential))
        if run is None:  # made last, so that a task or setting that does not work leaves no directory behind
            run = stack.enter_context(RunDirectory.create(path, config, calibrations=calibrations))
        if classifier is not None:
            keep_classifier(run, classifier, config.reward)
        if shaping is not None:
            keep_shaping_head(run, shaping, config.reward)
        stack.enter_context(say_how_to_resume(path))
        facts, keep = {"task": config.task, "seed": config.seed}, not site.repeatable and checkpoint is not None
        store = stack.enter_context(EpisodeStore.open_or_create(run.episodes_path, facts, keep_interrupted=keep))
        if demos is not None and not resume:
            adopt_demonstrations(store, demos, env, rewards)
        for message in store.recovered:
            print(message, file=sys.stderr)
        start = int(checkpoint["env_steps"]) if checkpoint else 0
        kept = start if checkpoint else -1  # without a checkpoint nothing was kept, not even what stands at step 0
        metrics = stack.enter_context(MetricsWriter(run.metrics_path, run.tensorboard_path, kept if resume else None))
        with Progress(config.env_steps, f"train {config.task}", start=start) as progress:
            training = Training(
                config,
                env=env,
                checkpoint=run.checkpoint_path,
                learner=learner,
                store=store,
                metrics=metrics,
                progress=progress,
                assistance=assistance or site.person,
                patience=Patience(site.lost_episodes, progress.log),
                labels=labels,
            )
            if checkpoint:
                perceive_again(checkpoint, store, learner.perception, progress.log)
                training.load(checkpoint, play_again=site.repeatable)
                tell_again(store, learner)
            if assistance is not None:
                stack.enter_context(assistance.begin(metrics))
            elif site.person is not None and site.person.leads:
                stack.enter_context(interventions_drawn(path))
            with stop_on_signal(lambda: _stop(training, progress)):
                finished = (bool(checkpoint) or training.demonstrate()) and training.pretrain() and training.learn()
        if not finished or training.stop_requested:
            raise InterruptedRunError(
                f"stopped after {len(store)} episodes and {training.env_steps} of {config.env_steps} env steps, "
                f"and saved; {how_to_resume(path)}"
            )
        if assistance is not None:
            assistance.phase("evaluating", "Evaluating on held-out resets, without help.")
        return _conclude(config, run, env, learner, training, metrics, site, labels)


def evaluate_run(
    path: Path,
    *,
    episodes: int | None = None,
    seed: int | None = None,
    device: Literal["cpu", "cuda"] | None = None,
    video: Path | None = None,
    cameras: tuple[str, ...] = (),
    record: Path | None = None,
    site: Site | None = None,
) -> dict[str, Any]:
    """Evaluates the policy in a run's checkpoint on held-out resets; reads the run, writes nothing into it.

    Args:
        path: The run directory.
        episodes: How many; None takes the run's configuration, like `seed`.
        seed: Which resets.
        device: Where to compute; None takes the run's.
        video: Where to film the first of them; None films none.
        cameras: From which cameras; none takes all of the scene.
        record: Directory of a new store for the episodes; None keeps none.
        site: Where it takes place; None is here.

    Returns:
        The summary of the evaluation, `task`, the episodes' `results`, and `video`: its path, or None if there is none.

    Raises:
        UnknownNameError: if the scene has no such camera.
        RobotRLError: if the run cannot be read.
    """
    config = RunDirectory.read_config(path)
    if device is not None:
        config = replace(config, device=device)
    check_device(config.device)
    settings = config.evaluation
    settings = replace(settings, episodes=episodes or settings.episodes, seed=settings.seed if seed is None else seed)
    checkpoint = load_checkpoint(path / "checkpoint.pt", kind=TRAINING.name)
    site = site or Site()
    classifier = classifier_of_run(path, config.reward)
    env = _environment(config, workcell_options(config, classifier), classifier, site)
    with contextlib.ExitStack() as stack:
        stack.callback(env.close)
        for camera in cameras:
            if camera not in env.spec_task.cameras:
                raise UnknownNameError("camera", camera, env.spec_task.cameras)
        perception = make_perception(env.observation_specs, config)
        policy = make_policy(env.environment_spec, perception.spec, config, torch.Generator(config.device))
        parameters = checkpoint["deployed"]["policy"]
        policy.load_policy_state({name: value.to(config.device) for name, value in parameters.items()})
        recorders = []
        if record is not None:
            facts = {
                "task": config.task,
                "seed": settings.seed,
                "evaluation_of": str(path),
                "calibrations": RunDirectory.read_calibrations(path),
            }
            recorders = [StoreRecorder(stack.enter_context(EpisodeStore.create(record, facts)))]
        settled = replace(config, evaluation=settings)
        evaluation = _evaluate(settled, env, policy, perception, recorders, site=site, free=site.free)
    answer = {"task": config.task, **evaluation.summary(), "video": None, "results": evaluation.rows()}
    if video is not None:
        filmed = min(settings.video_episodes or EvaluationConfig().video_episodes, settings.episodes)
        if _film(config, policy, perception, video, cameras or env.spec_task.cameras, filmed, settings.seed):
            answer["video"] = str(video)
    return answer


def _film(
    config: TrainConfig,
    policy: Policy,
    perception: Perception,
    path: Path,
    cameras: tuple[str, ...],
    episodes: int,
    seed: int,
) -> bool:
    """Films the first evaluation episodes; failing that, warns and returns False: the result is what matters."""
    if not cameras:
        return False
    config = replace(config, reward=RewardConfig())  # whoever judges would need other frames than a film
    options = workcell_options(config)
    if options.cameras:  # a policy that sees gets the frames that it knows, and they are what is filmed
        options = replace(options, cameras=tuple(dict.fromkeys((*options.cameras, *cameras))))
    else:
        options = replace(options, cameras=cameras, image_size=FILM_SIZE)
    try:
        env = _environment(config, options, None)
        with contextlib.closing(env), FilmRecorder(path, 1.0 / env.spec_task.control_period, cameras) as recorder:
            rollout = Rollout(env, policy, perception, config.replay.history, [recorder])
            evaluate(rollout, episodes=episodes, seed=seed)
    except (RenderError, RunDirectoryError) as error:
        print(f"warning: no video: {error}", file=sys.stderr)
        return False
    return True


def workcell_options(
    config: TrainConfig, classifier: ClassifierFile | None = None, shaping: ProgressHeadFile | None = None
) -> WorkcellOptions:
    """What the configuration asks of the workcell, and the files by which it judges and shapes, where there are any."""
    reaction_time = config.reaction_time if config.realtime else 0.0
    options = WorkcellOptions(
        realtime=config.realtime,
        reaction_time=reaction_time,
        simulation=config.simulation,
        randomization=config.randomization,
    )
    if config.observations == "pixels":
        size = config.encoder.image_size
        options = replace(options, cameras=config.encoder.cameras, image_size=(size, size), estimates=False)
    return watched(options, config.reward, classifier, shaping)


def _environment(
    config: TrainConfig,
    options: WorkcellOptions,
    classifier: ClassifierFile | None,
    site: Site | None = None,
    *,
    interventions: bool = False,
) -> RobotEnv:
    place = site or Site()
    cell = rewarded(lambda: place.workcell(config.task, options), config.reward, classifier)
    overrule = config.reward.overrule_s
    return place.environment(cell, options, interventions=interventions, time_to_overrule=overrule)


def _conclude(
    config: TrainConfig,
    run: RunDirectory,
    env: RobotEnv,
    learner: LearnerPort,
    training: Training,
    metrics: MetricsWriter,
    site: Site,
    labels: LabelledTraining | None,
) -> dict[str, Any]:
    """Evaluates, draws, films and sums up."""
    learned = training.wall_time
    evaluation = _evaluate(config, env, training.policy, learner.perception, site=site, free=training.free).summary()
    metrics.write("evaluation", training.env_steps, evaluation)
    records = read_metrics(run.metrics_path)
    summary = {
        "task": config.task,
        "seed": config.seed,
        "env_steps": training.env_steps,
        "robot_minutes": training.env_steps * env.spec_task.control_period / 60.0,
        "offline_updates": learner.offline_updates,
        "updates": learner.updates,
        "utd": learner.update_to_data,
        **evaluation,
        "demo_cycle_time_s": training.demo_cycle_time,
        "timing": training.timing.summary(),
        **({"labels": labels.summary()} if labels is not None else {}),
        "intervention_rate": _intervention_rate([r for r in records if r["kind"] == "episode"], training.env_steps),
        "wall_s": training.wall_time,
        "learning_wall_s": learned,
        "device": config.device,
        "processes": config.processes,
        "versions": run.provenance["versions"],
        "git_revision": run.provenance["git"]["revision"],
        "video": None,
        "config": config_to_dict(config),
        "calibrations": RunDirectory.read_calibrations(run.path),
        "provenance": run.provenance,
    }
    run.write_json(run.summary_path, summary)  # before the pictures, which may fail
    from robot_rl.viz.learning_curve import learning_curve  # here, as matplotlib takes half a second to import

    learning_curve(
        records,
        run.learning_curve_path,
        title=f"{config.task}, seed {config.seed}",
        evaluation=evaluation,
        demo_cycle_time_s=training.demo_cycle_time,
    )
    settings = config.evaluation
    filmed = min(settings.video_episodes, settings.episodes)
    shown = training.policy, learner.perception, run.video_path, env.spec_task.cameras
    if site.films and filmed and _film(config, *shown, filmed, settings.seed):
        summary["video"] = run.video_path.name
    summary["wall_s"] = training.wall_time
    run.write_json(run.summary_path, summary)
    return summary


def _intervention_rate(episodes: list[dict[str, Any]], env_steps: int) -> dict[str, float | None]:
    """Share of steps led by the operator, in the episodes that lie in, or reach into, the first and last tenth."""
    tenth = env_steps / 10
    return {
        "first_tenth": _rate([row for row in episodes if row["env_step"] - row["steps"] < tenth]),
        "last_tenth": _rate([row for row in episodes if row["env_step"] > 9 * tenth]),
    }


def _rate(episodes: list[dict[str, Any]]) -> float | None:
    steps = sum(row["steps"] for row in episodes)
    return sum(row["intervention_steps"] for row in episodes) / steps if steps else None


def _evaluate(
    config: TrainConfig,
    env: RobotEnv,
    policy: Policy,
    perception: Perception,
    observers: Sequence[Observer] = (),
    *,
    site: Site,
    free: Callable[[], bool],
) -> Evaluation:
    env.interventions = False
    rollout = Rollout(env, policy, perception, config.replay.history, observers)
    outcomes: list[bool] = []
    with Progress(config.evaluation.episodes, "evaluate", unit="episodes") as progress:

        def show(result: EpisodeResult) -> None:
            outcomes.append(result.success)
            progress.update(len(outcomes), success=mean(outcomes))

        settings, waits = config.evaluation, Patience(site.lost_episodes, progress.log)
        return evaluate(
            rollout, episodes=settings.episodes, seed=settings.seed, on_episode=show, patience=waits, free=free
        )


@contextlib.contextmanager
def _learner(config: TrainConfig, env: RobotEnv, site: Site, potential: Potential | None) -> Iterator[LearnerPort]:
    """The learner, in this process or in another."""
    perception = make_perception(env.observation_specs, config, potential)
    if config.processes == 1:
        yield LocalLearner(env.environment_spec, perception, config)
        return
    waits = stands_still(env.clock)
    peer = site.learner() if site.learner else None
    with RemoteLearner(env.environment_spec, perception, config, wait_between_steps=waits, peer=peer) as learner:
        yield learner


def _stop(training: Training, progress: Progress) -> None:
    """Training ends with the running episode."""
    training.stop_requested = True
    progress.log("stopping at the end of this episode, then saving; once more to stop at once without saving")
