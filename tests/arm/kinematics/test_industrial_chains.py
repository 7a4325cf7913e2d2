"""The chains of industrial arms stand where their makers' drawings say."""

import math

import numpy as np
import pytest

from robot_rl.arm.kinematics.fr3 import fr3_chain
from robot_rl.arm.kinematics.universal_robots import MODELS, ur_chain


@pytest.mark.parametrize("model", MODELS)
def test_a_universal_robot_stretched_out_and_upright(model):
    a2, a3, d1, d4, d5, d6 = MODELS[model]
    out, upright = np.zeros(6), np.array([0.0, -math.pi / 2, 0.0, -math.pi / 2, 0.0, 0.0])
    assert ur_chain(model).pose(out).position == pytest.approx([a2 + a3, -d4 - d6, d1 - d5])
    assert ur_chain(model).pose(upright).position == pytest.approx([0.0, -d4 - d6, d1 - a2 - a3 + d5])


def test_the_franka_in_its_ready_pose():
    """The flange is above x = 0.3069 m, 0.5903 m high, and looks down: the pose of Franka's examples, less the hand."""
    ready = np.array([0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4])
    pose = fr3_chain().pose(ready)
    assert pose.position == pytest.approx([0.3069, 0.0, 0.5903], abs=1e-4)
    assert pose.matrix == pytest.approx(np.diag([1.0, -1.0, -1.0]), abs=1e-9)
