"""An arm that is driven by its joints, as an `ArmDriver`: a loop from measurement to command, and kinematics."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from robot_rl.arm.control_thread import ControlThread
from robot_rl.arm.driver import MOTION, DriverHost, Receive
from robot_rl.arm.fair_lock import FairLock
from robot_rl.arm.joints.joint_controller import JointController
from robot_rl.arm.joints.joint_port import JointPort, JointReading
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.kinematics.inverse import InverseKinematics
from robot_rl.arm.own_checks import OwnCheck, late_cycles
from robot_rl.clock import NS_PER_S
from robot_rl.config.field_types import STRICT, Fraction, PositiveReal
from robot_rl.env.state_assembler import Joints
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError
from robot_rl.geometry import Pose, quat_from_matrix

OUT_OF_REACH = 0.005
"""Distance that remains to a set-point which is reported [m]."""


@dataclass(frozen=True, config=STRICT)
class JointArmConfig:
    """How the joints are driven."""

    rate: PositiveReal = 100.0
    """Measurements and commands per second [Hz]."""
    joint_speed: PositiveReal = 1.5
    """Largest speed of a joint's command [rad/s]."""
    tool_speed: PositiveReal = 0.4
    """Largest speed of the tool that the joints' commands ask for together [m/s]; keep it below `cap_speed`."""
    tool_turn_rate: PositiveReal = 1.5
    """The same of its turning [rad/s], well below `cap_turn_rate`, as servos overshoot: parallel joints add up."""
    joint_lead: PositiveReal = 0.2
    """By how much a joint's command may lead its position [rad]; what bounds the torque in contact."""
    turn_weight: PositiveReal = 0.02
    """What an error in orientation counts where not every pose can be reached: 1 rad as much as so many metres."""
    gripper_width: PositiveReal = 0.08
    """Distance between the open jaws [m]."""
    gripper_speed: PositiveReal = 2.0
    """Largest speed of the gripper's command [openings/s]."""
    gripper_lead: Fraction = 0.15
    """By how much its command may lead its position, as a share of the opening; what bounds the force of the jaws."""


