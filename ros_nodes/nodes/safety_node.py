"""Between whoever commands and the arm, or several, in a process of its own: `CommandGuard` over topics.

Every message on `command` leads to exactly one on `safe_command`: the command within its limits, or a stop. Without
the required nodes, with two nodes that command or measure, or after an emergency stop, only stops go out. If one of
several arms must hold, all hold; arms that could meet are kept apart.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robot_rl.cell.cell_guards import guards_for
from robot_rl.cell.latch_file import LatchFile
from robot_rl.config.command_limits import LOWERABLE, CommandLimits
from robot_rl.config.nodes import SafetyNodeConfig
from robot_rl.env.command_limits import LATCHED, CommandGuard
from robot_rl.errors import ConfigError, RobotRLError, RunDirectoryError
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.managed import ManagedNode
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.required_node import RequiredNode
from ros_nodes.node.robot_node_base import LIMIT
from ros_nodes.node.spin import run

WATCH_RATE = 50.0
"""How often it looks for what is missing [Hz]."""
SOLE = (topics.COMMAND, topics.SAFE_COMMAND)
"""Topics with one writer, as are those with measurements: two sources of either contradict each other."""
OF_ARM = "robot_node"
"""Among the required nodes, stands for the one of each arm, e.g. `left/robot_node`."""
REFUSAL_SHOWN = 0.5
"""How long after a refused command `safety/stopped` holds the reason [s], unless one passes before."""


class SafetyNode(ManagedNode):
    """The node; its parameters are those of `SafetyNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("safety_node", **options)
        self.config = declare(self, SafetyNodeConfig)
        config = self.config
        guards = guards_for(config, config.arms, config.task_file, config.arm_limits)
        self.guard, arms = guards.whole, guards.each
        self._latch = LatchFile(Path(config.latch_file).expanduser() if config.latch_file else None)
        if self._latch.reason is not None:
            self.guard.trip(self._latch.reason)
            self.get_logger().warning("an emergency stop was latched before this process was started, and still is")
        self._each, self._max_age = arms, min(guard.limits.max_age for guard in arms.values())
        if guards.arms and not guards.kept_apart:
            self.get_logger().warning("nothing here keeps the arms apart: task_file is not given, or has no keep_out")
        refuse_changes(self, SafetyNodeConfig, {name: partial(self._lower, name) for name in LOWERABLE})
        self._silent: str | None = None  # who was silent when it last looked
        self._stopped: str | None = None
        self._refusal: tuple[float, str] | None = None  # when and why the newest command was refused
        self._newest = 0  # stamp of the newest command or stop that it heard [ns]
        self._passed = self._limited = self._refused = 0
        leases = (self.config.liveliness_lease, self.config.heartbeat_timeout)
        named = [topics.below(arm, OF_ARM) for arm in arms]
        needed = [n for name in self.config.required_nodes for n in (named if name == OF_ARM else [name])]
        self._required = [RequiredNode(self, name, *leases) for name in needed]
        # What is measured comes before what is commanded, also where both wait for the executor.
        reading = qos.LOCKSTEP_READING if self.config.lockstep else qos.READING
        for arm, guard in arms.items():
            self.subscribe(topics.POSE.of_arm(arm), partial(self._take_pose, guard), reading)
            self.subscribe(topics.WRENCH.of_arm(arm), partial(self._take_wrench, guard), reading)
            if guard.needs_twist:
                self.subscribe(topics.TWIST.of_arm(arm), partial(self._take_twist, guard), reading)
        self.subscribe(topics.ESTOP, self._take_estop)
        self._safe = self.publisher(topics.SAFE_COMMAND.of_arms(guards.arms))
        self._state = self.publisher(topics.STOPPED)
        self._set_points = {arm: self.publisher(topics.SET_POINT.of_arm(arm)) for arm in arms}
        for arm, guard in arms.items():
            box = convert.box_message(self.wall.now(), guard.limits.box_low, guard.limits.box_high)
            self.publisher(topics.BOX.of_arm(arm)).publish(box)
        self.subscribe(topics.COMMAND.of_arms(guards.arms), self._take_command)
        sole = [*SOLE, *(topic.of_arm(arm) for arm in arms for topic in topics.MEASURED)]
        self._sole = [self.sole_writer(topic) for topic in sole]
        self.create_service(Trigger, topics.STOP_SERVICE[0], self._on_stop)
        self.create_service(Trigger, topics.RELEASE_SERVICE[0], self._on_release)
        self.create_service(Trigger, topics.MAY_MOVE_SERVICE[0], self._on_may_move)
        self._silent = self._unheard()
        self.timer(1.0 / WATCH_RATE, self._watch)
        self.manage(start_inactive=self.config.start_inactive)
        self._stopped = self._reason()
        self._say(self._stopped or "")
        self.get_logger().info("limits commands, but is no certified safety function: keep the robot's own")

    def health(self) -> tuple[bytes, str]:
        """Whether the arm may move."""
        if self._stopped:
            return DiagnosticStatus.ERROR, self._stopped
        if self.guard.inwards_only:
            return DiagnosticStatus.WARN, self._permission()
        return DiagnosticStatus.OK, self._permission()

    def facts(self) -> Mapping[str, object]:
        """Return the number of commands by their result, and the limits in force."""
        limits = {
            f"{LIMIT}{f'{arm}.' if arm else ''}{field.name}": getattr(guard.limits, field.name)
            for arm, guard in self._each.items()
            for field in fields(CommandLimits)
        }
        return {"passed": self._passed, "limited": self._limited, "refused": self._refused} | limits

    def switched(self, active: bool) -> None:
        """Stop the arm; what was commanded before a transition does not count after it."""
        now = self._latest()
        self.guard.stop(now)
        if not active:
            self._stop(now)
            self._announce(self._reason())

    def _lower(self, name: str, value: float) -> None:
        """Lower a limit while the arm is driven; a higher one needs a restart, which somebody decides on."""
        present = getattr(self.config, name)
        if value > present:
            raise ConfigError(f"{name} is {present:g} and may only be lowered, to above 0, not set to {value:g}")
        self.guard.lower(name, value)
        changed: dict[str, Any] = {name: float(value)}
        self.config = replace(self.config, **changed)
        self.get_logger().info(f"{name} is {value:g} from now on")

    # What it hears.

    def _take_pose(self, guard: CommandGuard, message: PoseStamped) -> None:
        stamp = convert.stamp_of(message.header.stamp)
        guard.measured_pose(convert.pose_of(message.pose), stamp, self._machine_time())

    def _take_wrench(self, guard: CommandGuard, message: WrenchStamped) -> None:
        stamp = convert.stamp_of(message.header.stamp)
        guard.measured_wrench(convert.wrench_of(message), stamp, self._machine_time())

    def _take_twist(self, guard: CommandGuard, message: TwistStamped) -> None:
        stamp = convert.stamp_of(message.header.stamp)
        guard.measured_twist(convert.twist_of(message), stamp, self._machine_time())

    def _take_estop(self, message: Bool) -> None:
        if message.data:
            self._trip("asked for on the topic estop")

    def _take_command(self, message: MultiDOFJointTrajectory) -> None:
        stamp = convert.stamp_of(message.header.stamp)
        self._newest = max(self._newest, stamp)
        if (reason := self._reason(stamp)) is not None:
            self._announce(reason)
            self._refuse(stamp, reason)
            return
        try:
            command = convert.command_of(message)
            if command is None:
                self._stop(self._not_ahead(stamp))
                return
            guarded = self.guard.check(command, self._now(stamp))
        except RobotRLError as error:
            self._refusal = (time.monotonic(), f"command refused: {error}")
            self._announce(None)
            self._refuse(stamp, str(error))
            return
        self._refusal = None
        self._announce(None)
        self._passed += 1
        self._limited += bool(guarded.limited)
        if guarded.limited:
            self.get_logger().warning(f"command limited: {', '.join(guarded.limited)}", throttle_duration_sec=1.0)
        self._safe.publish(convert.command_message(guarded.command))
        for arm, point in guarded.command.set_points.items():
            self._set_points[arm].publish(convert.pose_message(guarded.command.stamp, point.T_base_target))

    def _refuse(self, stamp: int, reason: str) -> None:
        self._refused += 1
        self._stop(self._not_ahead(stamp))
        self.problem(f"command refused: {reason}")

    # What it does.

    def _watch(self) -> None:
        """Stop the arm when something is missing, rather than with the next command."""
        before, self._silent = self._silent, self._unheard()
        if self._silent is not None and before is None:
            return  # once more: if this process was held up, their signs of life are waiting to be read
        reason = self._reason()
        if reason is not None and self._stopped is None:
            self._stop(self._latest())
        self._announce(reason)
        try:
            self._latch.follow(self.guard.tripped)  # last: the disk may be slow, and the stop does not wait for it
        except RunDirectoryError as error:
            self.problem(f"a latched stop would not outlive this process: {error}")

    def _announce(self, reason: str | None) -> None:
        """Publish why the arm may not move, or that it may, when that changes."""
        if reason is None and self._refusal is not None and time.monotonic() - self._refusal[0] < REFUSAL_SHOWN:
            reason = self._refusal[1]
        if _kind(reason) != _kind(self._stopped):
            self._say(reason or "")
            if reason is not None:
                self.get_logger().error(f"the arm holds: {reason}", throttle_duration_sec=1.0)
        self._stopped = reason

    def _reason(self, stamp: int | None = None) -> str | None:
        """Why the arm may not move now; None if it may."""
        if self.guard.tripped is not None:
            return f"{LATCHED}{self.guard.tripped}; release it by hand"
        if (inactive := self.inactive()) is not None:
            return inactive
        for topic in self._sole:
            if (conflict := topic.conflict()) is not None:
                return conflict
        if self.config.lockstep and stamp is None:
            return None  # time waits for whoever is late
        return self._silent or self.time_fault(self._max_age) or self.guard.stale(self._now(stamp))

    def _unheard(self) -> str | None:
        """Which required node is silent. Where time waits for them, they may be."""
        if self.config.lockstep:
            return None
        return next((fault for fault in (one.fault() for one in self._required) if fault is not None), None)

    def _now(self, stamp: int | None) -> int:
        """Time [ns]. In lockstep it is known from the newest command: it waits for nobody else."""
        return stamp if self.config.lockstep and stamp is not None else self.wall.now()

    def _latest(self) -> int:
        """Time [ns] of a stop of its own accord; in lockstep that of the newest command.

        A reader keeps the newest message only, and such a stop may displace the answer to that command, without which
        the simulation does not go on.
        """
        return self._newest if self.config.lockstep else self.wall.now()

    def _not_ahead(self, stamp: int) -> int:
        """Return the stamp [ns], or now if it is of the future: a stop with such a stamp would refuse all commands."""
        return min(stamp, self._now(stamp))

    def _machine_time(self) -> int | None:
        """Time [ns], with which stamps can be compared; None in lockstep."""
        return None if self.config.lockstep else self.wall.now()

    def _stop(self, stamp: int) -> None:
        self.guard.stop(stamp)
        self._safe.publish(convert.stop_message(stamp))

    def _trip(self, reason: str) -> None:
        self.guard.trip(reason)
        self._watch()

    def _say(self, reason: str) -> None:
        self._state.publish(String(data=reason))

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        self._trip("asked for by the service safety/estop")
        response.success, response.message = True, "latched; release it with safety/release"
        return response

    def _on_release(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        self.guard.release()
        return self._on_may_move(Trigger.Request(), response)

    def _on_may_move(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        del request  # holds nothing
        self._watch()
        response.success = self._stopped is None
        response.message = self._stopped or self._permission()
        return response

    def _permission(self) -> str:
        if not self.guard.inwards_only:
            return "the arm may move"
        return f"the tcp is {1e3 * self.guard.outside:.0f} mm outside the box: it may move inwards only"


def _kind(reason: str | None) -> str | None:
    """Return a reason without its figures, which change all the time."""
    return None if reason is None else re.sub(r"[\d.]+", "", reason)


def main() -> int:
    """Run the node."""
    return run(SafetyNode)


if __name__ == "__main__":
    sys.exit(main())
