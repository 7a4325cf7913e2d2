"""The contract of a task: its limits, its own observations, and when it is done.

A task owns meaning and nothing else: `RobotEnv` owns the loop, `RobotIO` the robot. In simulation a task may look at
the true scene to judge success; on a robot a classifier or a person judges. Neither shows in the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from robot_rl.clock import Clock
from robot_rl.config.components import SimulationConfig
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.config.randomization import RandomizationConfig, WorldConfig
from robot_rl.data.schema import Source
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.env.cell_geometry.capsule import Capsule, KeepOutLimits
from robot_rl.env.choice import GRIPPER_CHOICES
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.env.playback import Playback
from robot_rl.env.robot_io import Links, RobotIO, RobotState
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose
from robot_rl.spec import ArraySpec

TASK_JUDGE = "task"
"""Name of the task as the judge of a step."""


@dataclass(frozen=True)
class Workspace:
    """Where the tcp may be sent, relative to its pose at reset (axes of the base frame).

    Attributes:
        low: Smallest offset [m] in x, y, z.
        high: Largest offset [m] in x, y, z.
        yaw: Largest turn about the vertical, either way [rad].
        tilt: Largest tilt of the tool axis [rad].
    """

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    yaw: float
    tilt: float


@dataclass(frozen=True)
class StartPose:
    """Where the arm is brought before each episode, by itself.

    Attributes:
        position: Of the tcp in the base frame [m].
        quaternion: Its attitude in the base frame, (w, x, y, z); of any length but zero.
        retreat: How far it first goes back along the tool's own z, e.g. out of a hole [m].
        speed: Largest speed of the tcp on its way [m/s].
        turn_rate: Largest rate at which it turns [rad/s].

    Raises:
        ValueError: if the quaternion is zero, or it would not move or go back forwards.
    """

    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    retreat: float = 0.0
    speed: float = 0.1
    turn_rate: float = 0.5

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not np.linalg.norm(self.quaternion) > 1e-6:
            raise ValueError(
                f"quaternion is {list(self.quaternion)}; it is (w, x, y, z), e.g. [0, 1, 0, 0] for downwards"
            )
        if not (self.retreat >= 0 and self.speed > 0 and self.turn_rate > 0):
            raise ValueError("retreat must not be negative, speed and turn_rate must be positive")

    @property
    def pose(self) -> Pose:
        """T_base_tcp."""
        return Pose(np.array(self.position), np.array(self.quaternion) / np.linalg.norm(self.quaternion))


@dataclass(frozen=True)
class ArmSpec:
    """What a task has one of several arms do. The entries that `TaskSpec` has too mean the same there.

    Attributes:
        workspace: Where the tcp may be sent.
        base_position: Where the arm's base stands, in a frame that all arms of the cell share [m].
        base_quaternion: Its attitude there, (w, x, y, z), of unit length.
        capsules: The arm's shape near the tool, in the tcp frame; other arms keep out of it.
    """

    workspace: Workspace
    base_position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    base_quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    action_axes: tuple[str, ...] = ("x", "y", "z", "roll", "pitch", "yaw")
    action_translation: float = 0.01
    action_rotation: float = 0.06
    wrench_axes: tuple[str, ...] = ()
    action_force: float = 0.0
    action_torque: float = 0.0
    gripper: bool = False
    gripper_open_width: float = 0.08
    gripper_step: float = 0.0
    capsules: tuple[Capsule, ...] = ()

    @property
    def T_cell_base(self) -> Pose:
        """Where the arm's base stands, in the frame of the cell."""
        return Pose(np.array(self.base_position), np.array(self.base_quaternion))


