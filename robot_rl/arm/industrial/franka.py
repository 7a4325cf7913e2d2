"""Franka Research 3 (and Panda with its own wheel) by franky: an `ArmDriver` on its Cartesian impedance tracker.

The tracker runs at 1 kHz in C++ and takes references from Python. It clips the error between pose and reference, which
bounds the force in contact by stiffness times clip. A reflex ends it; the arm then holds by its brakes or its position
controller, and only `recover` starts it again.

References:
    Schneider et al., "franky: High-level control library for Franka robots" (franky-control). The error clip is that of
    serl_franka_controllers (Luo et al., "SERL", ICRA 2024).
"""

from __future__ import annotations

import gc
import threading
import time
from importlib.metadata import version
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.control_thread import ControlThread, own_priority
from robot_rl.arm.driver import MOTION, DriverHost, Receive
from robot_rl.arm.industrial.controller_claim import ControllerClaim
from robot_rl.arm.industrial.franka_checks import FrankaFacts, franka_checks
from robot_rl.arm.industrial.franka_hand import FrankaHand
from robot_rl.arm.industrial.robot_address import check_address
from robot_rl.arm.kinematics.fr3 import fr3_chain
from robot_rl.arm.own_checks import OwnCheck, late_cycles
from robot_rl.config.field_types import STRICT, NonNegativeReal, PositiveReal, Real
from robot_rl.env.state_assembler import Joints
from robot_rl.errors import ArmStoppedError, ConfigError, PluginError
from robot_rl.geometry import Pose

FCI_PORT = 1337
STATE_RATE = 200.0
"""Of what is reported and of the references [Hz]; the controller itself runs at 1 kHz."""
RECOVERY_SHOWN = 3.0
"""Longest time until the state shows a recovery [s]."""


@dataclass(frozen=True, config=STRICT)
class FrankaConfig:
    """A Franka arm with FCI on; system version 5.9 or newer for the wheel of PyPI."""

    host: str = ""
    """Address of the control box, e.g. `172.16.0.2`."""
    translational_stiffness: Annotated[float, Field(gt=0, le=3000)] = 2000.0
    """Of the Cartesian impedance [N/m]."""
    rotational_stiffness: Annotated[float, Field(gt=0, le=300)] = 100.0
    """Of the Cartesian impedance [Nm/rad]."""
    translational_clip: Annotated[float, Field(gt=0, le=0.05)] = 0.01
    """Largest error per axis that the controller acts on [m]: times the stiffness, the largest force."""
    rotational_clip: Annotated[float, Field(gt=0, le=0.3)] = 0.08
    """Largest error per axis that the controller acts on [rad]."""
    force_threshold: PositiveReal = 60.0
    """Contact force per axis above which the arm stops itself (reflex) [N]."""
    torque_threshold: PositiveReal = 40.0
    """The same for each joint [Nm]."""
    gripper: bool = True
    """Whether the Franka Hand is mounted."""
    gripper_speed: PositiveReal = 0.1
    """Of its fingers [m/s]."""
    payload: NonNegativeReal = 0.0
    """Mass of what is mounted beyond the hand that Desk knows [kg]; an undeclared one lets the arm sink."""
    centre_of_mass: tuple[Real, ...] = ()
    """Of the payload, from the flange [m]; needed with it."""
    realtime_kernel: bool = False
    """Refuse to run without a PREEMPT_RT kernel."""


