"""The contract between an actor and the environment in which it acts.

`RobotEnv` fulfils it for every task with a robot arm; `GymnasiumEnvironment` for environments of others. The last part
of this file holds what an environment may offer beyond it: interventions of an operator, a clock, filters of outcomes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from robot_rl.clock import Clock, stands_still
from robot_rl.config.randomization import WorldConfig
from robot_rl.env.choice import grippers_of
from robot_rl.env.step_info import EpisodeStart, StepInfo
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.spec import ArraySpec


@dataclass(frozen=True)
class EnvironmentSpec:
    """The fixed facts of an environment that actors and learners need.

    Attributes:
        name: Its name in the registry; recorded with every episode.
        max_steps: Steps until an episode is truncated.
        control_period: Time between two actions [s].
        action_size: Length of the action vector; every component lies in [-1, 1].
        choices: Number of choices of the last action, where it is discrete: its values are evenly spaced from -1 to 1.
            A gripper has 3: -1 closes, 0 keeps, 1 opens; two have 9. 0: every action is continuous.
        return_range: Smallest and largest possible discounted return; critic targets are clamped to it. None: it is
            not known, and nothing is clamped.
        instruction: The task in one sentence, for people and vision-language models.
        cameras: Names of the cameras that can be observed.
        success: Whether an episode can succeed; where none can, its return is what counts.
        world: Settings of `WorldConfig` that can be changed in it.
        arms: Names of several arms, in the order of their parts of an action; empty: there is one, or none.
        rewards: The settings by which its rewards are made, where they can be made in several ways; recorded with every
            episode, so that demonstrations with other rewards are known.
        actions: What each entry of an action moves, and how often, e.g. `x 0.01 m, gripper, every 0.1 s`; recorded with
            runs and episodes, so that a policy is known whose actions meant something else. Empty: it is not known.
    """

    name: str
    max_steps: int
    control_period: float
    action_size: int
    choices: int = 0
    return_range: tuple[float, float] | None = None
    instruction: str = ""
    cameras: tuple[str, ...] = ()
    success: bool = True
    world: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    rewards: str = ""
    actions: str = ""

    @property
    def grippers(self) -> int:
        """Number of grippers whose joint choice it can be; 0 where it cannot, or there is none."""
        return grippers_of(self.choices)


class Environment(Protocol):
    """A place where a policy acts, one control period at a time."""

    @property
    def environment_spec(self) -> EnvironmentSpec:
        """The fixed facts."""
        ...

    @property
    def observation_specs(self) -> dict[str, ArraySpec]:
        """Specs of an observation's arrays: `state/<what>` vectors and `images/<camera>` frames."""
        ...

    def start(self, seed: int, episode_id: str, *, demonstrate: bool = False) -> EpisodeStart:
        """Start an episode.

        Args:
            seed: Everything random in the episode follows from it.
            episode_id: Name under which its steps are recorded.
            demonstrate: The operator leads the whole episode.

        Raises:
            StepOrderError: if it shall be demonstrated and there is no operator.
        """
        ...

    def advance(
        self, action: np.ndarray, *, last: bool = False, meanwhile: Callable[[], object] | None = None
    ) -> StepInfo:
        """Play one control period.

        Success and failure set `terminated` of the recorded step; the step limit, and `last`, set `truncated`; never
        both.

        Args:
            action: The policy's action, in [-1, 1], shape (n,).
            last: Truncate the episode after this step.
            meanwhile: Called once, between sending the command and the end of the period.

        Raises:
            ActionError: before anything moved, if the action is not finite, in range and of the right shape.
            StepOrderError: before `start`, or after the end of an episode.
        """
        ...

    def close(self) -> None:
        """Stop what moves and release resources; may be called twice."""
        ...


@runtime_checkable
class SupportsInterventions(Protocol):
    """An environment in which an operator may take over from the policy."""

    interventions: bool
    """Whether the operator may take over now."""


@runtime_checkable
class SupportsClock(Protocol):
    """An environment with a clock, whose time may go on while nobody acts."""

    @property
    def clock(self) -> Clock:
        """The clock."""
        ...


