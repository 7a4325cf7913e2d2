"""Time and memory of `robot-rl data verify` over a large store of episodes with images.

    python benchmarks/verify_time.py --episodes 3000 --folder DIR

An episode has 100 steps and two cameras of 128 x 128 x 3 with sensor noise: 10 MB, 8 MB on the disk. The store is made
in the folder, unless it is there, and stays. CPU seconds are of the command with all its processes; the peak memory is
that of its largest process.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from robot_rl.bench.store import CAMERAS, SIZE, STEPS, noisy_episode, with_id
from robot_rl.data.store.codec import encode
from robot_rl.data.store.layout import EPISODES, STORE_HEAD, file_name
from robot_rl.data.store.store import EpisodeStore


def make(path: Path, count: int) -> None:
    """Make the store; all episodes have the same images, which are compressed once."""
    content = encode(noisy_episode("episode-000000", STEPS, CAMERAS, SIZE)[0])
    EpisodeStore.create(path, {"task": "bench"}).close()
    for number in range(count):
        (path / EPISODES / file_name(number)).write_bytes(with_id(content, f"episode-{number:06d}"))


def main() -> int:
    """Print wall and CPU seconds and the peak memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    path = arguments.folder / f"store-{arguments.episodes}"
    if not (path / STORE_HEAD).exists():
        make(path, arguments.episodes)
    size = sum(file.stat().st_size for file in path.rglob("*.zip")) / 1e9
    begun, load = time.monotonic(), os.getloadavg()[0]
    command = [sys.executable, "-m", "robot_rl", "data", "verify", str(path), "--jobs", str(arguments.jobs)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    wall, used = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{done.stdout.strip()}; {size:.1f} GB, {arguments.jobs} processes: {wall:.0f} s, CPU {used.ru_utime:.0f} + "
        f"{used.ru_stime:.0f} s, at most {used.ru_maxrss / 1e3:.0f} MB a process; load {load:.0f} before, "
        f"{os.getloadavg()[0]:.0f} after"
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
