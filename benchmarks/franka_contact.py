"""A Franka presses on a table in franky-sim: the force that stands, the largest one, and what stops it.

    PYTHONPATH=.:tests/support/peers python benchmarks/franka_contact.py

It goes down from 3 cm above the table to a set-point 5 cm in it, at most at `max_speed`, and presses for 2 s.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from franka_peer import FrankaPeer

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.industrial.franka import FrankaArm, FrankaConfig
from robot_rl.clock import Rate
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.move_arm import Travel
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose

LOW, HIGH = (0.2, -0.3, 0.2), (0.7, 0.3, 0.7)
TABLE = 0.35
"""Its height [m]."""
PRESS = 2.0
"""How long it presses [s]."""


@dataclass(frozen=True)
class Case:
    """Stiffness [N/m], clip [m], largest speed [m/s], limit of the force [N], threshold of the reflex [N]."""

    stiffness: float = 2000.0
    clip: float = 0.01
    speed: float = 0.15
    limit: float = 200.0
    reflex: float = 200.0


CASES = [
    Case(),
    Case(speed=0.05),
    Case(clip=0.005),
    Case(stiffness=1000.0),
    Case(limit=15.0),
    Case(reflex=15.0),
]


def press(peer: FrankaPeer, case: Case) -> str:
    """Return a row: the force at the end and the largest one as the table counts them, and what stopped it."""
    config = FrankaConfig(
        host=peer.address,
        translational_stiffness=case.stiffness,
        translational_clip=case.clip,
        force_threshold=case.reflex,
    )
    io = ArmRobotIO(
        lambda host: FrankaArm(config, host),
        CommandLimits(box_low=LOW, box_high=HIGH, max_speed=case.speed, max_force=case.limit, max_age=1.0),
        ArmCap(cap_box_low=LOW, cap_box_high=HIGH),
        freshness=Freshness(max_age=1.0),
    )
    try:
        here = io.read().T_base_tcp
        above = Pose(np.array([0.45, 0.0, TABLE + 0.03]), np.array([0.0, 1.0, 0.0, 0.0]))
        Travel(io, io.wall, 0.1, 0.5).go(Pose(np.array([*above.position[:2], here.position[2]]), above.quaternion))
        Travel(io, io.wall, 0.1, 0.5).go(above)
        peer.inject("mark")
        target = Pose(above.position - np.array([0.0, 0.0, 0.08]), above.quaternion)
        rate, end = Rate(io.wall, 0.1), time.monotonic() + 0.03 / case.speed + PRESS
        stopped = ""
        while time.monotonic() < end:
            try:
                io.command(Command(io.wall.now(), 0.25, target))
            except RobotRLError as error:
                stopped = stopped or str(error)
            rate.sleep()
        report = peer.report()
        felt = "" if stopped else ", ".join(f"{value:.1f}" for value in io.read().wrench[:3])
        peer.inject("release")
        if stopped:
            io.recover()
        return (
            f"| {case.stiffness:.0f} N/m, {1e3 * case.clip:.0f} mm | {case.speed:.2f} m/s | "
            f"{case.limit:.0f}, {case.reflex:.0f} N | {np.linalg.norm(report['force']):.1f} N | "
            f"{report['peak']:.1f} N | {felt} | {stopped} |"
        )
    finally:
        up = io.read().T_base_tcp
        Travel(io, io.wall, 0.1, 0.5).go(Pose(up.position + np.array([0.0, 0.0, 0.05]), up.quaternion))
        io.close()


def main() -> None:
    """Press in each way, and print a row each."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    peer = FrankaPeer(table=TABLE)
    print(f"franky-sim runs at {peer.speed():.2f} of real time")
    print("| stiffness, clip | speed | limit, reflex | stands | largest | felt (x, y, z of the tool) | stopped by |")
    for case in CASES:
        print(press(peer, case), flush=True)
    peer.close()


if __name__ == "__main__":
    main()
