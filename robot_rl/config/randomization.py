"""Settings of how a simulated scene differs from the task's own: by draws for each episode, and by a fixed amount.

All draws follow from the seed of the episode. A width of 0 draws nothing. A real robot has none of it.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import STRICT, AbsolutePath, NonNegativeReal, PositiveReal, Resumable

Share = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True, config=STRICT)
class LooksConfig:
    """Looks of a scene: half-widths of uniform draws about the scene's own values. They need a camera."""

    camera_position: NonNegativeReal = 0.002
    """Of each camera, along each axis of its parent [m]."""
    camera_rotation: NonNegativeReal = math.radians(0.5)
    """Of each camera, about each of its axes [rad]."""
    brightness: Share = 0.25
    """Of each light, as a share."""
    light_position: NonNegativeReal = 0.3
    """Of the lamp, along each axis [m]."""
    colour: Share = 0.08
    """Of each component of each colour, as a share; what had one colour still has one."""


@dataclass(frozen=True, config=STRICT)
class DynamicsConfig:
    """Physics: half-widths of uniform draws about the model's own values. By default nothing is drawn."""

    joint_friction: NonNegativeReal = 0.0
    """Largest extra dry friction of each joint of the arm [Nm]; drawn between 0 and this, as the model has none."""
    joint_damping: Share = 0.0
    """Of the viscous friction of each joint of the arm, as a share."""
    contact_friction: Share = 0.0
    """Of the sliding friction of all surfaces together, as a share."""
    mass: Share = 0.0
    """Of the mass and inertia of each body that is no link of the arm (tool, objects), as a share."""
    stiffness: Share = 0.0
    """Of the Cartesian controller's two stiffnesses, as a share."""
    delay: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Largest extra delay from a command to its first effect [s]; drawn between 0 and this."""

    def widened(self, other: DynamicsConfig) -> DynamicsConfig:
        """Return the draws that have, for each setting, the larger width of the two."""
        return DynamicsConfig(**{name: max(width, getattr(other, name)) for name, width in asdict(self).items()})


@dataclass(frozen=True, config=STRICT)
class RandomizationConfig:
    """Draws of each simulated episode."""

    looks: LooksConfig = Field(default_factory=LooksConfig)
    dynamics: DynamicsConfig = Field(default_factory=DynamicsConfig)


@dataclass(frozen=True, config=STRICT)
class WorldConfig:
    """Another world than the task's own, e.g. to find out where a policy fails. The defaults change nothing.

    A task refuses what its scene does not have. Directions are drawn for each episode, uniformly, from its seed.
    """

    clearance: PositiveReal = 1.0
    """Factor of the gap between two parts that fit."""
    friction: PositiveReal = 1.0
    """Factor of the sliding friction of all surfaces."""
    tilt: Annotated[float, Field(ge=0, lt=math.pi / 4)] = 0.0
    """Of the part that receives the other, about a horizontal axis of drawn direction, unknown to the policy [rad]."""
    estimate_error: NonNegativeReal = 1.0
    """Factor of the largest error of the estimated pose."""
    wrench_bias: NonNegativeReal = 0.0
    """Constant error of the measured force, in a drawn direction [N]."""
    command_delay: Annotated[float, Field(ge=0, le=1)] = 0.0
    """From a command to its first effect, besides `simulation.command_delay` [s]."""
    brightness: NonNegativeReal = 1.0
    """Factor of all lights."""
    camera_position: NonNegativeReal = 0.0
    """How far each camera is displaced, in a drawn direction [m]."""
    camera_rotation: Annotated[float, Field(ge=0, lt=math.pi)] = 0.0
    """How far each camera is turned, about a drawn axis [rad]."""
    arm: Annotated[
        AbsolutePath | None,
        Resumable("to another file of the same content", lambda old, new: bool(old.arm and new.arm)),
    ] = None
    """Another arm in place of the Franka Research 3: a file, MJCF, URDF or YAML (docs/tasks.md, "Another arm")."""
    card: Annotated[str | None, Field(max_length=60, pattern="^[ -~]*$")] = None
    """What cards in view of the cameras say, e.g. SUCCESS; without contact. Empty: blank cards. null: no cards."""
