"""Scenes: the arm, a tool, a table, light and two cameras, with the physics options for contact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from robot_rl.geometry import Pose
from sim.arm.mount import add_arm
from sim.arm.shapes import DARK, GREEN, GREY, ORANGE, WHITE, visual

PHYSICS_PERIOD = 0.002
"""Physics step [s]: impedance control of this stiffness is stable at 500 Hz, not at 100 Hz."""
CAMERAS = ("front", "wrist")
DOWNWARD = np.array([0.0, 1.0, 0.0, 0.0])
"""Orientation of a tcp that points straight down, x forward."""
TABLE, WALL = (0.82, 0.80, 0.76, 1), (0.58, 0.66, 0.72, 1)
SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE
PEG_HALF_WIDTH, PEG_LENGTH = 0.012, 0.07
PEG_TOOL_LENGTH = 0.14
"""From the flange to the tip of the peg [m]."""
HAND_TCP = 0.1034
"""From the flange to between the finger tips [m], as published."""


def new_scene(look_at: tuple[float, float, float] = (0.5, 0.0, 0.09), distance: float = 1.0) -> mujoco.MjSpec:
    """Make a scene with physics options, light, table, backdrop and front camera.

    Args:
        look_at: Point in the centre of the front camera's picture, in the base frame [m].
        distance: Factor of the front camera's usual distance of 0.53 m from it.
    """
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    option = spec.option
    option.timestep = PHYSICS_PERIOD
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    option.impratio = 3
    # A diverged simulation must raise `DivergedError`, not restart silently.
    option.disableflags |= mujoco.mjtDisableBit.mjDSBL_AUTORESET
    spec.visual.quality.shadowsize = 0
    spec.visual.quality.offsamples = 0
    spec.visual.headlight.ambient = (0.42, 0.42, 0.42)
    spec.visual.headlight.diffuse = (0.38, 0.38, 0.38)
    spec.visual.headlight.specular = (0.1, 0.1, 0.1)
    spec.stat.extent = 1.0  # [m]; clipping planes are multiples of it
    spec.visual.map.znear = 0.005
    world = spec.worldbody
    # In software rendering, shadows cost 20 times as much as the rest, so no light casts one.
    world.add_light(pos=(0.8, -0.6, 1.2), dir=(-0.4, 0.6, -1.0), diffuse=(0.4, 0.4, 0.4), castshadow=False)
    visual(world, mujoco.mjtGeom.mjGEOM_BOX, TABLE, size=(0.8, 1.0, 0.01), pos=(0.3, 0, -0.01))
    # A wall behind the arm, because the background is black.
    visual(world, mujoco.mjtGeom.mjGEOM_BOX, WALL, size=(0.01, 3.0, 3.0), pos=(-0.6, 0, 0))
    front = world.add_camera(name="front", pos=np.add(look_at, np.multiply(distance, (0.42, -0.24, 0.21))), fovy=32)
    front.alt.type = mujoco.mjtOrientation.mjORIENTATION_XYAXES
    front.alt.xyaxes = _look_at(front.pos, look_at)
    return spec


def add_peg_tool(spec: mujoco.MjSpec, arm: str | None = None) -> None:
    """Add the arm with a rigidly held square peg; the tcp is the centre of the peg's tip, z along the peg.

    Args:
        spec: Scene.
        arm: File of another arm, see `add_arm`; here and below.
    """
    flange = add_arm(spec, arm)
    tool = flange.add_body(name="tool")
    visual(tool, mujoco.mjtGeom.mjGEOM_CYLINDER, GREY, fromto=(0, 0, 0, 0, 0, 0.075), size=(0.03, 0, 0))
    tool.add_geom(
        name="peg",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(PEG_HALF_WIDTH, PEG_HALF_WIDTH, PEG_LENGTH / 2),
        pos=(0, 0, PEG_TOOL_LENGTH - PEG_LENGTH / 2),
        mass=0.3,
        rgba=ORANGE,
        **CONTACT,
    )
    tool.add_site(name="tcp", pos=(0, 0, PEG_TOOL_LENGTH), size=(0.002, 0.002, 0.002), group=4)
    # From the side: in front of the peg, the peg would hide the hole.
    add_wrist_camera(tool, PEG_TOOL_LENGTH, (0.075, 0.045, 0.05), fovy=55)


HAND_MASS = 0.5
"""Of a hand that holds a part all the time [kg]."""


def add_hand(spec: mujoco.MjSpec, half: tuple[float, float], arm: str | None = None) -> mujoco.MjsBody:
    """Add the arm with a hand that holds a part all the time, and return the hand, to which part and fingers are added.

    Args:
        spec: Scene.
        half: Half its width along x and y [m].
        arm: File of another arm.
    """
    hand = add_arm(spec, arm).add_body(name="tool")
    hand.mass, hand.ipos, hand.inertia, hand.explicitinertial = HAND_MASS, (0, 0, 0.06), (8e-4, 6e-4, 4e-4), True
    visual(hand, mujoco.mjtGeom.mjGEOM_BOX, WHITE, size=(*half, 0.03), pos=(0, 0, 0.03))
    return hand


MARK_RADIUS = 0.003
"""Radius of the ball around the tcp of a pointer [m]."""


def add_pointer_tool(spec: mujoco.MjSpec) -> None:
    """Add the arm with a green ball around its tcp that is visible from all sides; its holder is not drawn.

    Mass, reach and wrist camera are those of the peg.
    """
    flange = add_arm(spec)
    tool = flange.add_body(name="tool")
    tool.mass, tool.ipos, tool.inertia, tool.explicitinertial = 0.3, (0, 0, 0.1), (2e-4, 2e-4, 5e-5), True
    visual(tool, mujoco.mjtGeom.mjGEOM_CYLINDER, GREY, fromto=(0, 0, 0, 0, 0, 0.03), size=(0.03, 0, 0))
    visual(tool, SPHERE, GREEN, size=(MARK_RADIUS, 0, 0), pos=(0, 0, PEG_TOOL_LENGTH))
    tool.add_site(name="tcp", pos=(0, 0, PEG_TOOL_LENGTH), size=(0.002, 0.002, 0.002), group=4)
    add_wrist_camera(tool, PEG_TOOL_LENGTH, (0.075, 0.045, 0.05), fovy=55)


CONTACT = {
    "friction": (0.3, 0.005, 0.0001),
    "condim": 4,
    "solref": (0.006, 1.0),
    "solimp": (0.95, 0.99, 0.0005, 0.5, 2.0),
}
"""Contact of machined plastic: friction 0.3, stiff enough that a peg pressed with 20 N sinks in less than 0.1 mm."""


def add_wrist_camera(
    tool: mujoco.MjsBody,
    tcp: float,
    eye: tuple[float, float, float],
    fovy: float,
    ahead: float = 0.005,
    up: tuple[float, float, float] = (1.0, 0.0, 0.0),
) -> None:
    """Add a camera on the tool, with the tcp a little below the centre of its picture.

    Args:
        tool: Body that carries it; all else is in its frame.
        tcp: Distance of the tcp along z [m].
        eye: Where the camera is [m].
        fovy: Vertical angle of view [degrees].
        ahead: Distance along x at which it looks [m].
        up: Direction that is upwards in the picture.
    """
    camera = tool.add_camera(name="wrist", pos=eye, fovy=fovy)
    camera.alt.type = mujoco.mjtOrientation.mjORIENTATION_XYAXES
    camera.alt.xyaxes = _look_at(eye, (ahead, 0.0, tcp), up=up)


def _look_at(
    eye: tuple[float, ...] | np.ndarray, target: tuple[float, ...], up: tuple[float, ...] = (0.0, 0.0, 1.0)
) -> tuple[float, ...]:
    """Return the x and y axes of a camera at `eye` that looks at `target`; a camera looks along its -z."""
    z = np.asarray(eye) - np.asarray(target)
    z /= np.linalg.norm(z)
    x = np.cross(np.asarray(up), z)
    x /= np.linalg.norm(x)
    return (*x, *np.cross(z, x))


@dataclass(frozen=True)
class BlockColours:
    """Colours of a block with a hole: of its sides, its top and the chamfer; red, green, blue, opacity."""

    sides: tuple[float, float, float, float] = (0.16, 0.24, 0.38, 1)
    top: tuple[float, float, float, float] = (0.36, 0.50, 0.72, 1)
    chamfer: tuple[float, float, float, float] = (0.85, 0.87, 0.9, 1)


def add_hole_block(
    spec: mujoco.MjSpec,
    *,
    half_widths: tuple[float, float],
    height: float,
    clearance: float,
    chamfer: float,
    part: tuple[float, float] = (PEG_HALF_WIDTH, PEG_HALF_WIDTH),
    colours: BlockColours | None = None,
    name: str = "block",
) -> mujoco.MjsBody:
    """Add a block with a rectangular, chamfered blind hole, as a mocap body whose frame is the hole's.

    The origin is the centre of the hole's mouth, z up.

    Args:
        spec: Scene.
        half_widths: Half the sides of the block along x and y [m].
        height: Height of the block [m]; the hole ends 5 mm above its bottom.
        clearance: Gap between part and wall on each side [m].
        chamfer: Size of the 45 degree chamfer at the mouth [m].
        part: Half the sides of what is inserted, along x and y [m].
        colours: Colours.
        name: Name of the body.
    """
    colours = colours or BlockColours()
    block = spec.worldbody.add_body(name=name, mocap=True)
    inner = [half + clearance for half in part]
    mouth = [half + chamfer for half in inner]
    floor = 0.005
    box = mujoco.mjtGeom.mjGEOM_BOX
    block.add_geom(type=box, size=(*mouth, floor / 2), pos=(0, 0, -height + floor / 2), rgba=DARK, **CONTACT)
    for quarter in range(4):
        axis = quarter % 2
        turn = quarter * np.pi / 2
        quat = np.array([np.cos(turn / 2), 0, 0, np.sin(turn / 2)])
        direction, side = np.array([np.cos(turn), np.sin(turn), 0]), np.array([-np.sin(turn), np.cos(turn), 0])

        def wall(
            near: list[float],
            far: list[float],
            top: float,
            bottom: float,
            rgba: tuple[float, ...],
            *,
            axis: int = axis,
            direction: np.ndarray = direction,
            side: np.ndarray = side,
            quat: np.ndarray = quat,
        ) -> None:
            """Add a wall from `near` to `far`; the four walls interlock like a pinwheel, and none overlaps the hole."""
            length, across = (far[axis] - near[axis]) / 2, (far[1 - axis] + near[1 - axis]) / 2
            shift = across - near[1 - axis]
            position = direction * (near[axis] + length) + side * shift + [0, 0, (top + bottom) / 2]
            size = (length, across, (top - bottom) / 2)
            block.add_geom(type=box, size=size, pos=position, quat=quat, rgba=rgba, **CONTACT)

        # The wall of the hole, up to the chamfer; then the slab around the mouth, up to the top.
        # The slab protrudes by half a millimetre, because two faces in one plane flicker.
        wall(inner, [half - 0.0005 for half in half_widths], -chamfer, -height, colours.sides)
        wall(mouth, list(half_widths), 0.0, -min(0.01, height / 2), colours.top)
        # The chamfer: a bar whose upper face is the slope between the two.
        slope, thickness = chamfer * np.sqrt(0.5), 0.002
        normal = -direction + [0, 0, 1]
        middle = direction * (inner[axis] + chamfer / 2) + [0, 0, -chamfer / 2] - normal * np.sqrt(0.5) * thickness
        tilt = np.array([np.cos(-np.pi / 8), 0, np.sin(-np.pi / 8), 0])
        bar = np.zeros(4)
        mujoco.mju_mulQuat(bar, quat, tilt)
        size = (slope, mouth[1 - axis], thickness)
        block.add_geom(type=box, size=size, pos=middle, quat=bar, rgba=colours.chamfer, **CONTACT)
    return block


FINGER_RANGE = 0.04
"""Travel of each finger [m]."""
GRIP = {"friction": (1.0, 0.02, 0.0005), "condim": 4, "solref": (0.01, 1.0), "solimp": (0.95, 0.99, 0.001, 0.5, 2.0)}
"""Contact of rubber pads: friction 1."""


def add_table(spec: mujoco.MjSpec) -> None:
    """Add a table to put things on, its surface at z = 0."""
    spec.worldbody.add_geom(
        name="table",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(0.3, 0.3, 0.01),
        pos=(0.5, 0, -0.01),
        rgba=(0, 0, 0, 0),
        **GRIP,
    )


def add_gripper_tool(spec: mujoco.MjSpec, stiffness: float = 800.0, arm: str | None = None) -> None:
    """Add the arm with a gripper of the Franka Hand's mass, reach and travel; the tcp is between the finger pads.

    Args:
        spec: Scene.
        stiffness: Of each finger [N/m]; closed on an object, it presses by this times half the object's width.
        arm: File of another arm.
    """
    flange = add_arm(spec, arm)
    hand = flange.add_body(name="hand")
    hand.mass, hand.ipos, hand.explicitinertial = 0.6544, (0.0, 0.0119, 0.0207), True
    hand.fullinertia = (0.00186, 0.0003, 0.00174, 0.0, 0.0, -0.00002)
    visual(hand, mujoco.mjtGeom.mjGEOM_BOX, WHITE, size=(0.025, 0.1, 0.03), pos=(0, 0, 0.03))
    hand.add_site(name="tcp", pos=(0, 0, HAND_TCP), size=(0.002, 0.002, 0.002), group=4)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        finger = hand.add_body(name=f"{side}_finger", pos=(0, 0, 0.0584))
        finger.mass, finger.ipos, finger.explicitinertial = 0.0291, (0, 0.0153 * sign, 0.022), True
        finger.inertia = (8.5e-06, 8.5e-06, 1.8e-06)
        drive_finger(spec, finger, (0, sign, 0), FINGER_RANGE, stiffness, 40.0 * (stiffness / 800.0) ** 0.5)
        length = HAND_TCP - 0.0584 + 0.008
        finger.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=(0.01, 0.006, length / 2),
            pos=(0, sign * 0.006, length / 2),
            rgba=DARK,
            **GRIP,
        )
    add_wrist_camera(hand, HAND_TCP, (0.08, 0.0, 0.045), fovy=68)


def drive_finger(
    spec: mujoco.MjSpec,
    finger: mujoco.MjsBody,
    opens: tuple[float, float, float],
    travel: float,
    stiffness: float,
    damping: float,
) -> None:
    """Add a slide to a finger, and its position motor, both of the finger's name.

    Args:
        spec: Scene of the hand.
        finger: Its body.
        opens: Direction in which it opens, unit vector in the finger's frame.
        travel: From closed [m].
        stiffness: Of the motor, which pushes with 30 N at most [N/m].
        damping: Of the motor [Ns/m].
    """
    joint = finger.add_joint(name=finger.name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=opens)
    joint.range, joint.limited, joint.armature, joint.damping = (0, travel), True, 0.1, (10.0, 0, 0)
    motor = spec.add_actuator(name=finger.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    motor.set_to_position(kp=stiffness, kv=damping)
    motor.forcerange, motor.forcelimited = (-30.0, 30.0), True
    motor.ctrlrange, motor.ctrllimited = (0.0, travel), True


def add_arms(
    spec: mujoco.MjSpec,
    places: Mapping[str, Pose],
    add_tool: Callable[..., object],
    file: str | None = None,
) -> None:
    """Add several arms, before anything that moves; the names of their parts begin with the arm's.

    Args:
        spec: Scene.
        places: Where the base of each arm stands, by its name.
        add_tool: Adds an arm with its tool to a scene of its own, e.g. `add_gripper_tool`.
        file: Of another kind of arm.
    """
    for name, place in places.items():
        arm = mujoco.MjSpec()
        arm.compiler.degree = False
        add_tool(arm, arm=file)
        frame = spec.worldbody.add_frame(pos=place.position, quat=place.quaternion)
        spec.attach(arm, prefix=f"{name}_", frame=frame)
