"""The simulated arm for tests that look at the truth: noise-free, commanded directly, without an environment."""

import mujoco
import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.sensing import Sensing
from sim.tasks import peg_insert

EXACT = Sensing(position_noise=0.0, rotation_noise=0.0, force_noise=0.0, torque_noise=0.0)


class ArmRig:
    """The arm with the peg, 3 cm over the plain top of the block: the hole is out of the way."""

    def __init__(self, gains: ImpedanceGains | None = None, sensing: Sensing = EXACT):
        cell = peg_insert.make(WorkcellOptions())
        self.parameters = cell.task.parameters
        self.io = MujocoRobotIO(cell.io.model, gains=gains, sensing=sensing)
        self.model, self.data = self.io.model, self.io.data
        self.q_start = cell.task.q_start
        self.reset()

    def reset(self, q=None):
        self.data.mocap_pos[0] = [0.55, 0.0, self.parameters.block_height]
        self.io.reset(self.q_start if q is None else q, seed=0)
        self.start = self.pose()

    def pose(self) -> Pose:
        return self.io.controller.pose()

    def sleep(self, seconds: float):
        self.io.sleep_until(self.io.now() + round(seconds * NS_PER_S))

    def go(self, offset, rotvec=(0.0, 0.0, 0.0), ttl=100.0):
        """Sets the set-point relative to the start pose: offset in the base frame [m], turn in the tcp's [rad]."""
        quaternion = quat_multiply(self.start.quaternion, quat_from_rotvec(np.array(rotvec)))
        self.io.command(Command(self.io.now(), ttl, Pose(self.start.position + offset, quaternion)))

    def contact_force(self) -> np.ndarray:
        """Sum of the contact forces on the peg, base frame [N], as the physics engine computes them."""
        data = mujoco.MjData(self.model)
        mujoco.mj_copyData(data, self.model, self.data)
        mujoco.mj_forward(self.model, data)
        peg, total, force = self.model.geom("peg").id, np.zeros(3), np.zeros(6)
        for number in range(data.ncon):
            contact = data.contact[number]
            mujoco.mj_contactForce(self.model, data, number, force)
            # The force acts along the contact's frame on its second geom.
            sign = 1.0 if contact.geom2 == peg else -1.0
            total += sign * contact.frame.reshape(3, 3).T @ force[:3]
        return total