@dataclass(frozen=True)
class TaskSpec:
    """The fixed facts of a task, of one arm or, made by `of_arms`, of several.

    Attributes:
        name: Name in the registry.
        instruction: What the task is, in a sentence that a person or a vision-language model understands.
        max_steps: Steps until the episode is truncated.
        control_period: Time between policy actions [s].
        workspace: Where the tcp may be sent.
        action_axes: Which tcp axes the policy moves: of `x y z roll pitch yaw`. The others hold their reset value.
        action_translation: Largest displacement per step and axis [m].
        action_rotation: Largest turn per step and axis [rad].
        wrench_axes: Along and about which tcp axes the policy commands a feed-forward wrench, beside the steps: of
            the same six names. The arm's controller adds it to its own; it expires with the command.
        action_force: Largest force along each of `x y z` among them [N].
        action_torque: Largest torque about each of `roll pitch yaw` among them [Nm].
        gripper: Whether the last entry of an action moves the gripper: a choice (-1 close, 0 keep, 1 open), or the
            share of a `gripper_step` by which it opens.
        gripper_open_width: Distance between the fingers when open [m].
        gripper_step: Largest change of that distance per step [m], of a gripper that goes to any width; 0: a choice.
        return_range: Smallest and largest possible discounted return; critic targets are clamped to it.
        force_limit: Filtered contact force [N] that ends the episode as a failure.
        cameras: Names of the cameras that the scene has.
        start: Where the arm is brought before the scene is made ready; None leaves it to the task's reset.
        world: Settings of `WorldConfig` that the scene has; none on a robot.
        stages: Stages on the way to success that it judges, by `stage_metrics`.
        reverse: Name of the task that begins where this one ends, and ends where this one begins; empty: none is known.
        arms: What each of several arms does, by name; empty: there is one. The entries above that `ArmSpec` has too are
            then the first arm's. An action is the parts of all arms, in this order, each its axes, its wrench and the
            share of its `gripper_step` if it has one, and one choice of all other grippers.
        keep_out: How near several arms may come to each other; None: their workspaces do not meet.
    """

    name: str
    instruction: str
    max_steps: int
    control_period: float
    workspace: Workspace
    action_axes: tuple[str, ...] = ("x", "y", "z", "roll", "pitch", "yaw")
    action_translation: float = 0.01
    action_rotation: float = 0.06
    wrench_axes: tuple[str, ...] = ()
    action_force: float = 0.0
    action_torque: float = 0.0
    gripper: bool = False
    gripper_open_width: float = 0.08
    gripper_step: float = 0.0
    return_range: tuple[float, float] = (0.0, 1.0)
    force_limit: float = 60.0
    cameras: tuple[str, ...] = ()
    start: StartPose | None = None
    world: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    reverse: str = ""
    arms: Mapping[str, ArmSpec] = field(default_factory=dict, hash=False)
    keep_out: KeepOutLimits | None = None

    @classmethod
    def of_arms(cls, arms: Mapping[str, ArmSpec], **facts: Any) -> TaskSpec:
        """Make the facts of a task of several arms; `facts` are all that are not an arm's."""
        first = next(iter(arms.values()))
        return cls(arms=dict(arms), **_own(first), **facts)

    def of_arm(self, name: str) -> TaskSpec:
        """Return the facts of this task as they are for one of its arms, e.g. for who leads that arm alone."""
        return replace(self, arms={}, keep_out=None, **_own(self.arms[name]))

    @property
    def each(self) -> Mapping[str, TaskSpec]:
        """The facts as they are for each arm alone, by name; a single arm has none."""
        return {name: self.of_arm(name) for name in self.arms} or {"": self}

    @property
    def grippers(self) -> int:
        """Number of grippers that an action has a choice of."""
        return sum(arm.gripper and not arm.gripper_step for arm in self.arms.values() or (self,))

    @property
    def action_size(self) -> int:
        """Length of the action vector."""
        arms = self.arms.values() or (self,)
        own = (len(a.action_axes) + len(a.wrench_axes) + bool(a.gripper and a.gripper_step) for a in arms)
        return sum(own) + bool(self.grippers)

    @property
    def environment(self) -> EnvironmentSpec:
        """The part of these facts that actors and learners need."""
        return EnvironmentSpec(
            name=self.name,
            max_steps=self.max_steps,
            control_period=self.control_period,
            action_size=self.action_size,
            choices=GRIPPER_CHOICES**self.grippers if self.grippers else 0,
            return_range=self.return_range,
            instruction=self.instruction,
            cameras=self.cameras,
            world=self.world,
            arms=tuple(self.arms),
        )


