"""Faults of arms, drawn from a seed, over every driver whose controller a process can stand in for.

    python benchmarks/arm_faults.py run --out DIR --faults 1000 --seed 0
    python benchmarks/arm_faults.py report --out DIR

The driver `lerobot` needs ROBOT_RL_LEROBOT_PYTHON, a Python that has LeRobot; without it, it is left out.

Each fault meets an arm that a random policy drives at 10 Hz by `RobotEnv`, with the episode recorded step by step; it
comes between two actions or in the middle of one. Measured are, from the fault on: how long the tool moved faster than
5 mm/s and how far it got, in the true positions of the peer and, where it has one, in its own time; whether the driver
named it; how long a person who consents as soon as the cause is gone waits until the arm follows again; and how many of
the steps that were played are not in the store. A disturbance (`late`, `lossy`, `second client`) is none to stop for:
the arm has to go on; a fault has to stop it. `run` appends one line of JSON for each fault and goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests" / "support" / "peers"))

from franka_peer import FrankaPeer  # noqa: E402
from peer_process import PeerProcess  # noqa: E402
from so101_peer import write_calibration  # noqa: E402
from ur_peer import UrPeer  # noqa: E402

from robot_rl.cell.robot_file import read_robot_file  # noqa: E402
from robot_rl.cell.robot_workcell import RobotWorkcell  # noqa: E402
from robot_rl.data.schema import EpisodeBuilder  # noqa: E402
from robot_rl.data.store.store import EpisodeStore  # noqa: E402
from robot_rl.env.robot_env import RobotEnv  # noqa: E402
from robot_rl.env.step_info import StepInfo  # noqa: E402
from robot_rl.env.task import WorkcellOptions  # noqa: E402
from robot_rl.errors import RobotLostError  # noqa: E402
from robot_rl.geometry import quat_conjugate, quat_rotate  # noqa: E402

TASK = "faults"
LEROBOT = os.environ.get("ROBOT_RL_LEROBOT_PYTHON", "")
STILL = 5e-3
"""Speed of the tool below which it stands [m/s]."""
WATCHED = 1.0
"""For how long the tool is watched after a fault [s]."""
SAMPLE = 0.02
"""Between two looks at the true position [s]."""
PATIENCE = 10.0
"""Longest time to name a fault, and to recover from it [s]."""
NEAR = 0.05
"""How far from where it began the tool may be when a fault comes [m]."""
REACH = 0.35
"""How far the box of the limits reaches from there [m]."""
BACK_STEPS = 30
"""With how many actions an arm that fell is brought back at most."""
STEPS_AFTER = 12
"""Actions that the policy goes on with after a fault, unless the episode ends before."""


@dataclass(frozen=True)
class Fault:
    """What is done to a peer.

    Attributes:
        inject: Line to the peer.
        mend: Line that ends the cause; empty if consent is all it needs.
        named: Parts of texts of which one has to be in the reason; none: the arm has to go on.
    """

    inject: str
    mend: str = ""
    named: tuple[str, ...] = ()


SERVO_FAULTS = {
    "cable cut": Fault("unplug", "plug", ("is gone", "there is no", "no servo answers")),
    "power off": Fault("power off", "power on", ("no servo answers",)),
    "reboot": Fault("reboot", "", ("torque", "power", "no servo answers", "restart")),
    "overload": Fault("trip {joint}", "", ("overload",)),
    "lag": Fault("lag 0.02", "lag 0"),
    "drop": Fault("drop 0.03", "drop 0"),
    "corrupt": Fault("corrupt 0.03", "corrupt 0"),
    "second client": Fault(""),
}
FAULTS = {
    "ur": {
        "cable cut": Fault("cut", "mend", ("silent", "connection", "program has ended")),
        "frozen state": Fault("freeze", "thaw", ("silent",)),
        "protective stop": Fault("protective", "", ("protective stop",)),
        "emergency stop": Fault("estop", "release", ("emergency stop",)),
        "program ended": Fault("stop-program", "", ("program has ended",)),
        "second client": Fault(""),
    },
    "franka": {
        "reflex": Fault("reflex", "", ("reflex",)),
        "emergency stop": Fault("estop", "release", ("stop is pressed",)),
    },
    "lerobot": {
        "cable cut": Fault("unplug", "plug", ("LeRobot's so101_follower: ",)),
        "power off": Fault("power off", "power on", ("LeRobot's so101_follower: ",)),
    }
    | {name: SERVO_FAULTS[name] for name in ("lag", "drop", "corrupt")},
    "so101 feetech": SERVO_FAULTS,
    "so101 dynamixel": SERVO_FAULTS,
}


class Peer:
    """A process that stands in for a controller, and what a robot file says to reach it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.settings: dict[str, Any]
        if name == "ur":
            self._process: Any = UrPeer(f"127.33.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}")
            self.settings = {"driver": "ur", "host": self._process.address, "watchdog": 2.0, "max_silence": 0.3}
        elif name == "franka":
            self._process = FrankaPeer()
            self.settings = {"driver": "franka", "host": self._process.address}
        else:
            link = folder / "tty"
            family = "feetech" if name == "lerobot" else name.split()[1]
            self._process = PeerProcess("so101_peer.py", family, link)
            self.settings = {"driver": "so101", "port": str(link), "servos": family, "timeout": 0.1}
            if name == "lerobot":
                write_calibration(folder / "one.json")
                own = [f"port={link}", "id=one", f"calibration_dir={folder}"]
                self.settings = {"driver": "lerobot", "python": LEROBOT, "settings": own}
                for line in ("support", "reset"):
                    self._process.tell(line)

    def tell(self, line: str) -> None:
        """Inject a fault, or end one."""
        if line:
            self._process.inject(line) if hasattr(self._process, "inject") else self._process.tell(line)

    def where(self) -> tuple[float, np.ndarray]:
        """Return its time [s] and the true position of the tool [m], shape (3,)."""
        if hasattr(self._process, "report"):
            report = self._process.report()
            return report["time"], np.array(report["position"])
        return time.monotonic(), np.array([float(number) for number in self._process.tell("where").split()])

    @property
    def counts(self) -> bool:
        """Whether it counts by itself how long and how far the tool moves after a fault."""
        return self.name == "ur"

    def stillness(self) -> dict[str, float]:
        """Return what it counted."""
        report = self._process.report()
        return {key: report[key] for key in ("still_after", "distance")}

    def close(self) -> None:
        """End it."""
        self._process.close() if hasattr(self._process, "close") else self._process.end()


