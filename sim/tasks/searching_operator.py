"""Scripted operator that inserts a square peg by touch: it is told what the policy is told, and not where the hole is.

It knows the estimate of the hole, the measured pose and the wrench. It leans the peg over one corner and lowers that
corner where it lies inside the hole whatever the error of the estimate is. Pushed towards the corner of the hole, the
peg slides into it, the moment about its axis turns it into line with the walls, and it drops; then it is brought
upright and lowered, and follows what it feels. Leaning the peg widens what a search has to hit from the clearance to
centimetres (the tilt strategy of Park et al. 2017, Compliance-based robotic peg-in-hole assembly).

What comes next follows from pose and wrench rather than from memory, so that a policy can imitate it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from robot_rl.config.operator_profile import Told
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, swing_twist_z
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import DOWNWARD, PEG_HALF_WIDTH

Phase = Literal["approach", "lower", "slide", "upright", "insert", "lift"]

UP = np.array([0.0, 0.0, 1.0])
CORNER = np.array([1.0, 1.0, 0.0])
"""The corner over which the peg leans, in half widths along the peg's own axes."""
TOWARDS_CORNER = CORNER / np.linalg.norm(CORNER)
TOUCHING = OperatorSkill(position_error=0.0, yaw_error=0.0, action_noise=0.04)
"""It looks at nothing, so that it has no error of perception; the hand that feels is steadier."""


class Felt(NamedTuple):
    """A state as the operator feels it, in the frame of the peg with z up.

    Attributes:
        rotation: Quaternion from this frame to the base frame.
        offset: From the estimated mouth to the tip of the peg [m], shape (3,).
        depth: Of the tip below the estimated mouth [m].
        yaw: From the peg to the estimated hole [rad].
        level: Rotation vector that would bring the peg upright [rad], shape (3,).
        force: On the peg [N], shape (3,).
        moment: On the peg about its tip [Nm], shape (3,).
    """

    rotation: np.ndarray
    offset: np.ndarray
    depth: float
    yaw: float
    level: np.ndarray
    force: np.ndarray
    moment: np.ndarray