def _own(arm: ArmSpec) -> dict[str, Any]:
    """Return the facts of an arm that a task of this arm alone has too."""
    return {
        "workspace": arm.workspace,
        "action_axes": arm.action_axes,
        "action_translation": arm.action_translation,
        "action_rotation": arm.action_rotation,
        "wrench_axes": arm.wrench_axes,
        "action_force": arm.action_force,
        "action_torque": arm.action_torque,
        "gripper": arm.gripper,
        "gripper_open_width": arm.gripper_open_width,
        "gripper_step": arm.gripper_step,
    }


def check_one_arm(spec: TaskSpec, what: str) -> None:
    """Check that a task is of one arm, for what serves no more.

    Args:
        spec: The task.
        what: What leads one arm only, for the message.

    Raises:
        ConfigError: naming the arms.
    """
    if spec.arms:
        raise ConfigError(
            f"{spec.name} has the arms {', '.join(spec.arms)}, and {what} leads one arm; choose a task of one arm "
            "(`robot-rl tasks`)"
        )


@dataclass(frozen=True)
class Outcome:
    """State of the task after a step.

    Attributes:
        success: The task is done.
        failure: Why the episode must end without success, or None.
        reward: Reward of the step.
        metrics: Facts worth recording, e.g. the lateral error at success [m].
        judge: Name of the source of this result; recorded as the source of the reward.
        cut: Why the episode is cut here without a judgement, or None; it then counts as truncated.
        held: The arm was held in this step, whatever was commanded.
        overruled: Name of the judge whose result a later judge reversed, or None.
    """

    success: bool
    reward: float
    failure: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    judge: str = TASK_JUDGE
    cut: str | None = None
    held: bool = False
    overruled: str | None = None


class Task(Protocol):
    """Scene, reset and meaning of one skill."""

    @property
    def spec(self) -> TaskSpec:
        """The fixed facts."""
        ...

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Specs of what `observe` returns, keys `state/<what>`."""
        ...

    def reset(self, seed: int) -> None:
        """Make the scene ready, with the arm at its start pose. The same seed gives the same scene."""
        ...

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the task's own part of the observation, e.g. an estimate of where the hole is."""
        ...

    def evaluate(self, state: RobotState) -> Outcome:
        """Judge the step that led to `state`. Called once a step."""
        ...


class Scene(Protocol):
    """The state of a simulated scene, which another simulation of the same scene can go on from."""

    def save(self) -> np.ndarray:
        """Return the state, at rest; shape (n,)."""
        ...

    def restore(self, saved: np.ndarray) -> None:
        """Put the scene into a saved state.

        Raises:
            ConfigError: if it is that of another scene.
        """
        ...


class ArmStops(Protocol):
    """Stops of an arm that only a person ends: reflexes, protective stops, a lost connection, limits that latch."""

    @property
    def stopped(self) -> str | None:
        """Why the arm holds until a person lets it go on; None if it may move."""
        ...

    def recover(self) -> None:
        """End the stop, after a person has consented; the arm holds where it is until the next command.

        Raises:
            ArmStoppedError: if it cannot be ended, with the cure.
        """
        ...


class Judge(Protocol):
    """A filter of the outcome of each step: a classifier of frames, or an operator."""

    def begin(self) -> None:
        """Start an episode; its scene is ready, and nothing has been observed of it."""
        ...

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Return the final outcome, given the one so far and the observation after the step. Called once a step."""
        ...


Taken = np.ndarray | Mapping[str, np.ndarray]
"""What an operator commands: the whole action, or by name the action of each arm that they lead, in its own space: its
axes, its wrench, then its gripper if it has one. The policy keeps the others."""


class Operator(Protocol):
    """A person (or a script that acts as one) who can demonstrate and take over."""

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode; if `demonstrate`, the operator leads it from the first step to the last."""
        ...

    def act(self, state: RobotState, T_base_reset: Pose) -> Taken | None:
        """Return the operator's action, in the policy's action space; None leaves the policy in control.

        All zeros: the operator is in control, but commands nothing; the step is then recorded as a hold, not as theirs.
        Of several arms, they may lead some: then it returns the actions of those arms.
        """
        ...