class Track:
    """Watches the true position of the tool from now on, in a thread: only it talks to the peer meanwhile."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._looks = peer, [peer.where()]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        end = time.monotonic() + WATCHED
        while time.monotonic() < end:
            time.sleep(SAMPLE)
            self._looks.append(self._peer.where())

    def end(self) -> dict[str, float]:
        """Return after which time the tool stood [s], and how far it got [m]."""
        self._thread.join()
        if self._peer.counts:  # in its own time, from the fault on
            return self._peer.stillness()
        times, places = np.array([at for at, _ in self._looks]), np.array([place for _, place in self._looks])
        later = np.flatnonzero(np.append(True, np.diff(times) > 0))  # a peer that is slow tells the same twice
        times, places = times[later], places[later]
        speeds = np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(times)
        moving = np.flatnonzero(speeds > STILL)
        return {
            "still_after": float(times[moving[-1] + 1] - times[0]) if len(moving) else 0.0,
            "distance": float(np.linalg.norm(places - places[0], axis=1).max()),
        }


class FaultRun:
    """One arm that is driven, broken and recovered again and again.

    Args:
        peer: Its controller.
        folder: For its robot file.
        store: Of the episodes.
    """

    def __init__(self, peer: Peer, folder: Path, store: EpisodeStore) -> None:
        _, self._home = peer.where()
        file = folder / "robot.yaml"
        file.write_text(yaml.safe_dump(robot_file(peer.settings, self._home)))
        self.peer, self._store = peer, store
        self._cell = RobotWorkcell(read_robot_file(file, TASK))(TASK, WorkcellOptions())
        self._env = RobotEnv(self._cell)
        assert self._cell.stops is not None
        self._stops = self._cell.stops
        self._episode = EpisodeBuilder("")
        self._newest: StepInfo | None = None
        self._played, self._recorded = 0, False
        self._to_reset = np.array([1.0, 0.0, 0.0, 0.0])

    def inject(self, name: str, fault: Fault, rng: np.random.Generator, episode_id: str) -> dict[str, Any]:
        """Drive, let the fault happen, and return what was measured."""
        row: dict[str, Any] = {"driver": self.peer.name, "fault": name}
        before, delay = int(rng.integers(3, 9)), float(rng.uniform(0.0, 0.08))
        line = fault.inject.format(joint=int(rng.integers(1, 6)))
        refused, tracks = True, list[Track]()

        def inject() -> None:
            time.sleep(delay)  # so that it comes in the middle of the action
            self.peer.tell(line)
            tracks.append(Track(self.peer))

        while True:  # on a busy machine an arm may stop without a fault
            if self._moving(episode_id, before, rng):
                refused = self._second_client() if name == "second client" else True
                going, began = self._step(rng, inject), time.monotonic()
                if tracks:
                    break
            row["stopped_before"] = [*row.get("stopped_before", []), self._stops.stopped]
            self._resume(rng)
        for _ in range(STEPS_AFTER):
            going = going and self._step(rng)
        played = self._played
        row |= tracks[0].end()
        if fault.named:
            while not (reason := self._stops.stopped) and time.monotonic() < began + PATIENCE:
                time.sleep(SAMPLE)
            row |= {"reason": reason, "named": any(part in (reason or "") for part in fault.named)}
        else:
            row |= {"reason": self._stops.stopped, "went_on": self._stops.stopped is None and refused}
        self.peer.tell(fault.mend)
        self._finish()
        row |= self._resume(rng)
        found = next((row.length for row in self._store.summaries() if row.episode_id == episode_id), 0)
        return row | {"rows": played, "rows_lost": played - found}

    def close(self) -> None:
        """Let the arm go."""
        self._env.close()

    def _moving(self, episode_id: str, steps: int, rng: np.random.Generator) -> bool:
        """Bring an arm that fell back, then begin the episode and play so many steps; return whether it still moves."""
        self._store.abandon()
        try:
            self._begin(None, rng)
            while self._played < BACK_STEPS and self._away() > NEAR:
                if not self._step(rng):
                    return False
            self._begin(episode_id, rng)
        except RobotLostError:
            return False
        return all(self._step(rng) for _ in range(steps))

    def _begin(self, episode_id: str | None, rng: np.random.Generator) -> None:
        """Begin an episode; one without an id is not recorded."""
        start = self._env.start(int(rng.integers(2**31)), episode_id or "not recorded")
        assert start.T_base_reset is not None
        self._to_reset = quat_conjugate(start.T_base_reset.quaternion)  # actions are in the axes of the first pose
        self._episode, self._played, self._newest, self._recorded = EpisodeBuilder(episode_id or ""), 0, None, False
        if episode_id is not None:
            self._store.begin(episode_id)
            self._recorded = True

    def _away(self) -> float:
        return float(np.linalg.norm(self._cell.io.read().T_base_tcp.position - self._home))

    def _step(self, rng: np.random.Generator, meanwhile: Callable[[], None] | None = None) -> bool:
        """Play one action, at random and with a pull to where it began; return whether the episode goes on."""
        try:
            away = self._cell.io.read().T_base_tcp.position - self._home
            pull = quat_rotate(self._to_reset, away / 0.03)
            action = np.clip(rng.normal(0.0, 0.7, 3) - pull, -1.0, 1.0).astype(np.float32)
            info = self._env.advance(action, meanwhile=meanwhile)
        except RobotLostError:
            return False
        self._played += 1
        if self._recorded:
            self._store.record(info.recorded)
            self._episode.add(info.recorded)
            self._newest = info
        return not (info.recorded.terminated or info.recorded.truncated)

    def _finish(self) -> None:
        """End the episode as a run does: cut where the arm did not answer, and stored."""
        if self._recorded and self._newest is not None:
            self._episode.cut()
            self._store.append(self._episode.finish(self._newest.observation, self._newest.stamp_obs))
        self._recorded = False

    def _resume(self, rng: np.random.Generator) -> dict[str, Any]:
        """Consent, and play two steps; consent again where the cause is still there."""
        began = time.monotonic()
        while True:
            try:
                self._stops.recover()
                self._begin(None, rng)
                if self._step(rng) and self._step(rng):
                    return {"resumed_after": time.monotonic() - began}
                why = self._stops.stopped or "it does not answer"
            except RobotLostError as error:
                why = str(error)
            if time.monotonic() > began + PATIENCE:
                return {"resumed_after": None, "why_not": why}
            time.sleep(0.1)

    def _second_client(self) -> bool:
        """Let another process connect; return whether it was refused."""
        settings = {key: value for key, value in self.peer.settings.items() if key != "driver"}
        program = SECOND.format(driver=self.peer.settings["driver"], settings=settings)
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        return other.returncode != 0 and "program" in other.stderr.splitlines()[-1]


SECOND = """
from robot_rl.arm.driver import find_driver
from robot_rl.clock import WallClock
class Host:
    wall, max_age, problem = WallClock(), 0.5, print
