"""Task `handover`: two arms face each other; the left one picks a bar up and hands it to the right one.

The bar lies on the left arm's side, within 2.5 cm of its place along each axis, turned by up to 15 degrees. The left
arm takes it by one end, the right one by the other, and brings it to a place on its side, in the air. The policy
receives an estimate of the bar's pose at reset, with an error of up to 4 mm, where the place is, and where the right
tool is from the left one.

Success: the middle of the bar is within 2.5 cm of the place, both fingers of the right hand hold it and the left hand
does not touch it, for three steps. A bar that was lifted and is in nobody's fingers ends the episode as a failure.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_rl.data.sparse_reward import stage_metrics, success_reward
from robot_rl.env.cell_geometry.capsule import Capsule, KeepOutLimits
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import ArmSpec, Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm.shapes import GREEN, ORANGE, visual
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.scene import (
    FINGER_RANGE,
    GRIP,
    HAND_TCP,
    SPHERE,
    add_arms,
    add_gripper_tool,
    add_table,
    new_scene,
)
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.cube import BOX
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp
from sim.tasks.two_arms.facing_arms import BASES, LEFT, RIGHT, standing, start_angles
from sim.tasks.two_arms.handover_operator import HandoverOperator

STARTS = {LEFT: np.array([0.5, 0.18, 0.09]), RIGHT: np.array([0.5, -0.16, 0.15])}
"""Positions of the tcps at the start, in the frame of the scene [m]."""
BAR = np.array([0.015, 0.11, 0.015])
"""Half the sides of the bar [m]; its long axis is y."""
BAR_START = np.array([0.5, 0.10])
BAR_RANGE, BAR_YAW_RANGE = 0.025, float(np.deg2rad(15.0))
ESTIMATE_ERROR, ESTIMATE_ERROR_YAW = 0.004, float(np.deg2rad(3.0))
PLACE = np.array([0.5, -0.11, 0.10])
"""Where the middle of the bar is wanted [m]."""
TOLERANCE = 0.025
LIFTED = 0.02
"""Height above the table from which on the bar must not be let go [m]."""
HOLD_STEPS = 3
WIDE = 0.04
"""Up to here `state/grip` tells how far fingers are apart; about the bar that is 3 cm, and 0 on nothing [m]."""

TOOL = (
    Capsule((0.0, -0.05, -0.012), (0.0, 0.05, -0.012), 0.015),
    Capsule((0.0, -0.09, 0.03 - HAND_TCP), (0.0, 0.09, 0.03 - HAND_TCP), 0.041),
    Capsule((0.0, 0.0, -0.225), (0.0, 0.0, -0.11), 0.05),
    Capsule((-0.088, 0.0, -0.21), (0.0, 0.0, -0.21), 0.06),
)
"""The arm near its tool, in the tcp frame: fingers, hand, flange and wrist."""


def _arm(low: float, high: float) -> ArmSpec:
    """Return what an arm does; its tcp stays `low` to `high` above where it starts [m]."""
    return ArmSpec(
        workspace=Workspace(low=(-0.06, -0.07, low), high=(0.16, 0.07, high), yaw=0.7, tilt=0.2),
        action_axes=("x", "y", "z", "yaw"),
        action_translation=0.02,
        gripper=True,
        gripper_open_width=2 * FINGER_RANGE,
        capsules=TOOL,
    )


SPEC = TaskSpec.of_arms(
    {LEFT: standing(LEFT, _arm(-0.08, 0.06)), RIGHT: standing(RIGHT, _arm(-0.14, 0.03))},
    name="handover",
    instruction="hand the orange bar from the left arm to the right arm, which brings it to the green mark",
    max_steps=200,
    control_period=0.1,
    cameras=("front", "left_wrist", "right_wrist"),
    world=("friction", "estimate_error", "arm", *ARM_WORLD),
    stages=("lifted", "taken"),
    keep_out=KeepOutLimits(distance=0.02, tool_distance=(0.06, 0.7)),
)


class HandoverTask:
    """The bar, its way from hand to hand, and its place.

    Args:
        io: The two simulated arms; the bar's free joint comes last.
        q_start: Joint angles of each arm at the start [rad].
        estimate_error: Factor of the largest error of the estimate.
    """

    spec, place = SPEC, PLACE

    def __init__(self, io: MujocoRobotIO, q_start: Mapping[str, np.ndarray], estimate_error: float = 1.0) -> None:
        self._io, self._q_start, self._error = io, dict(q_start), estimate_error
        model = io.model
        self._bar, self._bar_geom = model.body("bar").id, model.geom("bar").id
        finger_of: dict[int, tuple[str, str]] = {}
        for name in q_start:
            for side in ("left", "right"):
                body = model.body(f"{name}_{side}_finger")
                finger_of |= {geom: (name, side) for geom in range(body.geomadr[0], body.geomadr[0] + body.geomnum[0])}
        self._finger_of = finger_of  # arm and side of the geoms of the fingers
        self.T_cell_estimate = Pose.identity()
        self._held, self._lifted = 0, False

    # Task.

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the specs of the bar's estimated pose at reset, the place, the tools from each other, and the grip."""
        near = ArraySpec((3,), unit="m", scale=(0.05, 0.05, 0.05))
        return {
            "state/bar_estimate": ArraySpec((4,), unit="m, rad", scale=(0.05, 0.05, 0.05, 0.2)),
            "state/place": near,
            "state/between_tools": near,
            "state/grip": ArraySpec((2,), unit="m", scale=WIDE / 4),
        }

    def reset(self, seed: int) -> None:
        """Draw the bar's pose and the error of its estimate; the arms start at the same poses, fingers open."""
        rng = np.random.default_rng([seed, 1])
        x, y = BAR_START + rng.uniform(-BAR_RANGE, BAR_RANGE, 2)
        yaw = rng.uniform(-BAR_YAW_RANGE, BAR_YAW_RANGE)
        dx, dy = drawn_offset(rng, self._error * ESTIMATE_ERROR)
        yaw_error = self._error * rng.uniform(-ESTIMATE_ERROR_YAW, ESTIMATE_ERROR_YAW)
        self.T_cell_estimate = yaw_pose(x + dx, y + dy, BAR[2], yaw + yaw_error)
        bar = yaw_pose(x, y, BAR[2], yaw)
        arms = [np.append(q, [FINGER_RANGE, FINGER_RANGE]) for q in self._q_start.values()]
        self._io.reset(np.concatenate((*arms, bar.position, bar.quaternion)), seed)
        self._held, self._lifted = 0, False

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the bar's estimated pose in the left tcp frame, and in the same frame the right tcp; the place in its.

        And the grip: how far the left and the right fingers are apart, up to `WIDE`. All are made of the measured state
        and of what is known at reset.
        """
        del T_base_reset  # they are relative to the tcps
        left, right = (BASES[name] @ state.arms[name].T_base_tcp for name in (LEFT, RIGHT))
        seen = seen_from_tcp(state.arms[LEFT], BASES[LEFT].inverse() @ self.T_cell_estimate)
        between = quat_rotate(quat_conjugate(left.quaternion), right.position - left.position)
        place = quat_rotate(quat_conjugate(right.quaternion), PLACE - right.position)
        grip = np.array([min(state.arms[name].gripper_width, WIDE) for name in (LEFT, RIGHT)])
        return {"state/bar_estimate": seen, "state/place": place, "state/between_tools": between, "state/grip": grip}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: at its place, in the right hand alone, for three consecutive steps."""
        del state
        bar, touching = self.bar_pose(), self.touching()
        away = float(np.linalg.norm(bar.position - PLACE))
        up = bool(bar.position[2] - BAR[2] >= LIFTED)
        self._lifted = self._lifted or up
        failure = "the bar fell" if self._lifted and not touching else None
        alone = self.holds(RIGHT) and not any(arm == LEFT for arm, _ in touching)
        self._held = self._held + 1 if alone and away <= TOLERANCE else 0
        success = self._held >= HOLD_STEPS
        metrics = {"distance": away, **stage_metrics(lifted=up or alone, taken=alone)}
        return Outcome(success, success_reward(success), None if success else failure, metrics=metrics)

    # The true scene.

    def bar_pose(self) -> Pose:
        """Return the pose of the bar, in the frame of the scene."""
        data = self._io.data
        return Pose(data.xpos[self._bar].copy(), data.xquat[self._bar].copy())

    def touching(self) -> set[tuple[str, str]]:
        """Return the fingers that touch the bar, by arm and side."""
        data, bar, found = self._io.data, self._bar_geom, set()
        for pair in data.contact.geom[: data.ncon].tolist():
            if bar in pair:
                finger = self._finger_of.get(pair[0] if pair[1] == bar else pair[1])
                if finger is not None:
                    found.add(finger)
        return found

    def holds(self, arm: str) -> bool:
        """Return whether both fingers of an arm touch the bar."""
        return {(arm, "left"), (arm, "right")} <= self.touching()


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `handover`."""
    spec = new_scene(look_at=(0.5, 0.0, 0.10), distance=1.9)
    add_arms(spec, BASES, add_gripper_tool, options.world.arm)
    add_table(spec)
    visual(spec.worldbody, SPHERE, (*GREEN[:3], 0.35), size=(0.5 * TOLERANCE, 0, 0), pos=PLACE)
    bar = spec.worldbody.add_body(name="bar", pos=(*BAR_START, BAR[2]))
    bar.add_freejoint(name="bar")
    bar.add_geom(name="bar", type=BOX, size=BAR, mass=0.1, rgba=ORANGE, **GRIP)
    gains = ImpedanceGains(translation=1500.0, max_translation_error=SPEC.action_translation)
    io = MujocoRobotIO(
        spec.compile(),
        gains=gains,
        simulation=options.simulation,
        finger_open_width=2 * FINGER_RANGE,
        arms=tuple(BASES),
    )
    task = HandoverTask(io, start_angles(STARTS, add_gripper_tool, options.world.arm), options.world.estimate_error)
    return simulated_workcell(io, task, HandoverOperator(task, BASES, STARTS), options)
