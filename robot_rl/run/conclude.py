"""The end of a training: final evaluation, `summary.json`, learning curve and film."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.environment import Environment
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.learn.networks.networks import policy_digest
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.evaluate_run import film
from robot_rl.run.evaluation import Evaluation, evaluate_policy
from robot_rl.run.label_rewards import TrainingRewards
from robot_rl.run.training_loop import COMPARED, Training


@dataclass(frozen=True)
class OpenTraining:
    """The parts of a training that is ready to run, or has run.

    Attributes:
        config: Its configuration.
        training: The training.
        env: Where it acts.
        learner: Its learner.
        run: Its run directory.
        store: Its recorded episodes.
        deployment: Where it takes place.
        labels: Labels that reward its episodes later; None without.
        resumed: Whether it goes on from a checkpoint.
        shown: Leaves its progress display, if it has one of its own.
    """

    config: TrainConfig
    training: Training
    env: Environment
    learner: LearnerPort
    run: RunDirectory
    store: EpisodeStore
    deployment: Deployment
    labels: TrainingRewards | None
    resumed: bool
    shown: contextlib.ExitStack

    @property
    def judge_lost(self) -> str | None:
        """Why nobody finds out any more whether an episode succeeded; None as long as somebody does."""
        if self.labels is None or not (why := self.labels.ended):
            return None
        return f"no more labels come for {self.config.task}: {why}"

    def play_next(self) -> EpisodeResult | None:
        """Play the next episode, as `Training.play_next`; where labels judge it, wait for its label."""
        training, labels = self.training, self.labels
        result = training.play_next()
        if result is None or labels is None:
            return result
        return labels.judged(result, training.env_steps, lambda: training.stop_requested)


def import_ahead() -> None:
    """Import what a training needs later, before an arm is opened: its controller stops it where commands are late.

    Importing these takes up to two seconds, in which other threads of the process wait for up to 0.3 s.
    """
    import torch.utils.tensorboard  # noqa: F401

    import robot_rl.viz.learning_curve  # noqa: F401


def conclude(opened: OpenTraining, evaluated: Evaluation | None = None) -> dict[str, Any]:
    """Evaluate the policy, write the summary, draw the learning curve, and film episodes.

    Args:
        opened: The training.
        evaluated: How the deployed policy does, where that is known; None: it is evaluated.

    Returns:
        The content of `summary.json`.

    Raises:
        RunDirectoryError: if a file cannot be written.
        RobotLostError: if the robot does not answer.
    """
    opened.shown.close()
    config, run, env, learner = opened.config, opened.run, opened.env, opened.learner
    training, deployment, labels = opened.training, opened.deployment, opened.labels
    record, policy = training.record, training.deployed.policy
    learned = record.wall_time
    base = None if training.base is None else training.base.player
    if evaluated is None:
        evaluated = evaluate_policy(config, env, policy, learner.perception, deployment, base=base)
    evaluation = evaluated.summary()
    if config.evaluation.curve_newest:
        network = learner.policy
        newest = evaluate_policy(config, env, network, learner.perception, deployment, base=base).summary()
        evaluation |= {f"newest_{name}": newest[name] for name in COMPARED}
    record.metrics.replace("evaluation", training.env_steps, evaluation)
    records = read_metrics(run.metrics_path)
    summary = {
        "task": config.task,
        "seed": config.seed,
        "env_steps": training.env_steps,
        "robot_minutes": training.env_steps * env.environment_spec.control_period / 60.0,
        "offline_updates": learner.offline_updates,
        "updates": learner.updates,
        "policy": policy_digest(training.deployed.state_dict()["policy"]),
        "utd": learner.update_to_data,
        **evaluation,
        "demo_cycle_time_s": training.demo_cycle_time,
        "timing": record.timing.summary(),
        **({labels.section: labels.summary()} if labels is not None else {}),
        **({"shaping": shaping} if (shaping := RunDirectory.read_facts(run.path).get("shaping")) else {}),
        "person": record.effort.figures,
        "intervention_rate": _intervention_rate([r for r in records if r["kind"] == "episode"], training.env_steps),
        "wall_s": record.wall_time,
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
    if deployment.can_film and filmed:
        cameras = env.environment_spec.cameras
        if film(config, policy, learner.perception, run.video_path, cameras, filmed, settings.seed, base):
            summary["video"] = run.video_path.name
    summary["wall_s"] = record.wall_time
    run.write_json(run.summary_path, summary)
    return summary


def _intervention_rate(episodes: list[dict[str, Any]], env_steps: int) -> dict[str, float | None]:
    """Return the operator's share of steps, in the episodes that reach into the first and the last tenth."""
    tenth = env_steps / 10
    return {
        "first_tenth": _rate([row for row in episodes if row["env_step"] - row["steps"] < tenth]),
        "last_tenth": _rate([row for row in episodes if row["env_step"] > 9 * tenth]),
    }


def _rate(episodes: list[dict[str, Any]]) -> float | None:
    steps = sum(row["steps"] for row in episodes)
    return sum(row["intervention_steps"] for row in episodes) / steps if steps else None