@dataclass(frozen=True)
class WorkcellOptions:
    """Options of a workcell.

    Attributes:
        cameras: Cameras to read; none makes a simulation fast.
        image_size: Height and width of the frames [px].
        estimates: Whether the task's own part of the observation, e.g. where it believes the hole to be, is included; a
            policy that sees does without.
        realtime: Whether a simulation keeps pace with the wall clock, as a robot does, instead of waiting for its user.
        reaction_time: From an observation to its command [s], see `TrainConfig.reaction_time`.
        simulation: Dynamics of a simulated arm.
        randomization: Draws of a simulation for each episode.
        world: How a simulated scene differs from the task's own.
        environment: How an environment of others is made, and what counts in it.
        intervention: How the scripted operator takes over.
    """

    cameras: tuple[str, ...] = ()
    image_size: tuple[int, int] = (128, 128)
    estimates: bool = True
    realtime: bool = False
    reaction_time: float = 0.0
    simulation: SimulationConfig = field(default_factory=SimulationConfig)
    randomization: RandomizationConfig = field(default_factory=RandomizationConfig)
    world: WorldConfig = field(default_factory=WorldConfig)
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    intervention: InterventionConfig = field(default_factory=InterventionConfig)


@dataclass(frozen=True)
class Workcell:
    """Everything that an environment stands on: a robot, its clock, a task, and who can help.

    Attributes:
        io: The robot.
        clock: The robot's clock.
        task: The task.
        operator: Who demonstrates and intervenes; `source` of their steps is `operator_source`.
        operator_source: `HUMAN` for a person, `SCRIPT` for the scripted operator.
        close: Releases renderers, sockets and the like.
        playback: How a simulation moves a recorded motion again; None on a robot.
        judges: Filters of the outcome of a step, applied in this order; that of stages is the last one anyway.
        await_frames: Called last before the first observation of an episode, with which its periods begin: returns when
            frames have just come, so that they are as fresh in every later period. A simulation that waits for its user
            has nothing to wait for.
        mounts: Where the cameras are, of which that is known.
        measures_wrench: Whether the arm measures forces; without, they are not observed, and no limit on them counts.
        takes_wrench: Whether the arm follows the feed-forward wrench of a command; one that does not refuses it.
        stops: Stops of the arm that only a person ends; None where there are none.
        person_resets: A person has to make the scene ready before each episode.
        person_judges: A person decides whether an episode succeeded, maybe beside a classifier or labels.
        person_stages: Names of the stages on the way there that a person judges.
        view: Returns a picture of the scene as it is now, from the camera of that name and of that height and width
            [px]: (height, width, 3), uint8. Opens a renderer when it is called first. None on a robot.
        scene: The state of a simulated scene; None on a robot, whose scene stays as it is.
        links: Where the arm's links are, for people; None where its kinematics are not known.
    """

    io: RobotIO
    clock: Clock
    task: Task
    operator: Operator | None
    operator_source: Source
    close: Callable[[], None]
    playback: Playback | None = None
    judges: tuple[Judge, ...] = ()
    await_frames: Callable[[], None] = lambda: None
    mounts: Mapping[str, CameraMount] = field(default_factory=dict)
    view: Callable[[str, tuple[int, int]], np.ndarray] | None = None
    measures_wrench: bool = True
    takes_wrench: bool = False
    stops: ArmStops | None = None
    person_resets: bool = False
    person_judges: bool = False
    person_stages: tuple[str, ...] = ()
    scene: Scene | None = None
    links: Links | None = None
