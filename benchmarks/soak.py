"""A training in simulated real time under random faults, watched by an observer of the arm that nobody else listens to.

    python benchmarks/soak.py --out DIR --minutes 120 --seed 0

Faults: nodes killed and paused, rogue writers (set-points outside the box, stamps in the future), emergency
stops, a deactivated safety node, a misspelt parameter. Unsafe are: a tcp more than 2 mm outside the box, a speed above
1.3 times the limit, and motion more than 0.3 s after `safety/stopped` gave a reason, by the arm's own time, which
stands still while its process is paused. A fault is named if that topic, the diagnostics or the line of a process
contains the expected text. At the end, recorded steps are compared with those that the learner has. The seed determines
faults and waits.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from pauses import GIVEN_UP, LIMIT, Observer, Training
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_io import Command
from robot_rl.geometry import Pose
from robot_rl.learn.checkpoint import load_checkpoint
from ros_nodes.bringup.supervisor import PROFILE_VARIABLE
from ros_nodes.bringup.table import FASTDDS_PROFILE, table_folder
from ros_nodes.interface import convert, qos, topics

BOX_MARGIN, SPEED_FACTOR, TO_STAND = 0.002, 1.3, 0.3
"""[m], of the speed limit, and from the reason to standing still [s]."""
STILL = 0.02
"""A tcp that is slower stands still [m/s]."""
LINES = 30
"""How much is shown of what nodes said since a fault after which the graph is not whole for long."""
PAUSED = ("sim", "safety", "teleop", "recorder", "learner", "actor")
FAULTS = ("kill", "pause", "rogue_command", "rogue_safe_command", "second_pose", "second_wrench", "estop", "deactivate")


class Watch(Observer):
    """Compares what is measured with the limits, and keeps what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.limits, self.unsafe, self.said = CommandLimits(), Counter[str](), list[str]()
        self.poses, self.fastest, self.farthest, self.last_motion = 0, 0.0, 0.0, 0.0
        self.arm_paused_until = 0.0
        self._held_since: float | None = None
        self._moved_while_held: list[float] = []
        self.create_subscription(PoseStamped, topics.POSE.name, self._take_pose, qos.READING)
        self.create_subscription(TwistStamped, topics.TWIST.name, self._take_twist, qos.READING)
        self.create_subscription(DiagnosticArray, topics.DIAGNOSTICS.name, self._take_diagnostics, qos.EVENT)
        self.estop = self.create_publisher(Bool, topics.ESTOP.name, qos.EVENT)
        self.release = self.create_client(Trigger, topics.RELEASE_SERVICE[0])
        self.recover = self.create_client(Trigger, topics.RECOVER_SERVICE[0])
        self.change = self.create_client(ChangeState, "safety_node/change_state")

    def _take_stopped(self, message: String) -> None:
        super()._take_stopped(message)
        now = time.time()
        if message.data:
            self.said.append(message.data)
            self._held_since = now if self._held_since is None else self._held_since
        else:
            # The end of a hold arrives after the first motion: that of the last moment is not held against it.
            self.unsafe["moved while held"] += sum(at < now - TO_STAND for at in self._moved_while_held)
            self._moved_while_held.clear()
            self._held_since = None

    def _take_pose(self, message: PoseStamped) -> None:
        position = convert.pose_of(message.pose).position
        low, high = np.array(self.limits.box_low), np.array(self.limits.box_high)
        outside = float(np.maximum(np.maximum(low - position, position - high), 0.0).max())
        self.poses, self.farthest = self.poses + 1, max(self.farthest, outside)
        self.unsafe["outside the box"] += outside > BOX_MARGIN

    def _take_twist(self, message: TwistStamped) -> None:
        speed = float(np.linalg.norm(convert.twist_of(message)[:3]))
        at = convert.stamp_of(message.header.stamp) / NS_PER_S
        self.fastest = max(self.fastest, speed)
        self.unsafe["too fast"] += speed > SPEED_FACTOR * self.limits.max_speed
        if speed > STILL:
            self.last_motion = at
            if self._held_since is not None and at > max(self._held_since, self.arm_paused_until) + TO_STAND:
                self._moved_while_held.append(at)

    def _take_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.said += [status.message, *(value.key for value in status.values if value.key.startswith("refused"))]


