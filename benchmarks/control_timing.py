"""Regularity of control with a driver in this process while a learner trains beside it.

    PYTHONPATH=.:tests/support/peers python benchmarks/control_timing.py --out DIR [--arm so101|ur] [--steps 1500]

Trains a first task (`judge: goal`) on an arm of the tests, without ROS, and prints JSON:

- `period_error_ms` between the commands of an episode, and `observation_to_action_ms`, of all steps while the learner
  learns; demonstrations and evaluation are left out;
- `late_cycles`: of the driver's own cycles, how many began a period or more late;
- `load`: of the machine, at the start and at the end; what else runs there counts.

The simulated arm runs at real-time priority where that is allowed, since a real arm does not wait for this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from peer_process import PeerProcess, real_time
from ur_peer import UrPeer

from robot_rl.arm.own_checks import ChecksItself
from robot_rl.cell.robot_file import RobotFile, read_robot_file
from robot_rl.cell.robot_place import robot_deployment
from robot_rl.config.load import load_config
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.run.control_timing import MS_PER_NS, spread
from robot_rl.run.train import train
from robot_rl.system.process import one_thread

TASK, DEMONSTRATIONS = "touch", 5
ADDRESS = "127.77.3.1"
"""Of the simulated controller."""
FACTS: dict[str, Any] = {
    "instruction": "bring the tool to the goal",
    "max_steps": 50,
    "control_period": 0.1,
    "workspace": {"low": [-0.06] * 3, "high": [0.06] * 3, "yaw": 0.3, "tilt": 0.3},
    "action_axes": ["x", "y", "z"],
}
SO101 = {
    "limits": {"box_low": [0.05, -0.2, -0.2], "box_high": [0.4, 0.2, 0.25], "max_speed": 0.2, "max_age": 0.5},
    "start": {"position": [0.21, 0.0, 0.06], "quaternion": [0.1843, 0.0239, 0.9826, 0.0045]},
}
UR = {
    "limits": {"box_low": [-0.7, -0.4, 0.2], "box_high": [-0.2, 0.2, 0.7], "max_speed": 0.2, "max_age": 0.5},
    "start": {"position": [-0.49, -0.13, 0.49], "quaternion": [0.0, 0.7071, 0.7071, 0.0]},
}


@dataclass
class Watched:
    """A workcell whose driver tells its late cycles before it is closed."""

    make: Callable[[str, WorkcellOptions], Workcell]
    late: list[str] = field(default_factory=list)

    def __call__(self, task: str, options: WorkcellOptions) -> Workcell:
        """Open it."""
        cell = self.make(task, options)

        def close() -> None:
            driver = cell.io._driver  # type: ignore[attr-defined]
            if isinstance(driver, ChecksItself):
                self.late += [check.text for check in driver.own_checks() if check.name == "late cycles"]
            cell.close()

        return replace(cell, close=close)


@contextlib.contextmanager
def arm(kind: str, out: Path) -> Iterator[RobotFile]:
    """Start a simulated arm; return the robot file for it."""
    if kind == "so101":
        peer = PeerProcess("so101_peer.py", "feetech", out / "tty")
        for line in ("support", "reset"):
            peer.tell(line)
        process, close = peer._process, peer.end
        tree = {"arm": {"driver": "so101", "port": str(out / "tty"), "timeout": 0.3}, "cell": {"forces": "unmeasured"}}
    else:
        controller = UrPeer(ADDRESS)
        process, close = controller._process, controller.close
        tree = {"arm": {"driver": "ur", "host": ADDRESS, "watchdog": 1.0, "max_silence": 0.5}, "cell": {}}
    real_time(process)
    facts = SO101 if kind == "so101" else UR
    tree["cell"] |= {"judge": "goal", "scene": "none", "max_age": 0.5}
    tree |= {"limits": facts["limits"], "task": FACTS | {"start": facts["start"]}}
    (out / "robot.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    try:
        yield read_robot_file(out / "robot.yaml", TASK)
    finally:
        close()


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arm", choices=("so101", "ur"), default="so101")
    parser.add_argument("--steps", type=int, default=1500)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    one_thread()
    load = [os.getloadavg()[0]]
    with arm(arguments.arm, arguments.out) as file:
        place = robot_deployment(file)
        watched = Watched(place.workcell)
        settings = [f"task={TASK}", "seed=100", f"env_steps={arguments.steps}", f"demonstrations={DEMONSTRATIONS}"]
        settings += ["evaluation.curve_interval=0", "evaluation.episodes=1"]
        config = replace(load_config(None, settings), processes=2, realtime=True)
        run = arguments.out / "run"
        summary = train(config, run, resume=False, deployment=replace(place, workcell=watched))
    load.append(os.getloadavg()[0])
    errors, ages = [], []
    with EpisodeStore.open(run / "episodes") as store:
        for episode in list(store.episodes())[DEMONSTRATIONS:]:
            period = MS_PER_NS * np.diff(episode.stamp_action) - 1e3 * FACTS["control_period"]
            errors.append(np.abs(period))
            ages.append(MS_PER_NS * (episode.stamp_action - episode.stamp_obs[:-1]))
    figures = {
        "arm": arguments.arm,
        "steps": summary["env_steps"],
        "updates": summary["updates"],
        "period_error_ms": spread(errors),
        "observation_to_action_ms": spread(ages),
        "late_cycles": watched.late,
        "load": [round(value, 1) for value in load],
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
