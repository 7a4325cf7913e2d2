"""Universal Robots e-series and CB3 by RTDE: an `ArmDriver` on `ur_rtde`, which servos in Cartesian space.

The controller follows `servoL` set-points at 125 or 500 Hz. Between the measured pose and the set-point, which the
limits keep near, it moves at a bounded speed. One thread measures and another one commands, since a command blocks for
up to 4 s when the controller's program has ended. The controller's own watchdog stops the arm when commands stop.

References:
    Lindvig et al., "ur_rtde: An Interface for Controlling Universal Robots (UR) using the Real-Time Data Exchange
    (RTDE)", SII 2025. Universal Robots, "Real-Time Data Exchange (RTDE) Guide" (safety status bits, robot modes).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.control_thread import ControlThread
from robot_rl.arm.driver import MOTION, DriverHost, Receive
from robot_rl.arm.industrial.robot_address import check_address
from robot_rl.arm.industrial.ur_checks import UrFacts, check_firmware, check_model, ur_checks
from robot_rl.arm.industrial.ur_interfaces import CALL_TIME, Calls, connected, connected_again, ur_libraries
from robot_rl.arm.industrial.ur_status import mode_fault, safety_fault
from robot_rl.arm.own_checks import OwnCheck, late_cycles
from robot_rl.arm.set_point.pose_servo import pose_towards
from robot_rl.clock import NS_PER_S
from robot_rl.config.field_types import STRICT, NonNegativeReal, PositiveReal, Real
from robot_rl.env.state_assembler import Joints
from robot_rl.errors import ArmStoppedError, ConfigError
from robot_rl.geometry import (
    Pose,
    quat_conjugate,
    quat_from_rotvec,
    quat_rotate,
    rotvec_from_quat,
)

FRESH = 0.05
"""Age of a pose up to which the arm may go back to it [s]; to go back further would be a motion."""
DASHBOARD_PORT = 29999
UNLOCK_TIME = 8.0
"""Longest time in which a protective stop is tried to be unlocked [s]."""
_KEPT: list[Any] = []
"""Interfaces of closed drivers: their destructors hold Python's lock for 0.5 s each."""


@dataclass(frozen=True, config=STRICT)
class UrConfig:
    """A Universal Robots arm with PolyScope 5 (e-series, remote control on) or 3 (CB3)."""

    host: str = ""
    """Address of the controller, e.g. `192.168.1.10`."""
    model: Literal["", "ur3", "ur3e", "ur5", "ur5e", "ur10", "ur10e", "ur16e", "ur20", "ur30"] = ""
    """Model of the arm, e.g. `ur5e`; another one behind the controller is refused. Empty: it is not checked."""
    rate: Literal[125, 500] = 125
    """Rate of state and set-points [Hz]; 500 is for the e-series."""
    speed: Annotated[float, Field(gt=0, le=0.5)] = 0.25
    """Largest speed at which the set-point moves to the commanded one [m/s]."""
    turn_rate: Annotated[float, Field(gt=0, le=3.0)] = 1.5
    """Largest rate at which it turns there [rad/s]."""
    lookahead: Annotated[float, Field(ge=0.03, le=0.2)] = 0.1
    """Time by which the controller smooths the trajectory [s]: longer is softer and later."""
    gain: Annotated[int, Field(ge=100, le=2000)] = 300
    """Proportional gain of the controller's position loop."""
    tcp: tuple[Real, ...] = ()
    """Pose of the tcp on the flange: x, y, z [m] and a rotation vector [rad]; none: as set at the controller."""
    payload: NonNegativeReal = 0.0
    """Mass of the tool [kg]; 0: as set at the controller. A wrong one appears as a force, and the arm sags."""
    watchdog: Annotated[float, Field(ge=1, le=60)] = 10.0
    """Least rate of commands; below it the controller stops its program, and with it the arm [Hz]."""
    centre_of_mass: tuple[Real, ...] = ()
    """Of the payload, from the flange [m]; none: as set at the controller, and needed with `payload`."""
    max_silence: Annotated[float, Field(ge=0.03, le=1.0)] = 0.1
    """Time without a new state of the controller after which the connection counts as lost, and the arm holds [s]."""
    connect_timeout: PositiveReal = 5.0
    """Longest time to connect [s]."""


class _ControllerState(NamedTuple):
    """A state of the controller: its time [s], status, and what it measures in the axes of the base."""

    stamp: float
    safety: int
    mode: int
    pose: np.ndarray
    twist: np.ndarray
    force: np.ndarray
    joints: Joints