kind = find_driver({driver!r})
arm = kind(kind.Config(**{settings!r}), Host())
arm.start(lambda *measured: None)
"""


def robot_file(arm: dict[str, Any], home: np.ndarray) -> dict[str, Any]:
    """Return a robot file for an arm whose tool is at home [m], with room around it."""
    return {
        "arm": arm,
        "limits": {"box_low": (home - REACH).tolist(), "box_high": (home + REACH).tolist(), "max_age": 0.5},
        "cell": {"judge": "goal", "scene": "none", "max_age": 0.5, "forces": "unmeasured"},
        "goal": {"tolerance": 1e-6},  # so that no episode ends before its fault
        "task": {
            "instruction": "move",
            "max_steps": 100,
            "control_period": 0.1,
            "workspace": {"low": [-0.1] * 3, "high": [0.1] * 3, "yaw": 0.1, "tilt": 0.1},
            "action_axes": ["x", "y", "z"],
        },
    }


def drawn(driver: str, seed: int, number: int) -> tuple[str, Fault, np.random.Generator]:
    """Return a driver's fault of that number, and what draws everything else about it."""
    rng = np.random.default_rng([seed, number, *driver.encode()])
    name = list(FAULTS[driver])[int(rng.integers(len(FAULTS[driver])))]
    return name, FAULTS[driver][name], rng


