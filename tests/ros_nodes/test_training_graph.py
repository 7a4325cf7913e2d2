"""`robot-rl up train`: every part a process of its own, some of them killed on the way."""

import os
import re
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
from ros_nodes_graph import DOMAIN
from running import ROBOT_RL, environment

from robot_rl.data.store import EpisodeStore
from robot_rl.files import to_json
from robot_rl.learn.checkpoint import load_checkpoint

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


class Bringup:
    """The command in a process, and what it says."""

    def __init__(self, run, *flags, **settings):
        given = [f"{key}={to_json(value)}" for key, value in {**SMALL, **settings}.items()]
        command = [ROBOT_RL, "up", "train", "--task", "reach", "--out", str(run), "--domain", str(DOMAIN), *flags]
        self.run, self.lines = run, []
        self.process = subprocess.Popen(
            [*command, "--settings", *given],
            stderr=subprocess.PIPE,
            text=True,
            env=environment(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST"),
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

    def wait_for(self, pattern, count=1):
        end = time.monotonic() + PATIENCE
        while sum(bool(re.search(pattern, line)) for line in self.lines) < count:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def recorded(self):
        """Bytes of episodes so far, finished or not."""
        return sum(path.stat().st_size for path in (self.run / "episodes").rglob("*") if path.is_file())

    def wait_for_progress(self, amount=2_000):
        """Until more has been recorded than now [bytes]."""
        end, before = time.monotonic() + PATIENCE, self.recorded()
        while self.recorded() < before + amount:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.1)

    def wait_for_checkpoint(self, steps):
        end, path = time.monotonic() + PATIENCE, self.run / "checkpoint.pt"
        while load_checkpoint(path)["env_steps"] < steps:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(1.0)

    def text(self):
        return "".join(self.lines[-60:])

    def end(self):
        code = self.process.wait(PATIENCE)
        self._reader.join(10)
        return code


@pytest.fixture
def bringup(tmp_path):
    made = []

    def make(*flags, **settings):
        made.append(Bringup(tmp_path / "run", *flags, **settings))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_a_training_over_topics_in_lockstep_ends_and_the_learner_has_what_was_recorded(bringup):
    training = bringup("--lockstep", env_steps=120)
    assert training.end() == 0, training.text()
    assert (training.run / "summary.json").is_file()
    compare(training.run, 120)


@pytest.mark.timeout(600)
def test_learner_and_actor_may_be_killed_and_nothing_recorded_is_lost_or_doubled(bringup):
    training = bringup("--lockstep", env_steps=250)
    training.wait_for("2 demonstrations")
    kill_in_turn(training, ("learner", "actor"))
    assert training.end() == 0, training.text()
    compare(training.run, 250)
    assert not [name for name in ("sim", "safety", "teleop", "learner", "actor") if alive(training.pid(name))]


@pytest.mark.skipif(
    "ROBOT_RL_REAL_TIME_TESTS" not in os.environ,
    reason="real time needs two quiet cores: set ROBOT_RL_REAL_TIME_TESTS=1 where you have them",
)
@pytest.mark.timeout(600)
def test_in_real_time_each_node_may_be_killed_and_the_training_goes_on(bringup):
    training = bringup(env_steps=250)
    training.wait_for("2 demonstrations")
    kill_in_turn(training, ("learner", "teleop", "safety", "sim", "actor"))
    training.wait_for_checkpoint(250)
    compare(training.run, 250)


def kill_in_turn(training, names):
    for name in names:
        training.wait_for_progress()
        os.kill(training.pid(name), signal.SIGKILL)
        training.wait_for(rf"\[{name}\] has ended with SIGKILL; it is started again")
    training.wait_for_progress()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def compare(run, count):
    """No step that was recorded is lost to the learner, or learned from twice, or in another order."""
    with EpisodeStore.open(run / "episodes") as store:
        episodes = [store.read(i) for i in store.ids() if i.startswith("episode-")]
    recorded = np.concatenate([episode.action for episode in episodes])
    assert len(recorded) == count
    different = len(np.unique(recorded, axis=0))  # an operator's hand may rest for a step
    assert different >= 0.9 * count, "the steps cannot be told apart"
    replay = load_checkpoint(run / "checkpoint.pt")["learner"]["online"]
    lengths = np.asarray(replay["episode_rows"])
    assert lengths.tolist() == [len(episode) + 1 for episode in episodes]
    finals = np.cumsum(lengths) - 1  # rows that hold an episode's last observation, and no step
    assert np.array_equal(np.delete(np.asarray(replay["action"]), finals, axis=0), recorded)