@runtime_checkable
class SupportsJudges(Protocol):
    """An environment whose outcomes pass filters, e.g. classifiers and operators."""

    @property
    def judges(self) -> tuple[object, ...]:
        """The filters."""
        ...


@runtime_checkable
class ObservedJudge(Protocol):
    """A filter of outcomes whose view of the episode is observed, too; it comes after all others.

    Attributes:
        observation_specs: Specs of what `observe` returns, keys `state/<what>`.
    """

    observation_specs: dict[str, ArraySpec]

    def observe(self) -> dict[str, np.ndarray]:
        """Return its part of the newest observation."""
        ...


@runtime_checkable
class SupportsDemonstration(Protocol):
    """An environment in which an operator may lead a whole episode."""

    @property
    def can_demonstrate(self) -> bool:
        """Whether there is such an operator."""
        ...


@runtime_checkable
class SupportsStop(Protocol):
    """An environment that can be stopped at any time."""

    def stop(self) -> None:
        """Stop what moves and end the episode."""
        ...


@runtime_checkable
class SupportsCalls(Protocol):
    """An environment, or an operator, that can be called to help the policy."""

    @property
    def can_be_called(self) -> bool:
        """Whether somebody takes over when called; people do as they like."""
        ...

    def call_for_help(self) -> None:
        """Have the operator take over as soon as they can; without effect while they lead, or where nobody comes."""
        ...


@runtime_checkable
class SupportsAdvice(Protocol):
    """An environment whose operator can be asked for an action, without taking over."""

    def begin_advice(self, seed: int) -> None:
        """Have the operator only advise for the rest of the episode that has just started.

        Raises:
            ConfigError: if there is no operator who could, as there is none or it is a person.
        """
        ...

    def advise(self) -> np.ndarray | None:
        """Return the operator's action for the newest observation; None where the operator has none."""
        ...