class SearchingOperator(ScriptedOperator):
    """Operator that finds the hole by touch, from an estimate of its pose.

    Args:
        spec: The task; all six axes.
        estimate: Function that returns the estimated pose of the hole's mouth in the base frame, z up.
        depth: Depth of an inserted peg [m].
        skill: Accuracy of motion.
        habit: Conditions of interventions.
    """

    told: Told = "estimate"
    lean = 0.095
    """Angle of the peg while it searches [rad]."""
    back = 0.004
    """How far the corner is lowered inside the estimated corner of the hole, along both walls [m]."""
    hover = 0.004
    """Height of the corner over the mouth before lowering [m]."""
    contact = 4.0
    """Force by which it knows that it touches the board [N]."""
    walls = 2.0, 6.6
    """Least push of either wall, and of both together, by which it knows that it is in the corner of the hole [N]."""
    dropped = 0.002
    """Depth that the peg only has in the hole [m]."""
    astray = 0.0035
    """Distance beyond the estimate, towards the corner, from which on it has missed the hole [m]."""
    almost_upright = 0.03
    """Lean from which on the moments alone align the peg, since the board leans too [rad]."""
    patience = 12
    """Steps without progress in depth before it begins again."""
    turn_gain = 0.12, 0.03
    """Turn in one step per moment, about the peg's axis and about the others [rad/Nm]."""
    turn_limit = 0.01, 0.006
    """Largest of these turns [rad]: more would jam the peg, which is as stiff as the controller."""
    give = 0.0002
    """Motion in one step per force across the peg, while it is lowered into the hole [m/N]."""
    again = 0.001
    """Standard deviation of the place where it begins again [m]."""

    def __init__(
        self,
        spec: TaskSpec,
        estimate: Callable[[], Pose],
        depth: float,
        *,
        skill: OperatorSkill | None = None,
        habit: InterventionHabit | None = None,
    ) -> None:
        super().__init__(spec, skill or TOUCHING, habit)
        self._estimate, self._depth = estimate, depth

    def begin(self) -> None:
        """Discard the state of the search."""
        self._phase: Phase | None = None
        self._steps = 0
        self._deepest, self._sticking = -np.inf, 0
        self._shift = np.zeros(2)

    def distance(self, state: RobotState) -> float:
        """Return the distance from the tip to where the estimate says that the insertion ends [m]."""
        offset = state.T_base_tcp.position - self._estimate().position
        return float(np.linalg.norm(offset + self._depth * UP))

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan the next motion and turn from what is felt."""
        felt = self._feel(state)
        if self._phase is None:  # takes over from a policy that may have got anywhere
            self._phase = "insert" if felt.depth > self.dropped else "approach" if felt.depth < -0.003 else "lift"
        self._steps += 1
        motion, turn = getattr(self, f"_{self._phase}")(felt)
        rotation = quat_multiply(felt.rotation, quat_from_rotvec(turn))
        position = state.T_base_tcp.position + quat_rotate(felt.rotation, motion)
        return Pose(position, quat_multiply(rotation, DOWNWARD)), 1.0, 0.0

    def _feel(self, state: RobotState) -> Felt:
        here, told = state.T_base_tcp, self.perceived(self._estimate())
        rotation = quat_multiply(here.quaternion, quat_conjugate(DOWNWARD))
        offset = here.position - told.position
        wrench = np.zeros(6) if state.wrench is None else state.wrench
        return Felt(
            rotation=rotation,
            offset=quat_rotate(quat_conjugate(rotation), offset),
            depth=float(-offset[2]),
            yaw=swing_twist_z(told.quaternion)[0] - swing_twist_z(rotation)[0],
            level=np.cross(UP, quat_rotate(quat_conjugate(rotation), UP)),
            force=quat_rotate(DOWNWARD, wrench[:3]),
            moment=quat_rotate(DOWNWARD, wrench[3:]),
        )

    # The phases: each returns the motion [m] and the turn [rad] of this step in the frame of the peg, shape (3,) each.

    def _approach(self, felt: Felt) -> tuple[np.ndarray, np.ndarray]:
        """Lean the peg, its lowest corner over the inside of the hole."""
        corner_below = self.lean * PEG_HALF_WIDTH * np.sqrt(2.0)
        motion = self._to_start(felt) + (corner_below + self.hover) * self._vertical(felt)
        turn = self._leaning(felt) + felt.yaw * UP
        if np.linalg.norm(motion) < 0.0015 and np.linalg.norm(turn) < 0.02:
            self._go("lower")
        return motion, turn

    def _lower(self, felt: Felt) -> tuple[np.ndarray, np.ndarray]:
        """Lower the corner until it touches."""
        motion = self._to_start(felt)
        motion[2] = -0.003
        if felt.force[2] > self.contact and self._steps > 2:
            self._go("slide")
        return motion, self._leaning(felt) + felt.yaw * UP

    def _slide(self, felt: Felt) -> tuple[np.ndarray, np.ndarray]:
        """Push towards the corner of the hole, and turn as the walls do."""
        walls = -felt.force[:2] * CORNER[:2]
        if felt.depth > self.dropped:
            self._go("insert")
        elif walls.min() > self.walls[0] and walls.sum() > self.walls[1]:
            self._go("upright")
        elif self._missed(felt, 25):
            self._begin_again()
        turn = self._leaning(felt)
        turn[2] = self._following(felt)[2]
        return 0.003 * CORNER - 0.004 * UP, turn

    def _upright(self, felt: Felt) -> tuple[np.ndarray, np.ndarray]:
        """Bring the peg upright between the walls, as far as they have turned it into line."""
        if felt.depth > self.dropped:
            self._go("insert")
        elif self._missed(felt, 30):
            self._begin_again()
        turn = _at_most(felt.level, 0.02) * max(0.0, 1.0 - abs(felt.moment[2]) / 0.08)
        return 0.0022 * CORNER - 0.005 * UP, turn + self._following(felt)

    def _insert(self, felt: Felt) -> tuple[np.ndarray, np.ndarray]:
        """Bring the peg upright in the hole, then lower it, and give way to what it feels."""
        leaning = float(np.linalg.norm(felt.level))
        turn = self._following(felt)
        motion = self.give * felt.force
        motion[2] = -0.006
        if leaning > self.almost_upright:
            turn = turn + _at_most(felt.level * (1.0 - self.almost_upright / leaning), 0.03)
            motion[2] = -0.001
        if felt.depth > self._deepest + 0.0005:
            self._deepest, self._sticking = felt.depth, 0
        else:
            self._sticking += 1
            if self._sticking > self.patience:
                self._begin_again()
        return motion, turn

    def _lift(self, felt: Felt) -> tuple[np.ndarray, np.ndarray]:
        """Draw the peg back from the board."""
        if felt.depth < -0.003:
            self._go("approach")
        return np.append(self.give * felt.force[:2], 0.005), 0.2 * felt.level

    # Parts of phases.

    def _to_start(self, felt: Felt) -> np.ndarray:
        """Return the way to where the corner touches the board first, without the height of the corner."""
        shift = quat_rotate(quat_conjugate(felt.rotation), np.append(self._shift, 0.0))
        return shift - self.back * CORNER - felt.offset

    def _vertical(self, felt: Felt) -> np.ndarray:
        return quat_rotate(quat_conjugate(felt.rotation), UP)

    def _leaning(self, felt: Felt) -> np.ndarray:
        return felt.level + self.lean * np.cross(UP, TOWARDS_CORNER)

    def _following(self, felt: Felt) -> np.ndarray:
        """Return the turn that the moments ask for."""
        about, across = self.turn_gain
        gain, limit = np.array([across, across, about]), np.array([*[self.turn_limit[1]] * 2, self.turn_limit[0]])
        return np.clip(gain * felt.moment, -limit, limit)

    def _missed(self, felt: Felt, steps: int) -> bool:
        return self._steps > steps or float(felt.offset @ TOWARDS_CORNER) > self.astray

    def _go(self, phase: Phase) -> None:
        self._phase, self._steps = phase, 0

    def _begin_again(self) -> None:
        self._deepest, self._sticking = -np.inf, 0
        self._shift = self._rng.normal(0.0, self.again, 2)
        self._go("lift")


def _at_most(vector: np.ndarray, length: float) -> np.ndarray:
    """Shorten a vector to this length."""
    norm = float(np.linalg.norm(vector))
    return vector if norm <= length else vector * (length / norm)
