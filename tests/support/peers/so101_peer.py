"""An SO-101 in MuJoCo behind servos on a pseudo-terminal, in a process of its own.

    python so101_peer.py FAMILY LINK        faults come by standard input, one a line

Masses are those of the published design's URDF, joint friction, damping and stiffness those of its MJCF.
"""

import json
import sys

import mujoco
import numpy as np
from chain_model import chain_spec
from servo_peer import TURN, ServoPeer

from robot_rl.arm.kinematics import so101

MASSES = (0.100, 0.103, 0.104, 0.079, 0.099)  # the last with the jaw [kg]
CENTRES = (
    (-0.0308, 0.0, -0.0253),
    (-0.0898, -0.0084, 0.0184),
    (-0.0981, 0.0032, 0.0183),
    (-0.0001, -0.0386, 0.0281),
    (0.0, 0.0, -0.0252),
)
KP, KV, TORQUE = 17.8, 0.0, 3.35
START = np.array([0.0, -0.6, 0.9, 0.9, 0.0])
LOWS, HIGHS = (700, 800, 900, 1000, 0, 2000), (3400, 3300, 3200, 3100, 4095, 3500)
"""Calibrated ranges [counts]; as on a real arm, those of the joints are not centred on half a turn."""
STEP = 0.002
OFFSET = 17
"""Homing offset of every servo [counts]."""
MOTORS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


def write_calibration(file):
    """Write what LeRobot has in its file of a calibration, as it is in the servos."""
    rows = enumerate(zip(MOTORS, LOWS, HIGHS, strict=True), start=1)
    facts = {
        name: {"id": ident, "drive_mode": 0, "homing_offset": OFFSET, "range_min": low, "range_max": high}
        for ident, (name, low, high) in rows
    }
    file.write_text(json.dumps(facts), encoding="utf-8")


def urdf_of_so101():
    """The chain of the SO-101 as a URDF file."""
    lines = ['<robot name="r"><link name="l0"/>']
    for i, (name, xyz, rpy, (low, high)) in enumerate(so101.JOINTS, start=1):
        place = f'xyz="{" ".join(map(str, xyz))}" rpy="{" ".join(map(str, rpy))}"'
        lines.append(
            f'<link name="l{i}"/><joint name="{name}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<origin {place}/><axis xyz="0 0 1"/><limit lower="{low}" upper="{high}"/></joint>'
        )
    xyz, rpy = (" ".join(map(str, three)) for three in so101.TOOL)
    lines.append(
        f'<link name="tip"/><joint name="tool" type="fixed"><parent link="l5"/><child link="tip"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/></joint></robot>'
    )
    return "".join(lines)


class So101Body:
    """Positions are in counts; the gripper moves without load."""

    def __init__(self, payload=0.0):
        spec = chain_spec(so101.so101_chain())
        for joint, mass, centre in zip(spec.joints, MASSES, CENTRES, strict=True):
            joint.damping, joint.frictionloss, joint.armature = (0.6, 0, 0), 0.052, 0.028
            body = spec.body(joint.name)
            body.mass, body.ipos = mass + (payload if joint.name == "wrist_roll" else 0.0), centre
            motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            motor.set_to_position(kp=KP, kv=KV)
            motor.forcelimited, motor.forcerange = True, (-TORQUE, TORQUE)
        spec.option.timestep = STEP
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.middle = 0.5 * (np.array(LOWS) + HIGHS)
        self.supported = False  # by a hand, while no servo has torque
        self.reset()

    def reset(self):
        """Stand still at the start."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = START
        mujoco.mj_forward(self.model, self.data)
        self.opening, self.rest = 2100.0, 0.0
        self.skip = 0.0  # time to go through at once [s]
        self.velocity, self.load = np.zeros(6), np.zeros(6)
        self.publish()

    def step(self, dt, goals, stiffness):
        self.rest, self.skip = min(self.rest + dt, 0.5) + self.skip, 0.0
        count, self.rest = divmod(self.rest, STEP)
        k = KP * np.array(stiffness[:5])
        self.model.actuator_gainprm[:, 0], self.model.actuator_biasprm[:, 1] = k, -k
        if self.supported and not k.any():
            return
        self.data.ctrl[:] = (np.array(goals[:5]) - self.middle[:5]) * 2 * np.pi / TURN
        mujoco.mj_step(self.model, self.data, int(count))
        if stiffness[5]:
            self.opening += (goals[5] - self.opening) * (1 - np.exp(-count * STEP / 0.05))
        self.publish()

    def publish(self):
        self.position = np.append(self.data.qpos * TURN / (2 * np.pi) + self.middle[:5], self.opening)
        self.velocity[:5] = self.data.qvel * TURN / (2 * np.pi)
        self.load[:5] = self.data.actuator_force / TORQUE


def main():
    family, link = sys.argv[1:3]
    peer = ServoPeer(family, link, So101Body(float(sys.argv[3]) if len(sys.argv) > 3 else 0.0))
    for servo, low, high in zip(peer.servos.values(), LOWS, HIGHS, strict=True):
        peer.protocol.calibrate(servo.memory, OFFSET, low, high)
    peer.start()
    print("ready", flush=True)
    for line in sys.stdin:
        what, *value = line.split()
        if what in ("lag", "drop", "corrupt"):
            setattr(peer, what, float(value[0]))
        elif what == "power":
            peer.power(value[0] == "on")
        elif what == "reboot":
            peer.power(False)
            peer.power(True)
        elif what == "trip":
            peer.trip(int(value[0]))
        elif what == "supply":
            peer.supply(float(value[0]))
        elif what == "settle":  # it creeps for seconds under its weight
            with peer.lock:
                peer.body.skip = 5.0
                peer.physics()
        elif what == "support":
            peer.body.supported = True
        elif what == "reset":
            peer.reset()
        elif what in ("plug", "unplug"):
            getattr(peer, what)()
        elif what == "where":
            with peer.lock:
                place = peer.body.data.site("tcp").xpos.copy()
            print(*place, flush=True)
            continue
        print("done", flush=True)
    peer.end()


if __name__ == "__main__":
    main()
