"""`UrArm` in a process of its own.

ur_rtde 1.6.5 connects again by itself after a lost connection, in its own thread and, beside it, in the call that was
sending a set-point. Where a cut meets such a call, both free the same memory, and the process ends: at one of some 90
cuts on a busy machine (docs/benchmarks.md). No lock of ours is around the library's own thread.
"""

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.industrial.ur import UrArm, UrConfig
from robot_rl.arm.isolated.driver_server import serve
from robot_rl.arm.isolated.isolated_arm import IsolatedArm
from robot_rl.arm.kinematics.universal_robots import ur_chain


class IsolatedUr(IsolatedArm):
    """A UR."""

    Config = UrConfig
    measures = UrArm.measures
    program = ("-m", "robot_rl.arm.industrial.isolated_ur")

    def __init__(self, config: UrConfig, host: DriverHost) -> None:
        super().__init__(config, host)
        self.chain = ur_chain(config.model) if config.model else None
        """Kinematics of that model; None where the robot file names none."""


if __name__ == "__main__":
    serve(UrArm)
