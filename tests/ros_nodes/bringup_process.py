"""`robot-rl up` in a process of its own, on runs so small that they end within a minute."""

import os
import re
import signal
import subprocess
import threading
import time

from ros_nodes_graph import DOMAIN
from running import ROBOT_RL, environment

from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.system.atomic_file import to_json

PATIENCE = 240.0
"""For a busy machine [s]."""
SMALL = {
    "demonstrations": 2,
    "warmup_steps": 20,
    "checkpoint_interval": 60,
    "update_to_data": 2,
    "replay.batch_size": 16,
    "sac.hidden_sizes": [32, 32],
    "evaluation.episodes": 2,
    "evaluation.curve_interval": 0,
    "max_lead_steps": 100,
}
UNSET = ("sim", "eval")
"""Bringups without settings of a run."""


class Bringup:
    """The command in a process, and what it says; `inside` is a command that runs it somewhere else."""

    def __init__(self, what, run, *flags, inside=(), plain=False, **settings):
        given = [f"{key}={to_json(value)}" for key, value in {**SMALL, **settings}.items()]
        task = () if "--task" in flags else ("--task", "reach")
        command = [ROBOT_RL, "up", what, *task, "--out", run, "--domain", DOMAIN, *flags]
        self.run, self.lines = run, []
        self.process = subprocess.Popen(
            [*inside, *map(str, command), *([] if plain or what in UNSET else ["--settings", *given])],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET" if inside else "LOCALHOST"),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def pid(self, name):
        """Process of the newest node of that name."""
        started = re.compile(rf"\[{name}\] started, process (\d+)")
        return int([m for m in map(started.match, self.lines) if m][-1][1])

    def wait_for(self, pattern, after=0):
        """Until it has said so, since its line number `after`."""
        self.wait_until(lambda: any(re.search(pattern, line) for line in self.lines[after:]))

    def wait_until(self, done):
        end = time.monotonic() + PATIENCE
        while not done():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def recorded(self):
        """Bytes of episodes so far, finished or not."""
        return sum(path.stat().st_size for path in (self.run / "episodes").rglob("*") if path.is_file())

    def wait_for_progress(self, amount=2_000):
        """Until more has been recorded than now [bytes]."""
        before = self.recorded()
        self.wait_until(lambda: self.recorded() >= before + amount)

    def wait_for_checkpoint(self, steps):
        end, path = time.monotonic() + PATIENCE, self.run / "checkpoint.pt"
        while load_checkpoint(path)["env_steps"] < steps:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(1.0)

    def text(self):
        return "".join(self.lines[-60:])

    def end(self):
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(self.text()) from None
        self._reader.join(10)
        return code

    def alive(self, name):
        try:
            os.kill(self.pid(name), 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self, name):
        """Kills a node, and waits until it is started again."""
        seen = len(self.lines)
        os.kill(self.pid(name), signal.SIGKILL)
        self.wait_for(rf"\[{name}\] has ended with SIGKILL; it is started again", after=seen)
