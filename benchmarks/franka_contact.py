"""A Franka in contact, in franky-sim: it presses on a table, and puts a peg into a hole by a spiral search.

    PYTHONPATH=.:tests/support/peers python benchmarks/franka_contact.py press
    PYTHONPATH=.:tests/support/peers python benchmarks/franka_contact.py insert --trials 10

`press` goes down from 3 cm above the table to a set-point 5 cm in it, at most at `max_speed`, and presses for 2 s: the
force that stands, the largest one, and what stops it. `insert` begins 1 cm above the hole and some millimetres beside
it, presses, and moves its set-point in a spiral. Forces are those of the simulated contacts.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from franka_peer import HOLE_AT, PEG, PEG_LENGTH, WALL, FrankaPeer

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.industrial.franka import FrankaArm, FrankaConfig
from robot_rl.clock import Rate
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.move_arm import Travel
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose

DOWN = np.array([0.0, 1.0, 0.0, 0.0])
LOW, HIGH = (0.2, -0.3, 0.2), (0.7, 0.3, 0.7)
TABLE = 0.35
"""Its height [m]."""
PRESS = 2.0
"""How long it presses [s]."""
LEAD, PUSH = 0.002, 0.008
"""By how much the set-point is below the tcp [m]: in the search, where more friction would hold it, and after it."""
FOUND = 0.001
"""How far below the rim the peg is in the hole [m]."""
BESIDE, SEARCH = 0.003, 25.0
"""How far beside the hole the peg begins, at most along each axis [m], and how long it searches [s]."""


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


def open_arm(peer: FrankaPeer, case: Case) -> ArmRobotIO:
    """Open the arm."""
    config = FrankaConfig(
        host=peer.address,
        translational_stiffness=case.stiffness,
        translational_clip=case.clip,
        force_threshold=case.reflex,
    )
    return ArmRobotIO(
        lambda host: FrankaArm(config, host),
        CommandLimits(box_low=LOW, box_high=HIGH, max_speed=case.speed, max_force=case.limit, max_age=1.0),
        ArmCap(cap_box_low=LOW, cap_box_high=HIGH),
        freshness=Freshness(max_age=1.0),
    )


def go_above(io: ArmRobotIO, above: Pose) -> None:
    """Go up, over the place, and down to it."""
    travel, here = Travel(io, io.wall, 0.1, 0.5), io.read().T_base_tcp
    high = max(here.position[2], above.position[2] + 0.05)
    travel.go(Pose(np.array([*here.position[:2], high]), here.quaternion))
    travel.go(Pose(np.array([*above.position[:2], high]), above.quaternion))
    travel.go(above)


def insert(peer: FrankaPeer, io: ArmRobotIO, offset: np.ndarray) -> str:
    """Return a row: whether the peg went in, after how long [s], and the largest force [N]."""
    rim = TABLE + WALL + PEG_LENGTH
    start = np.array([HOLE_AT[0] + offset[0], HOLE_AT[1] + offset[1], rim + 0.01])
    go_above(io, Pose(start, DOWN))
    peer.inject("mark")
    rate, began, is_in, target = Rate(io.wall, 0.1), time.monotonic(), False, start
    while not is_in and (elapsed := time.monotonic() - began) < SEARCH:
        angle, radius = 3.0 * elapsed, 0.0004 * elapsed
        tcp = io.read().T_base_tcp.position
        if tcp[2] > rim - FOUND:
            target = start + np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])
            target[2] = tcp[2] - LEAD
        else:
            target[2] = tcp[2] - PUSH
        io.command(Command(io.wall.now(), 0.25, Pose(target, DOWN)))
        rate.sleep()
        is_in = tcp[2] < rim - 0.6 * WALL
    beside = ", ".join(f"{1e3 * value:.1f}" for value in offset)
    found = f"in after {time.monotonic() - began:.1f} s" if is_in else "not in"
    return f"| {beside} mm | {found} | {peer.report()['peak']:.1f} N |"


def press(peer: FrankaPeer, case: Case) -> str:
    """Return a row: the force at the end and the largest one as the table counts them, and what stopped it."""
    io = open_arm(peer, case)
    try:
        above = Pose(np.array([0.45, 0.0, TABLE + 0.03]), DOWN)
        go_above(io, above)
        peer.inject("mark")
        target = Pose(above.position - np.array([0.0, 0.0, 0.08]), above.quaternion)
        rate, end = Rate(io.wall, 0.1), time.monotonic() + 0.03 / case.speed + PRESS
        stopped = ""
        while time.monotonic() < end:
            try:
                io.command(Command(io.wall.now(), 0.25, target))
            except RobotRLError as error:
                stopped = stopped or str(error)
            stopped = stopped or io.stopped or ""
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
    """Do it, and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["press", "insert"])
    parser.add_argument("--trials", type=int, default=10, help="of insertion")
    parser.add_argument("--clearance", type=float, default=0.001, help="of the peg in the hole, in diameter [m]")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    hole = (PEG + arguments.clearance,) if arguments.what == "insert" else ()
    peer = FrankaPeer(120.0, TABLE, *hole)
    print(f"franky-sim runs at {peer.speed():.2f} of real time")
    if arguments.what == "press":
        print(
            "| stiffness, clip | speed | limit, reflex | stands | largest | felt (x, y, z of the tool) | stopped by |"
        )
        for case in CASES:
            print(press(peer, case), flush=True)
    else:
        io, rng = open_arm(peer, Case()), np.random.default_rng(arguments.seed)
        print("| beside the hole | the peg | largest force |")
        for _ in range(arguments.trials):
            print(insert(peer, io, rng.uniform(-BESIDE, BESIDE, 2)), flush=True)
        io.close()
    peer.close()


if __name__ == "__main__":
    main()
