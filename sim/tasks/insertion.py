"""What tasks share that insert a part into a hole whose pose is only roughly known.

The hole's pose is drawn for each episode. The policy receives an estimate of it with an error that is drawn once per
episode. Success is judged in the hole's frame and has to be held. What the part and the hole look like, and what else
belongs to success, is the task's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from robot_rl.config.randomization import DynamicsConfig, WorldConfig
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec
from robot_rl.geometry import Pose, quat_multiply, swing_twist_z, yaw_pose
from robot_rl.spec import ArraySpec
from sim.mujoco_robot_io import MujocoRobotIO
from sim.scene import DOWNWARD
from sim.sensing import Sensing
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp, tilted


@dataclass(frozen=True, kw_only=True)
class InsertionParameters:
    """Dimensions that determine the difficulty of an insertion [m, rad]."""

    clearance: float
    chamfer: float
    block_height: float
    start_height: float
    """Of the part's tip over the mouth."""
    hole_range: float = 0.02
    hole_yaw_range: float = float(np.deg2rad(10.0))
    estimate_error: float
    """Largest lateral error of the estimate; uniform over the disc."""
    estimate_error_z: float = 0.0005
    estimate_error_yaw: float
    success_depth: float
    success_yaw: float = float(np.deg2rad(4.0))
    success_tilt: float = float(np.deg2rad(4.0))
    success_steps: int = 2
    tilt: float = 0.0
    """Of the hole's axis, in a direction that is drawn for each episode and not part of the estimate."""
    tilt_range: float = 0.0
    """Largest further tilt, drawn for each episode."""
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    """Least widths of the draws of friction and stiffness; `randomization.dynamics` may widen them."""
    sensing: Sensing = field(default_factory=Sensing)
    """Delay, noise, bias and drift of the sensors."""

    @property
    def success_lateral(self) -> float:
        """Largest distance of the tip from the hole's axis: the clearance and half a millimetre."""
        return self.clearance + 0.0005

    def in_world(self, world: WorldConfig) -> Self:
        """Return those of another world: its clearance, tilt and error of the estimate."""
        return replace(
            self,
            clearance=self.clearance * world.clearance,
            tilt=self.tilt + world.tilt,
            estimate_error=self.estimate_error * world.estimate_error,
            estimate_error_z=self.estimate_error_z * world.estimate_error,
            estimate_error_yaw=self.estimate_error_yaw * world.estimate_error,
        )


class Insertion:
    """Scene, reset, estimate and success condition.

    Args:
        io: The simulated arm with the part at its tcp; the origin of the first mocap body is the mouth of the hole.
        q_start: Joint positions of the start [rad], those of moving parts of the scene behind those of the arm.
        spec: Facts of the task.
        parameters: Dimensions.
    """

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, spec: TaskSpec, parameters: InsertionParameters) -> None:
        self._io, self.q_start, self.spec, self.parameters = io, q_start, spec, parameters
        self._x, self._y = 0.5, 0.0
        self.T_base_hole = Pose.identity()
        self.T_base_estimate = Pose.identity()
        self._held = 0

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the estimate of the hole in the tcp frame."""
        return {"state/hole_estimate": ArraySpec((4,), unit="m, rad", scale=(0.005, 0.005, 0.01, 0.05))}

    def reset(self, seed: int) -> None:
        """Draw the hole's pose and the error of its estimate; the arm always starts at the same pose."""
        p, rng = self.parameters, np.random.default_rng([seed, 1])
        x, y = np.array((self._x, self._y)) + rng.uniform(-p.hole_range, p.hole_range, 2)
        yaw = rng.uniform(-p.hole_yaw_range, p.hole_yaw_range)
        self.T_base_hole = tilted(yaw_pose(x, y, p.block_height, yaw), p.tilt, p.tilt_range, seed)
        dx, dy = drawn_offset(rng, p.estimate_error)
        self.T_base_estimate = yaw_pose(
            x + dx,
            y + dy,
            p.block_height + rng.uniform(-p.estimate_error_z, p.estimate_error_z),
            yaw + rng.uniform(-p.estimate_error_yaw, p.estimate_error_yaw),
        )
        self._io.data.mocap_pos[0] = self.T_base_hole.position
        self._io.data.mocap_quat[0] = self.T_base_hole.quaternion
        self._io.reset(self.placed(rng), seed)
        self._held = 0

    def placed(self, rng: np.random.Generator) -> np.ndarray:
        """Place what else is in the scene, and return all joint positions of the start."""
        del rng  # nothing else is
        return self.q_start

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the estimate of the hole: its mouth in the tcp frame [m], and the rotation of the part to it [rad]."""
        del T_base_reset  # the estimate is relative to the tcp itself
        return {"state/hole_estimate": seen_from_tcp(state, self.T_base_estimate)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: inserted for consecutive steps."""
        del state  # the true scene decides, not the sensors
        depth, lateral, yaw, tilt = self.insertion()
        self._held = self._held + 1 if self.is_inserted(depth, lateral, yaw, tilt) else 0
        success = self._held >= self.parameters.success_steps
        return Outcome(success, success_reward(success), metrics={"depth": depth, "lateral_error": lateral})

    def is_inserted(self, depth: float, lateral: float, yaw: float, tilt: float) -> bool:
        """Return whether depth, lateral error [m], yaw and tilt [rad] are inside their limits."""
        p = self.parameters
        aligned = abs(yaw) <= p.success_yaw and tilt <= p.success_tilt
        return depth >= p.success_depth and lateral <= p.success_lateral and aligned

    def insertion(self) -> tuple[float, float, float, float]:
        """Return the true tip in the hole's frame: depth [m], lateral error [m], yaw [rad] and tilt [rad]."""
        T_hole_tip = self.T_base_hole.inverse() @ self.tip()
        x, y, z = T_hole_tip.position.tolist()
        yaw, tilt = swing_twist_z(quat_multiply(T_hole_tip.quaternion, DOWNWARD))
        return -z, math.hypot(x, y), yaw, tilt

    def tip(self) -> Pose:
        """Return the true pose of the part's tip in the base frame, z along the part: that of the tcp."""
        return self._io.controller.pose()
