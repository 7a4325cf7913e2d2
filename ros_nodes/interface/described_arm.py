"""An arm as its topics describe it: the URDF of `robot_description` with the names of `joint_states`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.kinematics.urdf import longest_chain


class DescribedArm:
    """Where an arm's links are, once both topics have said what they have to."""

    def __init__(self) -> None:
        self._text = ""
        self._names: tuple[str, ...] = ()
        self._chain: Chain | None = None

    def describe(self, text: str) -> None:
        """Take the URDF.

        Raises:
            ConfigError: if it is none, or has other joints.
        """
        self._text = text
        self._join()

    def name(self, joints: Sequence[str]) -> None:
        """Take the names of the joints, in the order of their positions.

        Raises:
            ConfigError: if the URDF has other joints.
        """
        self._names = tuple(joints)
        self._join()

    def links(self, position: np.ndarray) -> np.ndarray | None:
        """Return where the links are, see `Chain.points`; None as long as that is not known.

        Args:
            position: Of the joints, in the order of their names [rad, m], shape (n,).
        """
        if self._chain is None or position.size != len(self._names):
            return None
        return self._chain.points(position[[self._names.index(name) for name in self._chain.names]])

    def _join(self) -> None:
        if self._text and self._names:
            self._chain = None
            self._chain = longest_chain(self._text, self._names)
