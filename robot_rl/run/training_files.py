"""The files of a training: a new run directory or a resumed one, its checkpoint, store and metrics."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.resuming import with_saved_cameras
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.environment import Environment, check_same_actions
from robot_rl.run.demonstrate import adopt_demonstrations, check_demonstrations
from robot_rl.run.deployment import Deployment, workcell_options
from robot_rl.run.directory.arm_file import arm_file_facts, check_same_arm_file
from robot_rl.run.directory.calibrations import Calibrations, own_copies
from robot_rl.run.directory.fleet_robot import FACT, check_learns
from robot_rl.run.directory.metrics import OF_EPISODES, MetricsWriter
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.lineage.initial_parts import InitialParts
from robot_rl.run.make_reward import RewardSetup
from robot_rl.run.resume import check_crops, check_goes_on_here, checkpoint_to_resume

logger = logging.getLogger(__name__)


class TrainingFiles:
    """The files of one training, in the order in which they are opened.

    Attributes:
        config: The run's configuration, with the cameras that are seen.
        run: The run directory. That of a new run is created by `begin`.
        store: The recorded episodes, from `begin` on.
        metrics: The writer of `metrics.jsonl`, from `begin` on.
        checkpoint: Content of the checkpoint of a resumed run, once loaded; None if there is none.
        initial: What the run takes over from another one; None once it has a checkpoint, and if it takes nothing.
    """

    run: RunDirectory
    store: EpisodeStore
    metrics: MetricsWriter

    def __init__(
        self,
        config: TrainConfig,
        path: Path,
        calibrations: Calibrations,
        run: RunDirectory | None,
        initial: InitialParts | None = None,
    ) -> None:
        self.config, self._path, self._calibrations = config, path, calibrations
        self.resumed = run is not None
        if run is not None:
            self.run = run
        self.checkpoint: dict[str, Any] | None = None
        self.initial = initial

    @property
    def env_steps(self) -> int:
        """Online steps up to the checkpoint."""
        return int(self.checkpoint["env_steps"]) if self.checkpoint else 0

    def reward(self) -> RewardSetup:
        """Make the reward set-up, from the run's own files if it is resumed. See `RewardSetup`."""
        if self.resumed:
            return RewardSetup.of_run(self._path, self.config.reward)
        return RewardSetup.from_config(self.config.reward)

    def load_checkpoint(self) -> None:
        """Load the checkpoint of a resumed run, or what it takes over from another one if it has none yet.

        Raises:
            CheckpointError: see `checkpoint_to_resume` and `InitialParts.of_run`.
        """
        if not self.resumed:
            return
        self.checkpoint = checkpoint_to_resume(self.run, self.config)
        origin = RunDirectory.read_facts(self._path).get("origin")
        if self.checkpoint is None and origin is not None:
            self.initial = InitialParts.of_run(self._path, origin, self.config)

    @contextlib.contextmanager
    def begin(
        self, reward: RewardSetup, env: Environment, *, deployment: Deployment, demos: Path | None, overlay: str | None
    ) -> Iterator[None]:
        """Create what is missing, and open store and metrics, which are closed on exit.

        If what follows is refused before `run.begun` is set, e.g. because the console's port is in use, the directory
        of a new run goes again.

        Args:
            reward: The reward set-up, whose files are pinned.
            env: The environment; adopted demonstrations must hold what it observes.
            deployment: The place. If it is repeatable, episodes after the checkpoint are played again; otherwise those
                cut short are kept. Its facts are recorded by a new run.
            demos: Store of demonstrations for a new run; None if they are recorded.
            overlay: Name of an overlay with other rewards for these; None takes the recorded ones.
        """
        with contextlib.ExitStack() as stack:
            facts = {"task": self.config.task, "seed": self.config.seed}
            spec = env.environment_spec
            if self.resumed:
                check_same_actions(RunDirectory.read_facts(self._path).get("actions"), spec, self._path)
            else:

                def prepare(path: Path) -> None:
                    self._begin_with(path, facts, env, demos, overlay)

                origin = {} if self.initial is None else {"origin": self.initial.facts}
                acts = {"actions": spec.actions} if spec.actions else {}
                new = {**deployment.facts, **arm_file_facts(self.config), **acts, **origin}
                self.run = stack.enter_context(
                    RunDirectory.create(
                        self._path, self.config, calibrations=self._calibrations, facts=new, prepare=prepare
                    )
                )
            reward.pin(self.run)
            keep = not deployment.repeatable and self.checkpoint is not None
            opened = EpisodeStore.open_or_create(self.run.episodes_path, facts, keep_interrupted=keep)
            self.store = stack.enter_context(opened)
            for message in self.store.recovered:
                logger.info("%s", message)
            kept = None
            if self.resumed:  # without a checkpoint nothing was kept, not even the records of step 0
                kept = self.env_steps if self.checkpoint else -1
            lasting = OF_EPISODES if keep else ()  # they stay, and the learner gets them again from the store
            self.metrics = stack.enter_context(
                MetricsWriter(self.run.metrics_path, self.run.tensorboard_path, kept, lasting)
            )
            yield

    def _begin_with(
        self, path: Path, facts: Mapping[str, Any], env: Environment, demos: Path | None, overlay: str | None
    ) -> None:
        """Write into the directory of a new run what it has from others, before it counts as a run."""
        of_run = None
        if self.initial is not None:
            self.initial.save(path)
            of_run = self.initial.demonstrations
        if (source := demos or of_run) is not None:
            with EpisodeStore.create(path / "episodes", facts) as store:
                adopt_demonstrations(store, source, env, overlay, of_run=of_run is not None)