class JointArm:
    """Driver of an arm by its joints.

    Args:
        port: The motors.
        chain: The kinematics, of the same joints.
        config: How they are driven.
        host: The program that runs it.

    Raises:
        ConfigError: if the chain has other limits than the calibration, so that a joint has no room.
    """

    def __init__(self, port: JointPort, chain: Chain, config: JointArmConfig, host: DriverHost) -> None:
        self._port, self._config, self._host = port, config, host
        low, high = port.limits
        if low.shape != chain.low.shape:
            raise ConfigError(f"the arm has {low.size} joints, its kinematics {chain.size}: {', '.join(chain.names)}")
        self.chain = chain.narrowed(low, high)
        """Its kinematics, within the limits of its calibration."""
        self._kinematics = InverseKinematics(self.chain, config.turn_weight)
        tool_speed = config.tool_speed, config.tool_turn_rate
        self._controller = JointController(
            self.chain.low, self.chain.high, config.joint_speed, config.joint_lead, port.resolution, tool_speed
        )
        self._receive: Receive = _discard
        self._using = FairLock()  # the port
        self._aiming = threading.Lock()  # the controller and the gripper; never held for long
        self._measured: JointReading | None = None
        self._gripper_target: float | None = None
        self._gripper_command: float | None = None
        self._lost: str | None = None
        self._thread = ControlThread("joint arm", config.rate, self._cycle, host.problem)

    @property
    def measures(self) -> frozenset[str]:
        """What is measured; motors do not measure a wrench, whatever their load."""
        return MOTION | {"gripper"} if self._port.has_gripper else MOTION

    def start(self, receive: Receive) -> None:
        """Switch the motors on, without a jump, and begin to measure.

        Raises:
            RobotLostError: if the motors do not answer, or do not switch on.
        """
        self._receive = receive
        self._engage()
        self._thread.start()

    def move_to(self, T_base_target: Pose) -> None:
        """Set the set-point; a set-point out of reach is approached as far as possible, and reported."""
        if self._measured is None:
            return  # nobody commands an arm that is not measured
        solution = self._kinematics.solve(self._measured.position, T_base_target)
        if solution.distance > OUT_OF_REACH:
            self._host.problem("a set-point is out of reach of the joints: the arm goes as near as it can")
        with self._aiming:
            self._controller.aim(solution.position)

    def move_gripper(self, width: float) -> None:
        """Set the distance between the jaws [m]."""
        with self._aiming:
            self._gripper_target = min(max(width / self._config.gripper_width, 0.0), 1.0)

    def hold(self) -> None:
        """Keep the joint commands as they are."""
        with self._aiming:
            self._controller.hold()

    def faults(self) -> list[str]:
        """Return why the arm would not obey now."""
        own = [] if self._thread.alive or self._measured is None else ["its control has ended; start it again"]
        return [*own, *filter(None, [self._lost]), *self._port.faults()]

    def recover(self) -> None:
        """Switch the motors on again where they are off, without a jump.

        Raises:
            ArmStoppedError: if they do not answer, or a fault stays.
        """
        if not self.faults():
            return
        try:
            self._engage()
        except RobotLostError as error:
            raise ArmStoppedError(str(error)) from error
        self._lost = None

    def own_checks(self) -> list[OwnCheck]:
        """Return how many cycles were late, as a `ChecksItself`."""
        return [late_cycles(self._thread)]

    def close(self) -> None:
        """Stop to measure; the motors hold."""
        self._receive = _discard
        self._thread.close()
        with self._using:
            self._port.close()

    def _engage(self) -> None:
        with self._using:
            commanded = self._port.engage()
            with self._aiming:
                self._controller.restart(commanded.position)
                self._gripper_command, self._gripper_target = commanded.opening, None

    def _cycle(self) -> None:
        with self._using:
            try:
                reading = self._port.read()
                T, J = self.chain.pose_and_jacobian(reading.position)
                self._command(reading, J)
            except RobotLostError as error:
                self._miss(error)
                return
        self._report(reading, T, J)

    def _miss(self, error: RobotLostError) -> None:
        """Take note that it was not measured; motors hold their last command meanwhile."""
        before = self._measured
        if before is None or (self._host.wall.now() - before.stamp) / NS_PER_S > self._host.max_age:
            self._lost = str(error)
            with self._aiming:
                self._controller.hold()

    def _command(self, reading: JointReading, jacobian: np.ndarray) -> None:
        before, self._measured = self._measured, reading
        elapsed = (reading.stamp - before.stamp) / NS_PER_S if before is not None else 0.0
        period = min(max(elapsed, 0.0), 2.0 / self._config.rate)  # a command makes up for no more than one lost cycle
        with self._aiming:
            if self._port.faults():
                self._controller.hold()
                return
            command = self._controller.step(reading.position, reading.velocity, period, jacobian)
            opening = self._next_opening(reading.opening, period)
        self._port.write(command, opening)

    def _next_opening(self, measured: float | None, period: float) -> float | None:
        if self._gripper_target is None or self._gripper_command is None or measured is None:
            return None
        lead, most = self._config.gripper_lead, self._config.gripper_speed * period
        wanted = min(max(self._gripper_target, measured - lead), measured + lead)
        self._gripper_command += min(max(wanted - self._gripper_command, -most), most)
        return self._gripper_command

    def _report(self, reading: JointReading, T: np.ndarray, J: np.ndarray) -> None:
        receive, stamp = self._receive, reading.stamp
        if reading.opening is not None:
            receive("gripper", stamp, reading.opening * self._config.gripper_width)
        receive("twist", stamp, J @ reading.velocity)
        receive("joints", stamp, Joints(reading.position.copy(), reading.velocity.copy()))
        receive("pose", stamp, Pose(T[:3, 3].copy(), quat_from_matrix(np.ascontiguousarray(T[:3, :3]))))


def _discard(part: str, stamp: int, value: Any) -> None:
    """Drop what is measured before `start` and after `close`."""
