"""The URDF of the simulated arm, and its chain, are the arm: same names, same kinematics."""

import mujoco
import numpy as np

from robot_rl.arm.kinematics.fr3 import fr3_chain
from robot_rl.arm.kinematics.urdf import chain_from_urdf
from robot_rl.geometry import quat_rotate
from sim.arm.fr3 import ARM_DOF, JOINT_LIMITS
from sim.arm.mount import add_arm
from sim.arm.urdf import arm_urdf


def test_it_moves_as_the_simulated_arm_does(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(arm_urdf())
    chain = chain_from_urdf(file, "flange", [f"joint{number}" for number in range(1, ARM_DOF + 1)])
    np.testing.assert_allclose(np.stack([chain.low, chain.high], axis=1), JOINT_LIMITS)
    spec = mujoco.MjSpec()
    add_arm(spec)
    model = spec.compile()
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    for q in rng.uniform(*JOINT_LIMITS.T, size=(20, ARM_DOF)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        flange, found = data.body("flange"), chain.pose(q)
        links = [*(data.body(f"link{number}").xpos for number in range(1, ARM_DOF + 1)), flange.xpos]
        np.testing.assert_allclose(fr3_chain().points(q)[1:], links, atol=1e-9)
        np.testing.assert_allclose(found.position, flange.xpos, atol=1e-9)
        for axis in np.eye(3):
            turned = flange.xmat.reshape(3, 3) @ axis
            np.testing.assert_allclose(quat_rotate(found.quaternion, axis), turned, atol=1e-9)
