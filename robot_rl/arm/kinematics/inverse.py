"""Inverse kinematics near a present position: damped least squares within joint limits.

The method is that of Nakamura and Hanafusa (1986) and Wampler (1986): each iteration solves
`min |W (J dq - e)|^2 + damping^2 |dq|^2`. A joint that would leave its limits is fixed there, and the others make up
for it as far as they can.

An arm of five joints cannot reach every pose. Position and orientation are therefore weighed: an error of 1 rad counts
as much as one of `turn_weight` metres.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_rl.arm.kinematics.chain import Chain
from robot_rl.geometry import Pose, quat_from_matrix, rotvec_from_quat

DAMPING = 1e-3
"""Of the joints' steps [m/rad]: small against the lengths of an arm, large against rounding."""
ITERATIONS = 20
CONVERGED = 1e-5
"""Largest step of a joint that ends the iteration [rad]."""
LARGEST_STEP = 0.3
"""Of a joint in one iteration [rad]: the Jacobian holds nearby only."""


@dataclass(frozen=True, eq=False)
class JointSolution:
    """Joint positions, and how far the tool stays from the target with them.

    Attributes:
        position: Of the joints, within the limits. Shape (n,).
        distance: Remaining distance [m].
        angle: Remaining rotation [rad].
    """

    position: np.ndarray
    distance: float
    angle: float


class InverseKinematics:
    """Solver for one chain.

    Args:
        chain: The arm, with its limits.
        turn_weight: What an error in orientation counts [m/rad].
    """

    def __init__(self, chain: Chain, turn_weight: float = 0.02) -> None:
        self._chain, self._low, self._high = chain, chain.low, chain.high
        self._weights = np.repeat([1.0, turn_weight], 3)

    def solve(self, start: np.ndarray, target: Pose) -> JointSolution:
        """Return the joint positions, near `start`, that bring the tool nearest to a pose.

        Args:
            start: Present positions, shape (n,).
            target: Pose of the tcp in the base frame.
        """
        position = np.clip(start, self._low, self._high)
        R_target = target.matrix
        error, J = self._error(position, target, R_target)
        for _ in range(ITERATIONS):
            step = self._step(position, J, error)
            position = np.clip(position + step, self._low, self._high)
            error, J = self._error(position, target, R_target)
            if float(np.abs(step).max()) < CONVERGED:
                break
        return JointSolution(position, float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:])))

    def _error(self, position: np.ndarray, target: Pose, R_target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what is missing, shape (6,) in the axes of the base, and the Jacobian."""
        T, J = self._chain.pose_and_jacobian(position)
        turn = rotvec_from_quat(quat_from_matrix(R_target @ T[:3, :3].T))
        return np.concatenate((target.position - T[:3, 3], turn)), J

    def _step(self, position: np.ndarray, J: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Return the step of one iteration, shape (n,), with the joints at their limits fixed."""
        weighted, wanted = self._weights[:, None] * J, self._weights * error
        free = np.ones(position.size, bool)
        while True:
            A = weighted[:, free]
            step = np.zeros(position.size)
            step[free] = np.linalg.solve(A.T @ A + DAMPING**2 * np.eye(A.shape[1]), A.T @ wanted)
            leaves = free & (((position <= self._low) & (step < 0.0)) | ((position >= self._high) & (step > 0.0)))
            if not leaves.any() or leaves.sum() == free.sum():
                step[leaves] = 0.0
                return step * min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), 1e-12))
            free &= ~leaves
