"""What a task says that no standard message can: versioned JSON in a `std_msgs/String`, readable by `ros2 topic echo`.

Each kind is a dataclass, checked field by field on arrival. Numbers cross without loss.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from std_msgs.msg import String

from robot_rl.config.components import SimulationConfig
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.env.task import StartPose, TaskSpec
from robot_rl.errors import LinkError
from robot_rl.run.directory.calibrations import CalibrationRecord
from robot_rl.spec import ArraySpec

VERSION = 3
"""Of this file; both sides must have the same."""
MAX_TEXT = 2**18
"""Longest text [characters]."""
_STRICT = ConfigDict(extra="forbid")


def _settings(value: object) -> object:
    """From a text: a mapping, which a strict dataclass does not take for itself."""
    return SimulationConfig(**value) if isinstance(value, dict) else value


@dataclass(frozen=True, config=_STRICT)
class TaskTurn:
    """A task of a practice.

    Attributes:
        spec: The fixed facts.
        observations: Specs of the task's own part of the observation.
        home: How the arm goes to its start pose after an episode; None: the next episode brings it there.
    """

    spec: TaskSpec
    observations: dict[str, ArraySpec]
    home: StartPose | None


@dataclass(frozen=True, config=_STRICT)
class TaskHead:
    """What there is to know of a task before it starts; latched.

    Attributes:
        spec: The fixed facts.
        observations: Specs of the task's own part of the observation.
        operator: Who can take over: `script`, `human` or `none`.
        lockstep: Whether time waits for the actor.
        image_size: Height and width of the frames [px].
        cameras: Cameras that are published.
        simulation: How a simulated arm moves, where that differs from the task's own; None on a real one.
        measures_wrench: Whether the arm measures forces; without, they are not observed. None: it has not said yet. A
            head without this entry is of a time when all were observed.
        turns: The tasks that take turns in one scene, without resets; that of `spec` is the first. Empty: it is alone.
    """

    spec: TaskSpec
    observations: dict[str, ArraySpec]
    operator: str
    lockstep: bool
    image_size: tuple[int, int]
    cameras: tuple[str, ...]
    simulation: Annotated[SimulationConfig | None, BeforeValidator(_settings)]
    measures_wrench: bool | None = True
    turns: tuple[TaskTurn, ...] = ()

    def of_turn(self, task: str) -> TaskHead:
        """Return the facts as they are while it is the turn of a task; unchanged, if it takes no turns here."""
        turn = next((turn for turn in self.turns if turn.spec.name == task), None)
        return self if turn is None else dataclasses.replace(self, spec=turn.spec, observations=turn.observations)

    @property
    def home(self) -> StartPose | None:
        """How the arm goes to its start pose after an episode; None: the next episode brings it there."""
        return next((turn.home for turn in self.turns if turn.spec.name == self.spec.name), None)


@dataclass(frozen=True, config=_STRICT)
class Estimates:
    """The task's own part of the observation, for the state of that stamp [ns]."""

    episode: int
    stamp: int
    values: dict[str, list[float]]


@dataclass(frozen=True, config=_STRICT)
class OutcomeMessage:
    """How things stand after a step; given once a step. `stamp` [ns] is that of the state that was judged."""

    episode: int
    stamp: int
    success: bool
    reward: float
    failure: str | None
    metrics: dict[str, float]


@dataclass(frozen=True, config=_STRICT)
class Judgement:
    """What a person says of an episode.

    Attributes:
        success: Whether it was one; None: no judgement, the running episode shall only end.
        episode: A recorded episode; None: the running one, which ends with it.
        reason: Why it shall end without a judgement.
    """

    success: bool | None
    episode: str | None = None
    reason: str = ""


@dataclass(frozen=True, config=_STRICT)
class EpisodeStarted:
    """The answer to `task/reset` and `task/go_on`.

    Attributes:
        episode: Its number.
        stamp: Measurements from then on belong to it [ns].
        task: Whose it is, of those that take turns; empty: there is one.
    """

    episode: int
    stamp: int
    task: str = ""


@dataclass(frozen=True, config=_STRICT)
class SceneReport:
    """The answer to `task/scene`, and what the parameter `scene` puts back.

    Attributes:
        scene: Positions of all joints of the simulated scene.
        obstacles: Why each task cannot begin in it; None if it can.
    """

    scene: list[float]
    obstacles: dict[str, str | None]


@dataclass(frozen=True, config=_STRICT)
class Advance:
    """Lockstep: time shall advance to `until` [ns], once the command or stop of stamp `after` [ns] has arrived.

    With `frames`, the cameras take a picture then.
    """

    until: int
    after: int
    frames: bool


@dataclass(frozen=True, config=_STRICT)
class Advanced:
    """Lockstep: time stands at `now` [ns]; the newest state was measured at `stamp` [ns]."""

    now: int
    stamp: int


@dataclass(frozen=True, config=_STRICT)
class CameraCalibration:
    """The calibration of a camera, and where it is; latched. None: that is not known."""

    record: CalibrationRecord | None
    mount: CameraMount | None


Content = (
    TaskHead
    | Estimates
    | OutcomeMessage
    | Judgement
    | EpisodeStarted
    | SceneReport
    | Advance
    | Advanced
    | CameraCalibration
)
Kind = TypeVar(
    "Kind",
    TaskHead,
    Estimates,
    OutcomeMessage,
    Judgement,
    EpisodeStarted,
    SceneReport,
    Advance,
    Advanced,
    CameraCalibration,
)


def to_text(content: Content) -> str:
    """Return the text of a message."""
    return json.dumps({"version": VERSION, **dataclasses.asdict(content)})


def to_message(content: Content) -> String:
    """Return the message."""
    return String(data=to_text(content))


def from_text(kind: type[Kind], text: str) -> Kind:
    """Return what `to_text` made this text of.

    Raises:
        LinkError: if it is too long, malformed, or of another version.
    """
    if len(text) > MAX_TEXT:
        raise LinkError(f"a {kind.__name__} of {len(text)} characters; allowed are {MAX_TEXT}")
    try:
        tree: Any = json.loads(text)
    except ValueError as error:
        raise LinkError(f"malformed {kind.__name__}: {error}") from error
    if not isinstance(tree, dict) or "version" not in tree:
        raise LinkError(f"malformed {kind.__name__}: it has no version")
    if (version := tree.pop("version")) != VERSION:
        raise LinkError(
            f"a {kind.__name__} of version {version}, this program reads {VERSION}; run the same robot_rl on both sides"
        )
    try:
        return TypeAdapter(kind).validate_python(tree)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:3])
        raise LinkError(f"malformed {kind.__name__}: {faults}") from error
