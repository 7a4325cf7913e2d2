"""Task `pan_flip_wrench`: the toss of `pan_flip` by a feed-forward wrench, as HIL-SERL commands it (Luo et al. 2024).

Scene, estimate and success are those of `pan_flip`. There an action leads the arm by up to 12 cm, and the lead times
the stiffness is the force. Here it leads by 3 cm, and beside that the policy commands a force along x and z and a
torque about the pitch, which the impedance controller adds to its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_rl.env.action_mapping import AXES
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.geometry import Pose
from sim.tasks.pan_flip import GAINS, SPEC, PanFlipOperator, pan_workcell

WRENCH_SPEC = replace(
    SPEC,
    name="pan_flip_wrench",
    instruction="toss the egg with a feed-forward force so that it turns over and lands with its white side up",
    action_translation=0.03,
    action_rotation=0.1,
    wrench_axes=("x", "z", "pitch"),
    action_force=160.0,
    action_torque=30.0,
)
STIFFNESS = np.repeat([GAINS.translation, GAINS.rotation], 3)


class PanFlipWrenchOperator(PanFlipOperator):
    """The operator of `pan_flip`: what a step is too short for, it pushes with in toss and catch.

    The rest of the way, times the stiffness, is the wrench.
    """

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan as in `pan_flip`, and keep the goal."""
        planned = super().plan(state)
        self._goal = planned[0]
        return planned

    def push(self, state: RobotState) -> np.ndarray:
        """Return the wrench entries of the action."""
        spec, pushed = self._spec, [AXES.index(axis) for axis in self._spec.wrench_axes]
        if not self._step:  # it only leans the pan, or looks
            return np.zeros(len(pushed))
        way = (state.T_base_tcp.inverse() @ self._goal).vector()
        rest = way - np.clip(way, -self._scale, self._scale)
        largest = np.repeat([spec.action_force, spec.action_torque], 3)
        return np.clip((STIFFNESS * rest / largest)[pushed], -1.0, 1.0)


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `pan_flip_wrench`."""
    return pan_workcell(options, WRENCH_SPEC, PanFlipWrenchOperator)
