"""What all robots of a fleet must have alike: what they see and how they act."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from robot_rl import __version__
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import LinkError
from robot_rl.link.messages import RobotHello

_TASK, _PERCEPTS = TypeAdapter(EnvironmentSpec), TypeAdapter(PerceptSpec)
_ALIKE = (
    ("name", "the task"),
    ("arms", "the arms"),
    ("action_size", "the number of action axes"),
    ("choices", "the choices of the gripper"),
    ("actions", "what an action moves"),
    ("max_steps", "the step limit"),
    ("control_period", "the control period [s]"),
    ("return_range", "the range of returns"),
)


class Seen(NamedTuple):
    """What a robot acts in and sees, and so what a learner is made for.

    Attributes:
        task: Facts of its environment.
        percepts: Format of its percepts.
    """

    task: EnvironmentSpec
    percepts: PerceptSpec

    @classmethod
    def of(cls, task: Mapping[str, Any], percepts: Mapping[str, Any], whose: str) -> Seen:
        """Return it from plain values.

        Raises:
            LinkError: if they are malformed.
        """
        try:
            return cls(_TASK.validate_python(task), _PERCEPTS.validate_python(percepts))
        except ValidationError as error:
            raise LinkError(f"{whose}: what it observes is not understood: {error}") from error

    def check(self, robot: str, other: Seen) -> None:
        """Refuse a robot whose actions or observations differ from these.

        Raises:
            LinkError: naming the robot, and each difference.
        """
        task, faults = other.task, []
        for attribute, what in _ALIKE:
            theirs, ours = getattr(task, attribute), getattr(self.task, attribute)
            if theirs != ours:
                faults.append(f"{what}: {theirs}, the fleet has {ours}")
        mine, seen = self.percepts, other.percepts
        if mine.images != seen.images:
            faults.append(f"the cameras or their encoder: {_images(seen)}, the fleet has {_images(mine)}")
        if mine.state_size != seen.state_size:
            faults.append(f"the size of the state: {seen.state_size}, the fleet has {mine.state_size}")
        elif (mine.unscaled, mine.tools, mine.proposal) != (seen.unscaled, seen.tools, seen.proposal):
            faults.append("the order of the state")
        if mine.potential != seen.potential:
            faults.append(f"the largest potential: {seen.potential:g}, the fleet has {mine.potential:g}")
        if faults:
            raise LinkError(f"{robot} is not like the robots of this fleet: {'; '.join(faults)}")


def check_version(hello: RobotHello) -> None:
    """Refuse a robot that runs another version of this program.

    Raises:
        LinkError: naming both.
    """
    if hello.version != __version__:
        raise LinkError(
            f"{hello.robot} runs robot_rl {hello.version}, the learner {__version__}; install the same on both"
        )


def check_base_alike(hello: RobotHello, base: Mapping[str, str] | None) -> None:
    """Refuse a robot that corrects another base than the fleet: a correction of one base is none of another.

    Raises:
        LinkError: naming both.
    """
    mine = "" if base is None else base["identity"]
    if hello.base != mine:
        raise LinkError(
            f"{hello.robot} corrects the base {hello.base or 'none'}, the fleet {mine or 'none'}; copy the file of "
            "base.path from the learner's machine"
        )


def _images(percepts: PerceptSpec) -> str:
    return "no images" if percepts.images is None else percepts.images.maker
