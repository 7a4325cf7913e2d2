"""Three ways to notice that a node is dead, while other programs keep all cores busy: false alarms, and time to notice.

    python benchmarks/liveliness.py --busy 20 --seconds 40 --work 0.003

A process publishes, as a node that works for `--work` seconds a hundred times a second. Another one counts, for a limit
of 0.25 s: gaps between heartbeats of the publisher's executor, those of a thread of its own, and reports of DDS, with
the liveliness asserted by heartbeats (manual by topic) and by DDS (automatic). At the end the publisher is killed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import rclpy
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import LivelinessPolicy, QoSProfile
from std_msgs.msg import Header

from ros_nodes.interface import qos

LIMIT = 0.25
PERIOD = 0.05


def profile(kind: LivelinessPolicy | None, lease: float) -> QoSProfile:
    """Return a profile with this liveliness."""
    made = QoSProfile(depth=10)
    if kind is not None:
        made.liveliness, made.liveliness_lease_duration = kind, Duration(seconds=lease)
    return made


KINDS: Mapping[str, LivelinessPolicy | None] = {
    "executor": None,
    "thread": None,
    "manual_by_topic": LivelinessPolicy.MANUAL_BY_TOPIC,
    "automatic": LivelinessPolicy.AUTOMATIC,
}


def publish(work: float) -> None:
    """Be the node that is watched."""
    rclpy.init(args=[])
    node = rclpy.create_node("watched")
    leases = {"manual_by_topic": LIMIT, "automatic": qos.OFFERED_LEASE}
    writers = {
        name: node.create_publisher(Header, name, profile(kind, leases.get(name, 0.0))) for name, kind in KINDS.items()
    }

    def compute() -> None:
        end = time.thread_time() + work
        while time.thread_time() < end:
            pass

    def beat() -> None:
        writers["executor"].publish(Header())
        writers["manual_by_topic"].publish(Header())

    def beat_beside() -> None:
        while True:
            writers["thread"].publish(Header())
            time.sleep(PERIOD)

    node.create_timer(0.01, compute)
    node.create_timer(PERIOD, beat)
    threading.Thread(target=beat_beside, daemon=True).start()
    rclpy.spin(node)


def watch(busy: int, seconds: float, work: float) -> None:
    """Count what would have been false alarms, then kill the publisher."""
    publisher = subprocess.Popen([sys.executable, __file__, "--publish", "--work", str(work)])
    rclpy.init(args=[])
    node = rclpy.create_node("watching")
    gaps: dict[str, list[float]] = {name: [] for name in KINDS}
    lost: dict[str, list[float]] = {name: [] for name in KINDS}
    last: dict[str, float] = {}

    def listen(name: str, kind: LivelinessPolicy | None) -> None:
        def take(message: Header) -> None:
            now = time.monotonic()
            if name in last:
                gaps[name].append(now - last[name])
            last[name] = now

        def change(status: object) -> None:
            if not status.alive_count:  # type: ignore[attr-defined]
                lost[name].append(time.monotonic())

        events = SubscriptionEventCallbacks(liveliness=change) if kind is not None else None
        node.create_subscription(Header, name, take, profile(kind, LIMIT), event_callbacks=events)

    def spin(duration: float) -> None:
        end = time.monotonic() + duration
        while time.monotonic() < end:
            rclpy.spin_once(node, timeout_sec=0.02)

    for name, kind in KINDS.items():
        listen(name, kind)
    spin(4.0)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    spin(4.0)
    for found in (*gaps.values(), *lost.values()):
        found.clear()
    spin(seconds)
    for process in others:
        process.kill()
    print(f"load {os.getloadavg()[0]:.1f}; false alarms in {seconds:g} s with a limit of {LIMIT} s:")
    for name, kind in KINDS.items():
        alarms = len(lost[name]) if kind is not None else sum(gap > LIMIT for gap in gaps[name])
        print(f"  {name}: {alarms}")
    spin(3.0)
    for found in lost.values():
        found.clear()
    killed = time.monotonic()
    publisher.kill()
    spin(2.0)
    found_after = {name: 1e3 * (times[0] - killed) for name, times in lost.items() if times}
    print("killed; noticed after", ", ".join(f"{after:.0f} ms ({name})" for name, after in found_after.items()))
    publisher.wait()


def main() -> None:
    """Run the benchmark as the arguments request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--work", type=float, default=0.003)
    parser.add_argument("--publish", action="store_true")
    arguments = parser.parse_args()
    if arguments.publish:
        publish(arguments.work)
    else:
        watch(arguments.busy, arguments.seconds, arguments.work)


if __name__ == "__main__":
    main()