def run(arguments: argparse.Namespace) -> None:
    """Inject what is missing; the arm and its peer are opened anew after a fault that was not recovered from."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "faults.jsonl"
    done = rows_of(file)
    for place, driver in enumerate(arguments.drivers):
        share = len(range(place, arguments.faults, len(arguments.drivers)))
        numbers = [n for n in range(share) if (driver, n) not in {(row["driver"], row["number"]) for row in done}]
        with contextlib.ExitStack() as opened:
            arm: FaultRun | None = None
            for number in numbers:
                if arm is None:
                    arm = opened.enter_context(opened_arm(driver))
                name, fault, rng = drawn(driver, arguments.seed, number)
                row = arm.inject(name, fault, rng, f"fault-{number}") | {"number": number, "seed": arguments.seed}
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
                if row["resumed_after"] is None:
                    opened.close()
                    arm = None


@contextlib.contextmanager
def opened_arm(driver: str) -> Iterator[FaultRun]:
    """Start a peer and the arm on it, and end both in the end."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        peer = Peer(driver, folder)
        stack.callback(peer.close)
        arm = FaultRun(peer, folder, stack.enter_context(EpisodeStore.create(folder / "episodes")))
        stack.callback(arm.close)
        yield arm


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Return what was measured so far."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def report(arguments: argparse.Namespace) -> None:
    """Print a table of all faults by driver, and each that went wrong."""
    rows = rows_of(arguments.out / "faults.jsonl")
    print("| driver | fault | n | stands after, median (largest) | gets, median (largest) | named, or went on "
          "| resumed after, median (largest) | rows lost |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for driver in sorted({row["driver"] for row in rows}):
        for fault in FAULTS[driver]:
            some = [row for row in rows if (row["driver"], row["fault"]) == (driver, fault)]
            if not some:
                continue
            right = sum(row.get("named", row.get("went_on")) for row in some)
            stops = "named" in some[0]
            still = _spread([row["still_after"] for row in some], "s", 2) if stops else ""
            way = _spread([1e3 * row["distance"] for row in some], "mm", 0) if stops else ""
            resumed = _spread([row["resumed_after"] for row in some if row["resumed_after"] is not None], "s", 1)
            lost, played = sum(row["rows_lost"] for row in some), sum(row["rows"] for row in some)
            print(f"| {driver} | {fault} | {len(some)} | {still} | {way} | {right} | {resumed} | {lost} of {played} |")
    wrong = [
        row
        for row in rows
        if not row.get("named", row.get("went_on")) or row["resumed_after"] is None or row["rows_lost"]
    ]
    print(f"\n{len(rows)} faults, {len(wrong)} of them not as they should be")
    for row in wrong:
        print(json.dumps(row))


def _spread(values: list[float], unit: str, digits: int) -> str:
    if not values:
        return "never"
    return f"{np.median(values):.{digits}f} {unit} ({max(values):.{digits}f} {unit})"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    do = commands.add_parser("run")
    do.add_argument("--out", type=Path, required=True)
    do.add_argument("--faults", type=int, default=1000)
    do.add_argument("--seed", type=int, default=0)
    do.add_argument(
        "--drivers", nargs="+", choices=list(FAULTS), default=[name for name in FAULTS if name != "lerobot" or LEROBOT]
    )
    do.set_defaults(command=run)
    show = commands.add_parser("report")
    show.add_argument("--out", type=Path, required=True)
    show.set_defaults(command=report)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
