"""The main job with actor and learner side by side, as a user starts it: real processes, real signals."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from running import robot_rl, start

pytest.importorskip("sim.tasks.reach", reason="needs the simulated arm")

from robot_rl.data.replay.observation_scaling import ObservationPacker
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.system.directory_lock import Lock

pytestmark = pytest.mark.slow

SETTINGS = (
    "processes=2",
    "demonstrations=2",
    "warmup_steps=20",
    "update_to_data=2",
    "sac.hidden_sizes=[16, 16]",
    "replay.batch_size=16",
    "checkpoint_interval=100",
    "evaluation.curve_interval=0",
    "evaluation.video_episodes=0",
)
START = "import sys; from robot_rl.cli.main import main; sys.exit(main())"


def command(path, steps, *more):
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    return ["train", "reach", *settings, "--steps", str(steps), "--episodes", "1", "--out", str(path), "--json", *more]


def train(path, steps, *more):
    """Runs to the end; the summary that it prints."""
    done = robot_rl(*command(path, steps, *more))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def training(path, *, in_session=False):
    """A long run, once it has learned for a while; its process and that of its learner.

    Args:
        path: The run.
        in_session: Whether it is a fresh program in a session of its own, as one of a terminal.
    """
    log, words = path.with_suffix(".log"), command(path, 100_000)
    with log.open("w") as errors:
        streams = {"stdout": subprocess.DEVNULL, "stderr": errors}
        if in_session:
            program = [sys.executable, "-c", START, *words]
            actor = subprocess.Popen(program, **streams, text=True, start_new_session=True)
        else:
            actor = start(*words, **streams)
    learner = None
    try:
        until(lambda: children(actor.pid) or actor.poll() is not None, 60)
        (learner,) = children(actor.pid)
        until(lambda: has_learned(path) or actor.poll() is not None, 100)
        assert actor.poll() is None, log.read_text()
        yield actor, learner, log
    finally:
        for pid in (actor.pid, learner):
            if pid is not None and is_running(pid):
                os.kill(pid, signal.SIGKILL)
        actor.wait()


def has_learned(path):
    metrics = path / "metrics.jsonl"
    return metrics.exists() and '"kind": "update"' in metrics.read_text()


def stat_of(pid):
    """State and parent of a process; None if there is none."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        return state, int(parent)
    return None


def is_running(pid):
    stat = stat_of(pid)
    return stat is not None and stat[0] != "Z"


def children(pid):
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [child for child in pids if (stat := stat_of(child)) is not None and stat[1] == pid]


def until(happened, limit):
    deadline = time.monotonic() + limit
    while not happened():
        assert time.monotonic() < deadline, f"it did not happen within {limit} s"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of 220 steps in two processes, and what it printed."""
    path = tmp_path_factory.mktemp("runs") / "two"
    return path, train(path, 220)


def test_it_trains_and_the_update_to_data_ratio_holds(run):
    path, summary = run
    assert (summary["processes"], summary["env_steps"]) == (2, 220)
    assert summary["updates"] == 2 * (220 - 20)
    assert summary["utd"] == 2.0
    records = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    updates = [record for record in records if record["kind"] == "update"]
    assert len(updates) == 2  # one for each hundred learner calls
    assert all(0 <= record["actor_waited"] <= 1 and 0 <= record["policy_lag"] <= 2 * 15 for record in updates)


def test_the_learner_has_exactly_the_steps_that_were_recorded(run):
    path, _ = run
    online = load_checkpoint(path / "checkpoint.pt")["learner"]["online"]
    env = RobotEnv(make_workcell("reach"))
    packer = ObservationPacker(env.observation_specs)
    env.close()
    with EpisodeStore.open(path / "episodes") as store:
        episodes = [store.read(name) for name in store.ids() if name.startswith("episode-")]
    assert [len(episode) + 1 for episode in episodes] == online["episode_rows"].tolist()
    np.testing.assert_array_equal(
        online["state"], np.concatenate([packer.pack_rows(episode.observations) for episode in episodes])
    )
    is_step = np.ones(len(online["state"]), bool)
    is_step[np.cumsum(online["episode_rows"]) - 1] = False
    for column in ("action", "reward", "terminated", "source"):
        recorded = np.concatenate([getattr(episode, column) for episode in episodes])
        np.testing.assert_array_equal(online[column][is_step], recorded, err_msg=column)


def test_it_can_be_resumed_in_one_process_and_again_in_two(run):
    path, _ = run
    one = train(path, 230, "--resume", "--set", "processes=1")
    assert (one["processes"], one["env_steps"], one["updates"], one["utd"]) == (1, 230, 420, 2.0)
    two = train(path, 240, "--resume")
    assert (two["processes"], two["env_steps"], two["updates"], two["utd"]) == (2, 240, 440, 2.0)


def test_a_killed_learner_ends_the_run_with_a_sentence(tmp_path):
    with training(tmp_path / "run") as (actor, learner, log):
        held = {os.readlink(f"/proc/{learner}/fd/{fd}") for fd in os.listdir(f"/proc/{learner}/fd")}
        assert not [name for name in held if name.startswith(f"{tmp_path}/run/")], "a lock or a file has leaked"
        os.kill(learner, signal.SIGKILL)
        assert actor.wait(20) == 1
    assert re.search(
        r"robot-rl: the learner's process was killed \(SIGKILL.*--resume", " ".join(log.read_text().split())
    )
    assert "Traceback" not in log.read_text()
    assert not is_running(learner)


def test_a_killed_actor_leaves_no_learner_and_no_lock_behind(tmp_path):
    with training(tmp_path / "run") as (actor, learner, _):
        os.kill(actor.pid, signal.SIGKILL)
        actor.wait()
        until(lambda: not is_running(learner), 5)
    Lock(tmp_path / "run" / "lock").close()


def test_control_c_stops_both_and_saves(tmp_path):
    with training(tmp_path / "run", in_session=True) as (actor, learner, log):
        os.killpg(actor.pid, signal.SIGINT)
        os.kill(learner, signal.SIGINT)
        assert actor.wait(30) == 130, log.read_text()
        assert not is_running(learner)
    state = load_checkpoint(tmp_path / "run" / "checkpoint.pt")
    assert state["learner"]["env_steps"] == state["env_steps"] > 100
    assert f"{state['env_steps']} of 100000 env steps, and saved" in log.read_text()
