"""Where a run takes place: in this process, or with a robot, a learner and an operator in other processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.env.environment import (
    Environment,
    SupportsInterventions,
    check_cameras,
    check_demonstrator,
    check_world,
    no_cameras,
    waits_between_steps,
)
from robot_rl.env.registry import is_environment, make_environment, make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.learn.engine.hardware import check_device
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.learn.local_learner import LocalLearner
from robot_rl.learn.perception import Perception, Potential, make_perception
from robot_rl.link.peer import LearnerPeer
from robot_rl.link.remote_learner import RemoteLearner
from robot_rl.run.assistance import Assistance
from robot_rl.run.directory.calibrations import CalibrationRecord, Calibrations
from robot_rl.run.episode_retry import EpisodeRetry
from robot_rl.run.make_reward import TASK_REWARD, RewardSetup

OpenPort = Callable[
    [Environment, Callable[[], Perception], TrainConfig], contextlib.AbstractContextManager[LearnerPort]
]
"""Opens the learner of a run that is not its own."""


def _cameras_of_task(config: TrainConfig) -> tuple[str, ...]:
    """Return the cameras of the task or environment, which is made without them, and closed."""
    options = workcell_options(replace(config, observations="state", realtime=False))
    with contextlib.closing(make_environment(config.task, options)) as env:
        return env.environment_spec.cameras


def _no_records(cameras: Sequence[str]) -> Sequence[CalibrationRecord]:
    del cameras
    return ()


@dataclass(frozen=True)
class Deployment:
    """The parts of a run that depend on the place; the defaults are a simulation in this process.

    Attributes:
        workcell: Makes the workcell of a task.
        cameras: Returns the names of all cameras that there are for the task of a configuration.
        learner: Makes the peer of the link to the learner; None starts a process for it.
        port: Opens the learner of the run, given the environment, what makes its perception, and the configuration;
            None: the run has a learner of its own.
        repeatable: An episode can be played again from its seed. Where it cannot, a resumed run learns from what was
            recorded after its checkpoint; where it can, it plays that again, to the same result.
        lost_episodes: How many episodes in a row may be lost because the robot does not answer, before the run ends;
            without those whose arm a person has to let go on.
        can_film: Evaluation episodes can be filmed with any cameras.
        calibrations: Returns the calibrations that the cameras of these names report.
        assistance: The human operator; None without one.
        resume_command: The command that continues a run, up to the name of a directory.
        resumed_in: That directory; None: that of the run.
        facts: Of the place, for the provenance of a new run.
        aside: Entered for each evaluation during a training, e.g. to put the scene back afterwards.
        call: The user's command line that calls a person, with the message as its last argument; empty: none.
    """

    workcell: Callable[[str, WorkcellOptions], Workcell] = make_workcell
    cameras: Callable[[TrainConfig], tuple[str, ...]] = _cameras_of_task
    learner: Callable[[], LearnerPeer] | None = None
    port: OpenPort | None = None
    repeatable: bool = True
    lost_episodes: int = 0
    can_film: bool = True
    calibrations: Callable[[Sequence[str]], Sequence[CalibrationRecord]] = _no_records
    assistance: Assistance | None = None
    resume_command: str = "robot-rl train --resume --out"
    resumed_in: Path | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    aside: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    call: str = ""

    def check(self, config: TrainConfig) -> None:
        """Check that the configured device is there, if the learner runs on this machine.

        Raises:
            ConfigError: if the device is not there.
        """
        if self.learner is None and self.port is None:
            check_device(config.device)

    def with_cameras(self, config: TrainConfig) -> TrainConfig:
        """Return the configuration with all cameras of the place, where its policy sees and it names none.

        Raises:
            ConfigError: if there are none.
            RobotRLError: if the task cannot be made.
        """
        if config.observations == "state" or config.encoder.cameras:
            return config
        cameras = self.cameras(config)
        if not cameras:
            raise no_cameras(config.task)
        return replace(config, encoder=replace(config.encoder, cameras=cameras))

    def read_calibrations(self, config: TrainConfig, copies: Mapping[str, Path] = MappingProxyType({})) -> Calibrations:
        """Return the calibrations that the configuration names and the cameras of the policy report.

        `copies` are those of a run that goes on, see `Calibrations.of`.

        Raises:
            CalibrationError: if they contradict each other, or cannot be read.
        """
        observed = RewardSetup(config.reward).observe(workcell_options(config))
        return Calibrations.of(config, self.calibrations(observed.cameras), copies)

    @contextlib.contextmanager
    def environment(
        self,
        task: str,
        options: WorkcellOptions,
        reward: RewardSetup = TASK_REWARD,
        *,
        interventions: bool = False,
        played: bool = True,
    ) -> Iterator[Environment]:
        """Open the environment of a task; it is closed on exit.

        Args:
            task: Name of the task.
            options: What is observed.
            reward: The reward of its episodes.
            interventions: The operator may take over.
            played: Episodes are played in it; otherwise only its facts are looked at.

        Raises:
            ConfigError: if a scripted operator is described, and a person assists, or nobody does who judges a stage.
        """
        if is_environment(task) and self.assistance is None:
            with contextlib.closing(make_environment(task, options)) as other:
                check_cameras(options.cameras, other.environment_spec)
                check_world(options.world, other.environment_spec)
                if isinstance(other, SupportsInterventions):
                    other.interventions = interventions
                yield other
            return
        reward.check_people(present=self.assistance is not None or not played)
        cell = reward.workcell(lambda: self.workcell(task, options))
        if self.assistance is None:
            with contextlib.closing(RobotEnv(cell, interventions=interventions, options=options)) as env:
                yield env
            return
        options.intervention.refuse("here a person takes over")
        overrule = reward.config.overrule_s
        with self.assistance.environment(cell, options, interventions=interventions, overrule_s=overrule) as env:
            yield env

    def demonstrator(self, env: Environment) -> Environment:
        """Return the environment in which demonstrations are recorded; usually `env`, the open one."""
        return env if self.assistance is None else self.assistance.demonstrator

    def check_demonstrator(self, env: Environment) -> None:
        """Check that somebody can demonstrate there.

        Raises:
            ConfigError: if there is nobody.
        """
        check_demonstrator(self.demonstrator(env))

    @contextlib.contextmanager
    def open_learner(self, config: TrainConfig, env: Environment, potential: Potential | None) -> Iterator[LearnerPort]:
        """Open the learner, in this process or in another.

        Args:
            config: The run's configuration.
            env: The environment that it learns about.
            potential: Shapes the rewards; None does not.
        """
        actions = env.environment_spec.action_size if config.has_base and not config.steers else None
        perceive = partial(make_perception, env.observation_specs, config, potential, proposal=actions)
        if self.port is not None:
            with self.port(env, perceive, config) as port:
                yield port
            return
        perception = perceive()
        if config.processes == 1:
            yield LocalLearner(env.environment_spec, perception, config)
            return
        waits = waits_between_steps(env)
        peer = self.learner() if self.learner else None
        with RemoteLearner(env.environment_spec, perception, config, wait_between_steps=waits, peer=peer) as learner:
            yield learner

    def retry(self, log: Callable[[str], object]) -> EpisodeRetry:
        """Return the retries of episodes in which the robot is lost; `log` gets a message about each."""
        return EpisodeRetry(self.lost_episodes, log, attended=self.assistance is not None)

    def may_start(self) -> bool:
        """Return whether the next episode may start; wait a moment while somebody holds the arm."""
        return self.assistance is None or self.assistance.may_start()


def workcell_options(config: TrainConfig) -> WorkcellOptions:
    """Return what a configured policy needs of the workcell; `RewardSetup.observe` adds what the reward needs."""
    reaction_time = config.reaction_time if config.realtime else 0.0
    options = WorkcellOptions(
        realtime=config.realtime,
        reaction_time=reaction_time,
        simulation=config.simulation,
        randomization=config.randomization,
        world=config.world,
        environment=config.environment,
        intervention=config.intervention,
    )
    if config.observations == "pixels":
        size = config.encoder.image_size
        options = replace(options, cameras=config.encoder.cameras, image_size=(size, size), estimates=False)
    return options