class UrArm:
    """A connection to a controller.

    Args:
        config: The settings.
        host: Of the driver.

    Raises:
        ConfigError: if a setting is not valid.
        PluginError: if `ur_rtde` is not installed.
        ArmStoppedError: if the arm cannot be reached, or is not ready to be driven.
    """

    Config = UrConfig
    measures = MOTION | {"wrench"}

    def __init__(self, config: UrConfig, host: DriverHost) -> None:
        self._rtde, self._calls = ur_libraries(), Calls()
        _check(config)
        self._config, self._host = config, host
        check_address(config.host, DASHBOARD_PORT, config.connect_timeout, what="UR controller")
        self._lock = threading.RLock()  # of the interfaces for control; the state is read without it
        self._reading = threading.Lock()  # connecting again frees what a read of the state looks at
        self._target: Pose | None = None
        self._reference: Pose | None = None
        self._pose: Pose | None = None
        self._fault: str | None = None
        self._controller_time = -1.0
        self._measured_at = host.wall.now()
        self._receive: Receive | None = None
        self._closed = False
        self._dashboard = self._open_dashboard()
        self._check_ready()
        receive = self._rtde.receive.RTDEReceiveInterface
        self._state = connected(self._calls, lambda: receive(config.host, float(config.rate)), "state")
        control = self._rtde.control.RTDEControlInterface
        self._control = connected(self._calls, lambda: control(config.host, float(config.rate)), "control")
        self._set_up()
        self._measuring = ControlThread("ur state", config.rate, self._measure, host.problem)
        self._commanding = ControlThread("ur command", config.rate, self._command, host.problem)

    # As an `ArmDriver`.

    def start(self, receive: Receive) -> None:
        """Call `receive` with every state of the controller from now on, and command what is set."""
        self._set_watchdog()  # not before: nothing was commanded
        self._receive, self._measured_at = receive, self._host.wall.now()  # silence counts from now on
        self._measuring.start()
        self._commanding.start()

    def move_to(self, T_base_target: Pose) -> None:
        """Move the set-point there, at bounded speed."""
        self._target = T_base_target

    def move_gripper(self, width: float) -> None:
        """Do nothing: a gripper on this arm has a driver of its own."""

    def hold(self) -> None:
        """Make the pose that was just measured the set-point; where it is old, end the motion of the set-point."""
        fresh = (self._host.wall.now() - self._measured_at) / NS_PER_S < FRESH
        self._target = self._reference = self._pose if fresh else self._reference

    def faults(self) -> list[str]:
        """Return why the arm would not obey now."""
        if self._fault is not None:
            return [self._fault]
        if self._receive is not None and not (self._measuring.alive and self._commanding.alive):
            return ["the driver's thread has ended with an error; start the program again"]
        return []

    def recover(self) -> None:
        """Unlock a protective stop and start the controller's program again.

        Raises:
            ArmStoppedError: if the cause is still there, e.g. the emergency stop is pressed.
        """
        if self._fault is None:
            return
        with self._alone():
            self._reconnect_state()
            self._await_fresh()
            self._unlock()
            self._check_ready()
            self._reconnect_control()
            self._set_up()
            self._set_watchdog()
            self._await_fresh()
            self._target = self._reference = self._pose
            self._fault = None

    @property
    def is_stuck(self) -> bool:
        """Whether the library does not come back from a call: only a new process helps."""
        return self._calls.is_stuck

    def own_checks(self) -> list[OwnCheck]:
        """Return what the controller says of itself, as a `ChecksItself`."""
        try:
            version, mode, safety, remote = self._standing()
            with self._reading:
                payload, speed = self._state.getPayload(), self._state.getTargetSpeedFraction()
            model = self._model()
        except RuntimeError as error:
            text = f"the controller does not say what state it is in: {error}"
            return [OwnCheck("dashboard", "fault", text, cure="check its cable, and that it is in remote control")]
        facts = UrFacts(version, model, mode, safety, remote, payload, speed)
        own = list(ur_checks(facts, self._config.rate, self._config.payload, self._config.model))
        return [*own, late_cycles(self._measuring, self._commanding)]

    def close(self) -> None:
        """Stop the arm and let the controller go."""
        if self._closed:
            return
        self._closed = True
        self._commanding.close()
        self._measuring.close()
        with contextlib.suppress(RuntimeError, ArmStoppedError), self._alone():  # the cable may be out
            self._calls(self._take_leave, "its end")
        _KEPT.extend((self._control, self._state, self._dashboard))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep set-points back.

        Raises:
            ArmStoppedError: if the last one is never answered.
        """
        if not self._lock.acquire(timeout=CALL_TIME):
            raise ArmStoppedError("the UR controller has not answered a set-point; check its cable, then consent again")
        try:
            yield
        finally:
            self._lock.release()

    def _take_leave(self) -> None:
        if self._fault is None and self._in_touch():
            self._control.servoStop()
            self._control.stopScript()
        self._control.disconnect()
        self._state.disconnect()
        self._dashboard.disconnect()

    # The two threads.

    def _measure(self) -> None:
        """Report the newest state, once."""
        state = self._read_state()
        now = self._host.wall.now()
        if state is None or state.stamp == self._controller_time:
            if self._fault is None:
                self._look_for_silence(now)
            return
        self._controller_time, self._measured_at = state.stamp, now
        self._pose = pose = Pose(state.pose[:3], quat_from_rotvec(state.pose[3:]))
        if (fault := safety_fault(state.safety) or mode_fault(state.mode)) is not None:
            self._fail(fault)
        receive = self._receive
        if receive is None:
            return
        to_tcp = quat_conjugate(pose.quaternion)
        force = state.force  # in the axes of the base, at the tcp
        receive("twist", now, state.twist)
        receive("wrench", now, np.concatenate((quat_rotate(to_tcp, force[:3]), quat_rotate(to_tcp, force[3:]))))
        receive("joints", now, state.joints)
        receive("pose", now, pose)

    def _look_for_silence(self, now: int) -> None:
        """Name a lost connection, or a controller that has been silent for too long by `now` [ns]."""
        controller, silent = f"the UR controller at {self._config.host}", (now - self._measured_at) / NS_PER_S
        if not self._in_touch():
            self._fail(f"{controller} has closed the connection; check its cable")
        elif silent > self._config.max_silence:
            self._fail(f"{controller} has been silent for {silent:.2f} s; check its cable")

    def _read_state(self) -> _ControllerState | None:
        """Return the newest state of the controller; None while there is none, e.g. while it is connected again."""
        state = self._state
        try:
            with self._reading:
                six = state.getActualTCPPose(), state.getActualTCPSpeed(), state.getActualTCPForce()
                joints = state.getActualQ(), state.getActualQd()
                stamp, safety, mode = state.getTimestamp(), state.getSafetyStatusBits(), state.getRobotMode()
        except RuntimeError:
            return None
        if any(len(values) != 6 for values in (*six, *joints)):
            return None
        pose, twist, force = (np.array(values) for values in six)
        return _ControllerState(
            stamp, safety, mode, pose, twist, force, Joints(np.array(joints[0]), np.array(joints[1]))
        )

    def _in_touch(self) -> bool:
        """Return whether no connection is lost.

        The interface for control connects again by itself, in a thread of its own, and must not be used meanwhile; the
        one for the state does not.
        """
        with self._reading:
            return bool(self._state.isConnected()) and bool(self._control.isConnected())

    def _command(self) -> None:
        """Send the next set-point: always one, since the controller's watchdog waits for it."""
        if self._fault is not None or self._pose is None:
            return
        with self._lock:
            if self._fault is not None or not self._in_touch():  # `_measure` names it
                return
            target, reference = self._target or self._pose, self._reference or self._pose
            if self._target is None:
                self._target = target
            self._reference = next_ = pose_towards(
                reference, target, self._config.speed / self._config.rate, self._config.turn_rate / self._config.rate
            )
            goal = [*next_.position, *rotvec_from_quat(next_.quaternion)]
            config = self._config
            try:
                sent = self._control.servoL(goal, 0.5, 0.5, 1.0 / config.rate, config.lookahead, config.gain)
            except RuntimeError as error:
                self._fail(f"the connection to the UR controller is lost: {error}; check its cable")
                return
        if not sent:
            self._fail(
                "the controller's program has ended: another client, the teach pendant or its watchdog stopped it; "
                "leave the pendant in remote control, and consent to start it again"
            )

    def _fail(self, fault: str) -> None:
        """Keep the first fault; a stop that the controller names explains one that is only felt."""
        if self._fault is None or self._fault.startswith(("the controller's program", "the UR controller at")):
            self._fault = fault

    # Connections.

    def _open_dashboard(self) -> Any:
        client = self._rtde.dashboard.DashboardClient(self._config.host)
        connected(self._calls, lambda: client.connect(round(1e3 * self._config.connect_timeout)), "dashboard")
        return client

    def _set_up(self) -> None:
        """Send what the controller forgets with its program: the tcp and the payload."""
        config = self._config
        if config.tcp:
            self._calls(lambda: self._control.setTcp(list(config.tcp)), "the tcp")
        if config.payload:
            load = config.payload, list(config.centre_of_mass)
            self._calls(lambda: self._control.setPayload(*load), "the payload")

    def _set_watchdog(self) -> None:
        self._calls(lambda: self._control.setWatchdog(self._config.watchdog), "its watchdog")

    def _reconnect_state(self) -> None:
        """Connect again to where the state of the controller comes from.

        Raises:
            ArmStoppedError: if the controller cannot be reached.
        """
        check_address(self._config.host, DASHBOARD_PORT, self._config.connect_timeout, what="UR controller")
        connected(self._calls, self._dashboard.disconnect, "dashboard")  # it does not notice that it is cut off
        connected(self._calls, lambda: self._dashboard.connect(round(1e3 * self._config.connect_timeout)), "dashboard")
        with self._reading:
            connected_again(self._calls, self._state, "state")

    def _reconnect_control(self) -> None:
        """Connect again to where commands go; the controller starts its program again with it.

        Raises:
            ArmStoppedError: if the controller cannot be reached, or does not start its program.
        """
        connected_again(self._calls, self._control, "control")
        end = time.monotonic() + self._config.connect_timeout
        while not self._control.isProgramRunning():
            if time.monotonic() > end:
                raise ArmStoppedError("the controller does not start its program again; switch it to remote control")
            time.sleep(0.02)

    def _unlock(self) -> None:
        """Unlock a protective stop, which the controller allows 5 s after it at the earliest."""
        end = time.monotonic() + UNLOCK_TIME
        while self._state.isProtectiveStopped() and time.monotonic() < end:
            with contextlib.suppress(RuntimeError):  # too early
                self._dashboard.closeSafetyPopup()
                self._dashboard.unlockProtectiveStop()
            time.sleep(0.1)

    def _await_fresh(self) -> None:
        """Wait for a pose that is measured now: an old one would be a motion.

        Raises:
            ArmStoppedError: if none comes.
        """
        began, end = self._host.wall.now(), time.monotonic() + self._config.connect_timeout
        while self._measured_at <= began:
            if time.monotonic() > end:
                raise ArmStoppedError(f"the UR controller at {self._config.host} is still silent; check its cable")
            time.sleep(0.005)

    def _standing(self) -> tuple[str, str, str, bool | None]:
        """Return its version, its mode, its safety status, and whether it is in remote control; None for a CB3."""
        client = self._dashboard
        version = client.polyscopeVersion()
        mode, safety = (text.rpartition(": ")[2].strip() for text in (client.robotmode(), client.safetystatus()))
        return version, mode, safety, None if " 3." in version else client.isInRemoteControl()

    def _model(self) -> str:
        """Return what model its arm is, if the robot file names one: controllers of old do not know the question."""
        return str(self._dashboard.getRobotModel()) if self._config.model else ""

    def _check_ready(self) -> None:
        """Check that the arm may be driven.

        Raises:
            ArmStoppedError: naming the mode that it is in, and the cure.
        """
        try:
            version, mode, safety, remote = self._standing()
            model = self._model()
        except RuntimeError as error:
            raise ArmStoppedError(f"the UR controller's dashboard does not answer: {error}") from error
        for check in (check_firmware(version, self._config.rate), check_model(model, self._config.model)):
            if check.severity == "fault":
                raise ArmStoppedError(f"{check.text}; {check.cure}")
        if safety not in ("NORMAL", "REDUCED"):
            raise ArmStoppedError(f"the UR controller's safety status is {safety}; {_CURES.get(safety, _CURES[''])}")
        if mode != "RUNNING":
            cure = "switch it on and release its brakes at the pendant"
            raise ArmStoppedError(f"the UR arm is in the mode {mode}; {cure}")
        if remote is False:
            raise ArmStoppedError("the UR controller is in local control; switch it to remote control at the pendant")


_CURES = {
    "PROTECTIVE_STOP": "free the arm, then consent to recover",
    "ROBOT_EMERGENCY_STOP": "turn the emergency stop button to release it, and switch the arm on at the pendant",
    "SYSTEM_EMERGENCY_STOP": "release the emergency stop of the cell, and switch the arm on at the pendant",
    "SAFEGUARD_STOP": "leave the safeguarded space and reset the safeguard",
    "": "clear it at the pendant",
}


def _check(config: UrConfig) -> None:
    if not config.host:
        raise ConfigError("host is missing; give the address of the UR controller, e.g. `host: 192.168.1.10`")
    if len(config.tcp) not in (0, 6):
        raise ConfigError(f"tcp has {len(config.tcp)} numbers; it is x, y, z and a rotation vector")
    if config.payload and len(config.centre_of_mass) != 3:
        raise ConfigError("payload needs centre_of_mass, three numbers: the x, y and z of its centre from the flange")