class FrankaArm:
    """A connection to a control box.

    Args:
        config: The settings.
        host: Of the driver.

    Raises:
        ConfigError: if a setting is not valid.
        PluginError: if franky is not installed.
        ArmStoppedError: if the arm cannot be reached, another program of this machine has it, or it is not ready to be
            driven.
    """

    Config = FrankaConfig
    chain = fr3_chain()

    def __init__(self, config: FrankaConfig, host: DriverHost) -> None:
        self._franky = _library()
        _check(config)
        self._config, self._host = config, host
        self.measures = MOTION | ({"wrench", "gripper"} if config.gripper else {"wrench"})
        check_address(config.host, FCI_PORT, 5.0, what="Franka control box (FCI)")
        self._lock = threading.RLock()  # of the tracker
        self._fault: str | None = None
        self._is_lost = False  # the connection
        self._receive: Receive | None = None
        self._tracker: Any = None
        self._claim = ControllerClaim(config.host, what="Franka")
        try:
            with own_priority():
                self._robot: Any = self._connect()
                self._hand = self._connect_hand()
                self._set_up()
                self._open_tracker()
        except BaseException:  # Ctrl-C too: the arm may be opened again
            self._claim.close()
            raise
        self._thread = ControlThread("franka", STATE_RATE, self._cycle, host.problem)

    # As an `ArmDriver`.

    def start(self, receive: Receive) -> None:
        """Call `receive` with every measurement from now on."""
        self._receive = receive
        self._thread.start()
        if self._hand is not None:
            self._hand.start()

    def move_to(self, T_base_target: Pose) -> None:
        """Set the reference of the impedance controller."""
        with self._lock:
            if self._tracker is not None and self._fault is None:
                self._tracker.set_target(self._affine(T_base_target))

    def move_gripper(self, width: float) -> None:
        """Move the fingers, if the width is another one than before."""
        if self._hand is not None:
            self._hand.move(width)

    def hold(self) -> None:
        """Make the present pose the reference."""
        with self._lock:
            if self._tracker is not None and self._fault is None:
                self._tracker.set_target(self._robot.state.O_T_EE)

    def faults(self) -> list[str]:
        """Return why the arm would not obey now."""
        if self._fault is not None:
            return [self._fault]
        if self._receive is not None and not self._thread.alive:
            return ["the driver's thread has ended with an error; start the program again"]
        hand = self._hand
        return [fault] if hand is not None and (fault := hand.fault()) is not None else []

    def recover(self) -> None:
        """Recover from the reflex, and start the controller at the present pose; end the motion of a silent hand.

        Raises:
            ArmStoppedError: if an error stays, e.g. because the external activation device is pressed.
        """
        if self._hand is not None and self._hand.fault() is not None:
            self._hand.recover()
        if self._fault is None:
            return
        with self._lock, own_priority():
            self._end_tracker()
            if self._is_lost:
                self._reconnect()
            try:
                self._robot.recover_from_errors()
            except self._franky.Exception as error:
                raise ArmStoppedError(
                    f"the arm does not recover ({_first_line(error)}); release its stop, free it, then consent again"
                ) from error
            self._await_no_error()
            self._check_ready()
            self._set_up()
            self._open_tracker()
            self._fault = None

    def own_checks(self) -> list[OwnCheck]:
        """Return what the arm says of itself, as a `ChecksItself`."""
        robot, hand = self._robot, self._hand
        state = robot.state
        facts = FrankaFacts(
            package=version("franky-control"),
            hand=None if hand is None else hand.version,
            mode=state.robot_mode.name,
            in_control=bool(robot.is_in_control),
            success_rate=float(state.control_command_success_rate),
            hand_mass=float(state.m_ee),
            load=float(state.m_load),
        )
        return [*franka_checks(facts, self._config.payload), late_cycles(self._thread)]

    def close(self) -> None:
        """End the controller and let the arm go; every reference goes, or the next connection would wait for ever."""
        self._thread.close()
        if self._hand is not None:
            self._hand.close()
        with self._lock:
            self._end_tracker()
            self._tracker = self._hand = self._robot = None
        gc.collect()
        self._claim.close()

    # The thread.

    def _cycle(self) -> None:
        """Report the newest state, and notice when the controller has ended."""
        robot, hand, receive = self._robot, self._hand, self._receive
        if robot is None or receive is None or self._is_lost:
            return
        try:
            if self._fault is None and not robot.is_in_control:
                self._fault = self._why_ended()
            state, now = robot.state, self._host.wall.now()
        except (self._franky.NetworkException, RuntimeError) as error:  # the latter is Poco's
            self._fault = self._lost(error)
            return
        if self._fault is not None and state.robot_mode == self._franky.RobotMode.UserStopped:
            self._fault = _PRESSED  # the motion has ended with an error that does not name it
        twist = state.O_dP_EE_est  # None in the first cycles
        six = np.zeros(6) if twist is None else np.concatenate((np.array(twist.linear), np.array(twist.angular)))
        receive("twist", now, six)
        receive("wrench", now, -np.array(state.K_F_ext_hat_K, float))  # libfranka: what the robot exerts
        receive("joints", now, Joints(np.array(state.q, float), np.array(state.dq, float)))
        if hand is not None:
            receive("gripper", now, hand.width)
        receive("pose", now, _pose(state.O_T_EE))

    def _why_ended(self) -> str:
        """Return why the controller has ended, with the cure."""
        try:
            self._robot.poll_motion()
        except self._franky.NetworkException as error:
            return self._lost(error)
        except self._franky.Exception as error:
            return f"{_REFLEX} ({_first_line(error)}); free it, then consent"
        mode = self._robot.state.robot_mode
        if mode == self._franky.RobotMode.UserStopped:
            return _PRESSED
        return f"the controller has ended in the mode {mode.name}; look at Desk"

    def _lost(self, error: Exception) -> str:
        self._is_lost = True
        return f"the connection to the arm is lost ({_first_line(error)}); check its cable, and FCI in Desk"

    # Set-up.

    def _connect(self) -> Any:
        franky = self._franky
        kind = franky.RealtimeConfig.Enforce if self._config.realtime_kernel else franky.RealtimeConfig.Ignore
        try:
            robot = franky.Robot(self._config.host, realtime_config=kind)
        except franky.IncompatibleVersionException as error:
            raise ArmStoppedError(
                f"the arm's system has another version than this franky: {_first_line(error)}; install the wheel of "
                "franky-control for it (docs/arms.md)"
            ) from error
        except franky.Exception as error:
            raise ArmStoppedError(
                f"no connection to the arm at {self._config.host}: {_first_line(error)}; unlock the brakes and switch "
                "FCI on in Desk, and end other programs"
            ) from error
        self._robot = robot
        self._check_ready()
        return robot

    def _reconnect(self) -> None:
        """Connect again after a lost connection.

        Raises:
            ArmStoppedError: if the arm cannot be reached.
        """
        check_address(self._config.host, FCI_PORT, 5.0, what="Franka control box (FCI)")
        if self._hand is not None:
            self._hand.close()
        self._hand = self._robot = None  # else the next connection would wait for ever
        gc.collect()
        self._robot = self._connect()
        self._hand = self._connect_hand()
        if self._hand is not None:
            self._hand.start()
        self._is_lost = False

    def _check_ready(self) -> None:
        """Check that the arm may be driven.

        Raises:
            ArmStoppedError: naming the mode that it is in, and the cure.
        """
        modes, mode = self._franky.RobotMode, self._robot.state.robot_mode
        cures = {
            modes.UserStopped: "its stop is pressed (external activation device); release it",
            modes.Guiding: "it is being guided by hand; let go of its buttons",
            modes.Reflex: "it is in a reflex; free it, and recover it in Desk or by consent",
            modes.Other: "look at Desk",
        }
        if mode in cures:
            raise ArmStoppedError(f"the arm is in the mode {mode.name}: {cures[mode]}")

    def _await_no_error(self) -> None:
        """Wait until the state shows the recovery.

        Raises:
            ArmStoppedError: if it does not.
        """
        end = time.monotonic() + RECOVERY_SHOWN
        while self._robot.has_errors or self._robot.state.robot_mode == self._franky.RobotMode.Reflex:
            if time.monotonic() > end:
                raise ArmStoppedError("the arm does not recover from its error; look at Desk")
            time.sleep(0.02)

    def _set_up(self) -> None:
        config = self._config
        try:
            self._robot.set_collision_behavior(config.torque_threshold, config.force_threshold)
            if config.payload:
                self._robot.set_load(config.payload, list(config.centre_of_mass), [0.0] * 9)
        except self._franky.Exception as error:
            raise ArmStoppedError(f"the arm refuses its settings: {_first_line(error)}; look at Desk") from error

    def _open_tracker(self) -> None:
        config = self._config
        self._tracker = self._franky.CartesianImpedanceTracker(
            self._robot,
            translational_stiffness=config.translational_stiffness,
            rotational_stiffness=config.rotational_stiffness,
            translational_error_clip=np.full(3, config.translational_clip),
            rotational_error_clip=np.full(3, config.rotational_clip),
            max_delta_tau=1.0,
        )

    def _end_tracker(self) -> None:
        if self._tracker is None:
            return
        try:
            self._tracker.stop()
        except self._franky.Exception as error:  # it has ended already
            self._host.problem(f"the controller ended with: {_first_line(error)}")
        self._tracker = None

    def _connect_hand(self) -> FrankaHand | None:
        if not self._config.gripper:
            return None
        try:
            gripper = self._franky.Gripper(self._config.host)
        except self._franky.Exception as error:
            raise ArmStoppedError(
                f"no Franka Hand answers: {_first_line(error)}; set `gripper: false` if there is none"
            ) from error
        errors = (self._franky.Exception, RuntimeError)  # the latter is Poco's
        return FrankaHand(gripper, self._config.gripper_speed, errors, self._host.problem)

    def _affine(self, T: Pose) -> Any:
        w, x, y, z = T.quaternion.tolist()
        return self._franky.Affine(T.position.tolist(), [x, y, z, w])


_REFLEX = "reflex: the arm has stopped itself"
_PRESSED = "the arm's stop is pressed (external activation device); release it, then consent"


def _library() -> Any:
    """Import franky.

    Raises:
        PluginError: if it is not installed.
    """
    try:
        import franky
    except ImportError as error:
        raise PluginError(
            f"the driver franka needs franky ({error}); install it: pip install 'robot_rl[franka]'"
        ) from error
    return franky


def _check(config: FrankaConfig) -> None:
    if not config.host:
        raise ConfigError("host is missing; give the address of the Franka control box, e.g. `host: 172.16.0.2`")
    if config.payload and len(config.centre_of_mass) != 3:
        raise ConfigError("payload needs centre_of_mass, three numbers: the x, y and z of its centre from the flange")


def _pose(affine: Any) -> Pose:
    x, y, z, w = np.array(affine.quaternion, float)
    return Pose(np.array(affine.translation, float), np.array((w, x, y, z)))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
