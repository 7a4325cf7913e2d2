"""Loss of frames from `camera_node` to a reader like `actor_node` in another process.

    python benchmarks/frame_loss.py --frames 10000 --cameras 3 --rate 60

The cameras are folders of numbered pictures, so that every frame that is missing is noticed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from ros_nodes.bringup.table import FASTDDS_PROFILE, table_folder

NUMBERS = 250
SIZE = 128
"""Height and width of the frames [px]."""


def main() -> int:
    """Print the lost frames, and the age of frames on arrival."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--cameras", type=int, default=3)
    parser.add_argument("--rate", type=float, default=60.0)
    arguments = parser.parse_args()
    os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", str(table_folder() / FASTDDS_PROFILE))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(NUMBERS):
            Image.fromarray(np.full((SIZE, SIZE, 3), number, np.uint8)).save(Path(folder) / f"{number:03d}.bmp")
        names = [f"camera{index}" for index in range(arguments.cameras)]
        sources = str([f"{name}=file:{folder}" for name in names])
        given = {"cameras": sources, "capture_rate": arguments.rate, "image_size": SIZE}
        flags = [part for key, value in given.items() for part in ("-p", f"{key}:={value}")]
        camera = subprocess.Popen([sys.executable, "-m", "ros_nodes.nodes.camera_node", "--ros-args", *flags])
        try:
            return read(names, arguments.frames)
        finally:
            camera.send_signal(signal.SIGINT)
            camera.wait()


def read(names: list[str], wanted: int) -> int:
    """Read this many frames, and return 1 if any was lost, else 0."""
    import rclpy

    from ros_nodes.interface import convert, qos, topics
    from ros_nodes.node.robot_node_base import RobotNode

    rclpy.init()
    node = RobotNode("reader")
    newest: dict[str, int] = {}
    lost, ages = 0, []

    def taker(name: str):  # noqa: ANN202
        def take(message: object) -> None:
            nonlocal lost
            number = int(convert.image_of(message)[0, 0, 0])
            if name in newest:
                lost += (number - newest[name] - 1) % NUMBERS
            newest[name] = number
            ages.append((node.wall.now() - convert.stamp_of(message.header.stamp)) / 1e6)

        return take

    for name in names:
        node.subscribe(topics.IMAGE, taker(name), qos.READING, camera=name)
    started = time.monotonic()
    while len(ages) < wanted:
        rclpy.spin_once(node)
    p50, p99 = np.percentile(ages, [50, 99])
    seconds = time.monotonic() - started
    print(f"{len(ages)} frames of {SIZE} x {SIZE} px in {seconds:.0f} s, {lost} lost")
    print(
        f"capture to arrival: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {max(ages):.1f} ms; load {os.getloadavg()[0]:.1f}"
    )
    node.destroy_node()
    rclpy.try_shutdown()
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
