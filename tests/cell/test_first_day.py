"""The six commands of the first day (docs/arms.md), shortened, for arms that speak their own protocols."""

import contextlib
import importlib.util
import json
import os
import re
import shlex
from pathlib import Path

import pytest
import yaml
from franka_peer import FrankaPeer
from peer_process import PeerProcess
from running import robot_rl, ros_domain
from ur_peer import UrPeer

from robot_rl.data.store.store import EpisodeStore

PAGE = Path(__file__).parents[2] / "docs" / "arms.md"
SHORT = {
    "doctor": ("--seconds", "1"),
    "commission": ("--only",),  # `TRIAL`
    "train": ("--steps", "5", "--episodes", "1", "--set", "demonstrations=1", "--set", "evaluation.curve_interval=0"),
    "eval": ("--episodes", "1"),
}
"""What makes each command short."""
SHORT_SETTINGS = ("env_steps=5", "demonstrations=1", "evaluation.episodes=1", "evaluation.curve_interval=0")
"""The same over topics."""
LONGEST = 5
"""Steps of an episode: nothing is learned."""
OLD = 0.5
"""Largest age of a state [s], on a busy machine."""
PATIENT = {"so101": {"timeout": 0.3}, "ur": {"watchdog": 1, "max_silence": 0.5}, "franka": {}}
"""Settings of the drivers for the same reason."""
TRIAL = {"so101": "hold", "ur": "stop", "franka": "stop"}
"""The only motion of the commissioning."""
SAYS = {"so101": "servo", "ur": "PolyScope", "franka": "franky-control"}
"""What the doctor finds of each arm."""


@contextlib.contextmanager
def peer_of(arm, folder):
    """An arm that speaks its protocol, and the setting that says where."""
    if arm == "so101":
        peer = PeerProcess("so101_peer.py", "feetech", folder / "tty")
        for line in ("support", "reset"):
            peer.tell(line)
        yield {"port": folder / "tty"}
        peer.end()
        return
    library = {"ur": "rtde_control", "franka": "franky_sim"}[arm]
    pytest.importorskip(library, reason=f"{library} is not installed: pip install 'robot_rl[{arm}]'")
    number = os.getpid()
    peer = UrPeer(f"127.22.{number // 250 % 250}.{number % 250 + 1}") if arm == "ur" else FrankaPeer()
    try:
        yield {"host": peer.address}
    finally:
        peer.close()


def observed(store):
    """What the first episode of a store observed: names and sizes."""
    with EpisodeStore.open(store) as opened:
        return {name: rows.shape[1:] for name, rows in opened.read(opened.ids()[0]).observations.items()}


@pytest.mark.slow
@pytest.mark.wall_clock
@pytest.mark.parametrize("arm", ["so101", "ur", "franka"])
def test_the_six_commands_lead_from_nothing_to_an_evaluated_policy(arm, tmp_path):
    """The UR over topics, where there is ROS 2; without, it is trained in test_robot_command.py."""
    section = PAGE.read_text(encoding="utf-8").partition("## The first day")[2]
    lines = [shlex.split(line, comments=True) for line in re.findall("^    (.+)$", section, re.M)[:8]]
    install, *commands = lines[:6]
    assert install[:2] == ["pip", "install"] and [command[1] for command in commands] == ["init", *SHORT]
    over_topics = lines[6]
    assert over_topics[1:3] == ["up", "robot"] and "eval" in lines[7]

    def run(command, *more):
        done = robot_rl(*command[1:], *more, cwd=tmp_path, input="y\n" * 20)
        allowed = (0, 1) if command[1] == "doctor" else (0,)  # this machine may have faults
        assert done.returncode in allowed, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    with peer_of(arm, tmp_path) as found:
        settings = [("--setting", f"{name}={value}") for name, value in {**found, **PATIENT[arm]}.items()]
        run(commands[0], "--arm", arm, "--no-questions", "--no-check", *sum(settings, ()))
        file = tmp_path / commands[0][-1]
        tree = yaml.safe_load(file.read_text(encoding="utf-8"))
        tree["cell"]["max_age"] = tree["limits"]["max_age"] = OLD
        tree["task"]["max_steps"] = LONGEST
        file.write_text(yaml.safe_dump(tree), encoding="utf-8")
        over_ros = arm == "ur" and importlib.util.find_spec("rclpy") is not None
        for command in commands[1:3] if over_ros else commands[1:]:
            trial = [TRIAL[arm]] if command[1] == "commission" else []
            said = run(command, *SHORT[command[1]], *trial)
            assert command[1] != "doctor" or SAYS[arm] in said, said
        name = "topics" if over_ros else "touch"
        if over_ros:
            out = ("--out", "runs/topics", "--domain", ros_domain())
            said = run(over_topics, *out, "--settings", *SHORT_SETTINGS)
            assert "on 1 held-out resets of touch" in said
            # What was learned over topics observes the same, so it plays without them.
            run([part.replace("runs/touch", "runs/topics") for part in commands[-1]], *SHORT["eval"])
        summary = json.loads((tmp_path / "runs" / name / "summary.json").read_text(encoding="utf-8"))
        assert summary["env_steps"] == 5
        assert ("state/wrench" in observed(tmp_path / "runs" / name / "episodes")) == (arm != "so101")