@runtime_checkable
class SupportsGoals(Protocol):
    """An environment that observes a goal, and judges any state by any other goal."""

    @property
    def goal_keys(self) -> tuple[str, str] | None:
        """Keys of the achieved and of the desired goal in an observation; None where it has no goals."""
        ...

    def judge_goals(self, achieved: np.ndarray, desired: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Judge N steps that achieved something by N goals.

        Args:
            achieved: What each step led to, shape (N, goal).
            desired: The goals, shape (N, goal).

        Returns:
            The rewards as they would be recorded, shape (N,), and whether nothing would follow, shape (N,), bool.
        """
        ...


@runtime_checkable
class SupportsGivingUp(Protocol):
    """An environment, or a task, whose start may wait for a person."""

    def give_up(self) -> None:
        """Let a start that waits for a person end with `RobotLostError`, now and from now on; for a signal handler."""
        ...


def check_cameras(wanted: Iterable[str], spec: EnvironmentSpec) -> None:
    """Check that there are cameras of these names.

    Raises:
        ConfigError: if there are no cameras at all.
        UnknownNameError: naming the first that is not there.
    """
    for camera in wanted:
        if camera not in all_cameras(spec):
            raise UnknownNameError("camera", camera, spec.cameras, "encoder.cameras")


def check_world(world: WorldConfig, spec: EnvironmentSpec) -> None:
    """Check that what differs from the task's own world can be changed in it.

    Raises:
        ConfigError: naming what cannot, and what can.
    """
    own = asdict(WorldConfig())
    if wrong := [name for name, value in asdict(world).items() if value != own[name] and name not in spec.world]:
        can = f"it has {', '.join(spec.world)}" if spec.world else "nothing can be changed in its world"
        raise ConfigError(f"{spec.name} has no world.{', world.'.join(wrong)}; {can}")


def check_fits(trained: Environment, other: Environment) -> None:
    """Check that a policy of one environment can act in another: it observes the same, and acts alike.

    Raises:
        ConfigError: naming every difference.
    """
    ours, theirs = trained.observation_specs, other.observation_specs
    (here, there), wrong = (trained.environment_spec, other.environment_spec), []
    if missing := sorted(ours.keys() - theirs.keys()):
        wrong.append(f"it observes {', '.join(missing)}, which {there.name} does not have")
    if more := sorted(theirs.keys() - ours.keys()):
        wrong.append(f"{there.name} has {', '.join(more)}, which it does not know")
    wrong += [
        f"{key} has shape {theirs[key].shape} there, not {ours[key].shape}"
        for key in sorted(ours.keys() & theirs.keys())
        if ours[key].shape != theirs[key].shape
    ]
    if (here.action_size, here.choices) != (there.action_size, there.choices):
        wrong.append(f"an action is {_action_text(there)} there, not {_action_text(here)}")
    elif acts_otherwise(here.actions, there):
        wrong.append(f"an action is {there.actions}, not {here.actions}")
    if wrong:
        raise ConfigError(f"a policy of {here.name} does not fit {there.name}: {'; '.join(wrong)}")


def acts_otherwise(recorded: str | None, spec: EnvironmentSpec) -> bool:
    """Return whether recorded `EnvironmentSpec.actions` are known to be others than here."""
    return bool(recorded and spec.actions and recorded != spec.actions)


def check_same_actions(recorded: str | None, spec: EnvironmentSpec, run: object) -> None:
    """Check that an action means what it meant to the policy of a run.

    Args:
        recorded: `EnvironmentSpec.actions` that the run recorded; None for one from before.
        spec: Of the environment in which it would act.
        run: The run, for the message.

    Raises:
        ConfigError: naming both.
    """
    if acts_otherwise(recorded, spec):
        raise ConfigError(
            f"{run}: an action of its policy is {recorded}, and one of {spec.name} is {spec.actions} here; set axes, "
            "steps and period of the task as they were, or begin a new run"
        )


def _action_text(spec: EnvironmentSpec) -> str:
    numbers = f"{spec.action_size - bool(spec.choices)} numbers"
    return f"{numbers} and one of {spec.choices} choices" if spec.choices else numbers


def all_cameras(spec: EnvironmentSpec) -> tuple[str, ...]:
    """Return the names of all cameras.

    Raises:
        ConfigError: if there is none.
    """
    if not spec.cameras:
        raise no_cameras(spec.name)
    return spec.cameras


def no_cameras(task: str) -> ConfigError:
    """Return the error of a task or environment that has no cameras where some are wanted."""
    return ConfigError(
        f"{task} has no cameras, so nothing can be seen or filmed; do without --obs pixels, --camera, --video"
    )


def check_demonstrator(env: Environment) -> None:
    """Check that an operator can demonstrate here.

    Raises:
        ConfigError: if there is none.
    """
    if not (isinstance(env, SupportsDemonstration) and env.can_demonstrate):
        raise ConfigError(
            f"{env.environment_spec.name} has no operator who could demonstrate; train without demonstrations "
            "(--set demonstrations=0) or with recorded ones (--demos STORE); an expert is environment.expert"
        )


def stop_arm(env: Environment) -> None:
    """Stop the arm at once and end the episode, because what decides about it has failed; nothing where no arm is."""
    if isinstance(env, SupportsStop):
        env.stop()


def judges_of(env: Environment) -> tuple[object, ...]:
    """Return the filters of the environment's outcomes; none where it has none."""
    return env.judges if isinstance(env, SupportsJudges) else ()


def waits_between_steps(env: Environment) -> bool:
    """Return whether time stands still between two steps, so that an actor may wait there for its learner."""
    return stands_still(env.clock) if isinstance(env, SupportsClock) else True


def disable_interventions(env: Environment) -> None:
    """Keep the operator from taking over from now on; without effect where none can."""
    if isinstance(env, SupportsInterventions):
        env.interventions = False


@contextlib.contextmanager
def without_interventions(env: Environment) -> Iterator[None]:
    """Keep the operator from taking over inside the context, e.g. for an evaluation."""
    if not isinstance(env, SupportsInterventions):
        yield
        return
    before, env.interventions = env.interventions, False
    try:
        yield
    finally:
        env.interventions = before
