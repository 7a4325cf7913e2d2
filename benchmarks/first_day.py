"""The first day with an arm, timed: from a wheel in a clean environment to a learned motion (docs/arms.md).

    make dist
    python benchmarks/first_day.py --wheel dist/robot_rl-*.whl --arm ur --out DIR [--topics]

Types the six commands of the page one after the other, as they stand there, against a process that speaks the arm's
protocol (`tests/support/peers`); consents to each motion at once. Only the settings that connect the arm are added, the
answer to which arm it is, and with `--topics` the extra of ROS 2. `--max-age` replaces the ages in the robot's file
[s]: the arm shares the processors with what drives it. Prints a line of JSON for each command: its seconds, its exit
code, and the load of the machine; at last the success rate of the sixth.

The simulated arm runs at real-time priority where that is allowed, since a real arm does not wait for this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "support" / "peers"))

from franka_peer import FrankaPeer  # noqa: E402
from peer_process import PeerProcess, real_time  # noqa: E402
from so101_peer import write_calibration  # noqa: E402
from ur_peer import UrPeer  # noqa: E402

PAGE = REPOSITORY / "docs" / "arms.md"
EXTRAS = {"ur": "ur", "franka": "franka", "so101": "servo", "lerobot": "servo"}
CONSENT = "y\n" * 30


def commands_of_the_page() -> list[list[str]]:
    """Return the commands of the first day: the six, then the two that differ over topics."""
    section = PAGE.read_text(encoding="utf-8").partition("## The first day")[2]
    return [shlex.split(line, comments=True) for line in re.findall("^    (.+)$", section, re.M)[:8]]


@contextlib.contextmanager
def arm(kind: str, folder: Path, lerobot: str) -> Iterator[dict[str, Any]]:
    """Start a simulated arm; return the settings that connect it."""
    if kind in ("so101", "lerobot"):
        servos = PeerProcess("so101_peer.py", "feetech", folder / "tty")
        for line in ("support", "reset"):
            servos.tell(line)
        process, close = servos._process, servos.end
        settings: dict[str, Any] = {"port": str(folder / "tty"), "timeout": 0.3}
        if kind == "lerobot":
            write_calibration(folder / "one.json")
            own = [f"port={folder / 'tty'}", "id=one", f"calibration_dir={folder}"]
            settings = {"python": lerobot, "robot": "so101_follower", "settings": f"[{', '.join(own)}]"}
    elif kind == "ur":
        controller = UrPeer(f"127.34.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
        process, close = controller._process, controller.close
        settings = {"host": controller.address, "watchdog": 1, "max_silence": 0.5}
    else:
        box = FrankaPeer()
        process, close, settings = box._process, box.close, {"host": box.address}
    real_time(process)
    try:
        yield settings
    finally:
        close()


def typed(command: list[str], folder: Path) -> None:
    """Run a command to its end, and print what it took; its output goes to a file of its own.

    Raises:
        SystemExit: if it fails. The doctor may find faults of this machine.
    """
    name = " ".join(command[:3] if command[0] == "pip" else command[:2])
    began, load = time.monotonic(), os.getloadavg()[0]
    program = str(folder / "venv" / "bin" / command[0])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    log = folder / f"{len(list(folder.glob('*.log'))) + 1}-{name.replace(' ', '-')}.log"
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            env=environment,
            input=CONSENT,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    row = {"command": shlex.join(command), "seconds": round(time.monotonic() - began, 1), "exit": done.returncode}
    print(json.dumps(row | {"load": [load, os.getloadavg()[0]]}), flush=True)
    if done.returncode not in ((0, 1) if command[1] == "doctor" else (0,)):
        raise SystemExit(f"{name} failed; see {log}")


def main() -> None:
    """Type them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--arm", choices=list(EXTRAS), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--topics", action="store_true", help="train and evaluate through ROS 2")
    parser.add_argument("--lerobot", default="", metavar="PYTHON", help="the Python that has LeRobot")
    parser.add_argument("--max-age", type=float, default=0.0)
    arguments = parser.parse_args()
    folder: Path = arguments.out.resolve()
    folder.mkdir(parents=True)
    _, init, doctor, commission, *rest = commands_of_the_page()
    train, evaluate = rest[2:4] if arguments.topics else rest[:2]
    extra = f"ros,{EXTRAS[arguments.arm]}" if arguments.topics else EXTRAS[arguments.arm]
    with arm(arguments.arm, folder, arguments.lerobot) as settings:
        began = time.monotonic()
        venv.create(folder / "venv", with_pip=True)
        typed(["pip", "install", "--quiet", f"{arguments.wheel.resolve()}[{extra}]"], folder)
        given = [part for name, value in settings.items() for part in ("--setting", f"{name}={value}")]
        typed([*init, "--arm", arguments.arm, *given, "--no-questions"], folder)
        if arguments.max_age:
            file = folder / init[-1]
            tree = yaml.safe_load(file.read_text(encoding="utf-8"))
            tree["cell"]["max_age"] = tree["limits"]["max_age"] = arguments.max_age
            file.write_text(yaml.safe_dump(tree), encoding="utf-8")
        for command in (doctor, commission, train, evaluate):
            typed(command, folder)
        minutes = (time.monotonic() - began) / 60
    summaries = sorted((folder / "runs").rglob("*.json"), key=lambda path: path.stat().st_mtime)
    rates = {str(path.relative_to(folder)): facts for path in summaries if (facts := success_in(path)) is not None}
    print(json.dumps({"arm": arguments.arm, "topics": arguments.topics, "minutes": round(minutes, 1), **rates}))


def success_in(path: Path) -> float | None:
    """Return the success rate that a file of a run tells; None if it tells none."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return tree.get("success_rate") if isinstance(tree, dict) else None


if __name__ == "__main__":
    main()