class Soak:
    """Draws faults, and puts them in and takes them out again."""

    def __init__(self, training: Training, watch: Watch, rng: random.Random) -> None:
        self.training, self.watch, self.rng = training, watch, rng

    def spin(self, seconds: float) -> None:
        """Watch for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            rclpy.spin_once(self.watch, timeout_sec=left)

    def call(self, client: Any, request: Any) -> None:
        """Call a service whose node may just be dead, and go on after a second at the latest."""
        future, end = client.call_async(request), time.monotonic() + 1.0
        while not future.done() and time.monotonic() < end:
            self.spin(0.02)

    def fault(self, kind: str) -> tuple[str, str]:
        """Cause a fault and end it; return what it was and a text that has to be said."""
        if kind in ("kill", "pause"):
            name = self.rng.choice(PAUSED)
            process, seconds = self.training.pid(name), self.rng.uniform(2.0, 5.0)
            if kind == "kill":
                os.kill(process, signal.SIGKILL)
                return f"kill {name}", f"[{name}] has ended with SIGKILL"
            os.kill(process, signal.SIGSTOP)
            self.spin(seconds)
            os.kill(process, signal.SIGCONT)
            self.watch.arm_paused_until = time.time() if name == "sim" else self.watch.arm_paused_until
            return f"pause {name} {seconds:.1f} s", "this process has stood still for"
        if kind == "estop":
            self.watch.estop.publish(Bool(data=True))
            self.spin(1.5)
            return kind, "emergency stop"
        if kind == "deactivate":
            for number in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE):
                self.call(self.watch.change, ChangeState.Request(transition=Transition(id=number)))
                self.spin(1.5)
            return kind, "safety_node is inactive"
        rogue = {"rogue_command": topics.COMMAND, "rogue_safe_command": topics.SAFE_COMMAND}
        topic = rogue.get(kind, topics.POSE if kind == "second_pose" else topics.WRENCH)
        node = rclpy.create_node("rogue")
        publisher = node.create_publisher(topic.type, topic.name, topic.qos)
        for _ in range(30):
            if kind in rogue:
                ahead = 60 * NS_PER_S if kind == "rogue_command" and self.rng.random() < 0.5 else 0
                aim = Pose(np.array([0.9, self.rng.uniform(-0.6, 0.6), 0.3]), np.array([0.0, 1.0, 0.0, 0.0]))
                publisher.publish(convert.command_message(Command(time.time_ns() + ahead, 0.3, aim)))
            self.spin(0.05)
        node.destroy_node()
        return kind, "rogue"

    def heal(self, since: float) -> float | None:
        """Release what is latched until the graph is whole; return how long that took [s]."""
        while time.monotonic() - since < GIVEN_UP:
            self.spin(0.2)
            if self.watch.whole_since(since):
                return time.monotonic() - since
            if "emergency stop" in self.watch.stopped or "outside the box" in self.watch.stopped:
                self.call(self.watch.release, Trigger.Request())
            if topics.ARM_FAULT in self.watch.stopped:
                self.call(self.watch.recover, Trigger.Request())
            if "inactive" in self.watch.stopped:
                activate = Transition(id=Transition.TRANSITION_ACTIVATE)
                self.call(self.watch.change, ChangeState.Request(transition=activate))
        return None


def lost_rows(run: Path) -> tuple[int, int]:
    """Return how many recorded steps the learner's checkpoint has not, and how many are recorded."""
    with EpisodeStore.open(run / "episodes") as store:
        recorded = sum(row.length for row in store.summaries() if row.episode_id.startswith("episode-"))
    rows = load_checkpoint(run / "checkpoint.pt")["learner"]["online"]["episode_rows"]
    return recorded - int(sum(rows[rows > 1] - 1)), recorded


def refused_typo() -> bool:
    """Return whether a misspelt limit ends the node with the near name."""
    command = [sys.executable, "-m", "ros_nodes.nodes.safety_node", "--ros-args", "-p", "max_sped:=0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode == 2 and "max_speed" in done.stderr


def main() -> None:
    """Run the benchmark as the arguments request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=FAULTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domain", type=int, default=94)
    arguments = parser.parse_args()
    os.environ.update(ROS_DOMAIN_ID=str(arguments.domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    os.environ.setdefault(PROFILE_VARIABLE, str(table_folder() / FASTDDS_PROFILE))
    rng = random.Random(arguments.seed)
    typo = refused_typo()
    training = Training(arguments.out, arguments.domain, arguments.seed)
    rclpy.init(args=[])
    watch = Watch()
    soak = Soak(training, watch, rng)
    count, unnamed, slow = 0, 0, 0
    try:
        if soak.heal(time.monotonic()) is None:
            raise SystemExit("the training does not start:\n" + "".join(training.lines[-20:]))
        end = time.monotonic() + 60.0 * arguments.minutes
        while time.monotonic() < end:
            soak.spin(rng.uniform(2.0, 6.0))
            count, line = count + 1, len(training.lines)
            watch.said.clear()
            began = time.monotonic()
            what, expected = soak.fault(rng.choice(arguments.faults))
            took = soak.heal(time.monotonic())
            soak.spin(1.2)  # diagnostics come once a second
            named = any(expected in text for text in [*watch.said, *training.lines[line:]])
            unnamed += not named
            slow += took is None or took > LIMIT
            whole = "NOT whole: " + watch.missing(began) if took is None else f"whole after {took:.1f} s"
            print(f"{count} {what}: {'named' if named else 'NOT NAMED'}, {whole}, {dict(+watch.unsafe)}", flush=True)
            if took is None or took > LIMIT:
                print("".join("    " + text for text in training.lines[line:][-LINES:]), end="", flush=True)
            if took is None:
                break
    finally:
        training.process.send_signal(signal.SIGINT)
        training.process.wait(60)
    lost, recorded = lost_rows(arguments.out)
    print(
        f"{count} faults (seed {arguments.seed}), load {os.getloadavg()[0]:.1f}: {unnamed} not named, {slow} over 10 s"
    )
    print(f"typing error refused: {typo}; {recorded} steps recorded, {lost} of them not at the learner")
    print(f"unsafe: {dict(+watch.unsafe) or 'none'} of {watch.poses} poses", end="; ")
    print(f"farthest outside {1e3 * watch.farthest:.1f} mm, fastest {watch.fastest:.3f} m/s")


if __name__ == "__main__":
    main()