@contextlib.contextmanager
def open_training_files(
    config: TrainConfig,
    path: Path,
    deployment: Deployment,
    *,
    resume: bool,
    demos: Path | None,
    initial: InitialParts | None = None,
) -> Iterator[TrainingFiles]:
    """Check what can be checked at once, and open the directory of a resumed run.

    Args:
        config: The run's configuration. Where it names no cameras, a resumed run has its own, a new one all there are.
        path: The run directory.
        deployment: Where the run takes place.
        resume: Continue the run in that directory.
        demos: Store of demonstrations for a new run; None if they are recorded.
        initial: What a new run takes over from another one; None: nothing.

    Raises:
        ConfigError: if settings contradict each other.
        DataError: if the demonstrations are of another task.
        ConfigError: if the cameras of a resumed run show another part of their frames.
        CalibrationError: if the run or the demonstrations were made with other calibrations.
        RunDirectoryError: if there is no run to resume, or another process has it.
    """
    if resume:
        if FACT not in deployment.facts:
            check_learns(path)
        check_goes_on_here(path, config, deployment)
    else:
        deployment.check(config)
    check_consistent(config, resumed=resume)
    if resume:
        config = with_saved_cameras(RunDirectory.read_config(path), config)
    config = deployment.with_cameras(config)
    recorded = RunDirectory.read_calibrations(path) if resume else {}
    calibrations = deployment.read_calibrations(config, own_copies(recorded, path))
    if demos is not None and not resume:
        check_demonstrations(demos, config.task, calibrations)
    if not resume:
        if initial is not None:
            _check_origin(initial, config, calibrations)
        yield TrainingFiles(config, path, calibrations, None, initial)
        return
    with RunDirectory.resume(path, config.task) as run:
        calibrations.check_same(recorded, path)
        check_same_arm_file(path, config)
        check_crops(path, deployment.facts, workcell_options(config).cameras)
        yield TrainingFiles(config, path, calibrations, run)


def _check_origin(initial: InitialParts, config: TrainConfig, calibrations: Calibrations) -> None:
    """Check that the episodes that a run takes over are of its task and calibrations."""
    if (store := initial.demonstrations) is not None:
        check_demonstrations(store, config.task, calibrations)
    if {"replay", "demonstrations"} & {*initial.parts}:
        source = Path(initial.facts["run"])
        calibrations.check_demonstrations(RunDirectory.read_calibrations(source), source)
