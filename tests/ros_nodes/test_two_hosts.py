"""A training on two hosts: network namespaces with a cable between them, which is cut for ten seconds."""

import os
import subprocess
import time

import numpy as np
import pytest
from test_training_graph import NODES, compare

CUT = 10.0
HOLDS = 0.3
"""After this long without its actor the arm stands still [s]."""
STEPS = 300


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """Two hosts that share nothing but a cable and the disk."""

    def __init__(self):
        self.names = [f"robot-rl-{side}-{os.getpid()}" for side in ("a", "b")]

    def connect(self):
        first, second = self.names
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for number, name in enumerate(self.names, 1):
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "cable")
            self.plug(name)

    def plug(self, name):
        ip("-n", name, "link", "set", "cable", "up")
        ip("-n", name, "route", "replace", "224.0.0.0/4", "dev", "cable")

    def cut(self):
        ip("-n", self.names[0], "link", "set", "cable", "down")

    def mend(self):
        self.plug(self.names[0])

    def inside(self, number):
        """A command that runs another on this host, which has shared memory of its own."""
        alone = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'
        return ("ip", "netns", "exec", self.names[number], "sh", "-c", alone, "sh")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@pytest.fixture
def hosts():
    made = Hosts()
    try:
        made.connect()
        subprocess.run([*made.inside(0), "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        made.remove()
        pytest.skip(f"network namespaces are not permitted here: {getattr(error, 'stderr', None) or error}")
    yield made
    made.remove()


@pytest.mark.timeout(600)
def test_a_learner_on_another_host_gets_everything_in_order_though_the_cable_was_cut(hosts, bringup):
    learner = bringup("train", "--only", "learner", name="elsewhere", inside=hosts.inside(1))
    beside = [name for name in NODES if name != "learner"]
    training = bringup("train", "--lockstep", "--only", *beside, inside=hosts.inside(0), env_steps=STEPS)
    training.wait_for("2 demonstrations")
    training.wait_for_progress()
    hosts.cut()
    before, end = training.recorded(), time.monotonic() + CUT
    training.wait_for_progress()  # what the learner has not got waits on the disk, and the robot does not wait for it
    time.sleep(max(0.0, end - time.monotonic()))
    assert training.process.poll() is None, training.text()
    assert training.recorded() > before
    hosts.mend()
    assert training.end() == 0, training.text()
    compare(training.run, STEPS)
    assert learner.process.poll() is None, learner.text()


@pytest.mark.skipif(
    "ROBOT_RL_REAL_TIME_TESTS" not in os.environ,
    reason="real time needs two quiet cores: set ROBOT_RL_REAL_TIME_TESTS=1 where you have them",
)
@pytest.mark.timeout(600)
def test_an_arm_holds_while_its_actor_is_beyond_the_cut_and_goes_on_afterwards(hosts, bringup, tmp_path):
    reader = pytest.importorskip("mcap_ros2.reader", reason="bags need mcap: pip install 'robot_rl[mcap]'")
    parameters = tmp_path / "params.yaml"
    parameters.write_text(
        f"recorder_node: {{ros__parameters: {{folder: {tmp_path / 'bags'}, topics: [current_pose]}}}}"
    )
    flags = ("--record", "--params", parameters, "--only", "sim", "safety", "teleop", "recorder")
    cell = bringup("train", *flags, name="cell", inside=hosts.inside(0))
    training = bringup("train", "--only", "learner", "actor", inside=hosts.inside(1), env_steps=STEPS)
    training.wait_for("2 demonstrations")
    training.wait_for_progress()
    cut = time.time()
    hosts.cut()
    time.sleep(CUT)
    mended = time.time()
    hosts.mend()
    assert training.end() == 0, training.text()
    compare(training.run, STEPS)

    cell.process.terminate()
    cell.end()
    (bag,) = (tmp_path / "bags").glob("*.mcap")
    poses = [message.ros_msg for message in reader.read_ros2_messages(str(bag))]
    stamps = np.array([pose.header.stamp.sec + 1e-9 * pose.header.stamp.nanosec for pose in poses])
    places = np.array([[getattr(pose.pose.position, axis) for axis in "xyz"] for pose in poses])

    def way(begin, end):
        among = places[(stamps > begin) & (stamps < end)]
        assert len(among) > 20
        return np.ptp(among, axis=0).max()

    assert way(cut - 5.0, cut) > 0.01
    assert way(cut + HOLDS, mended) < 0.001
    assert way(mended, stamps[-1]) > 0.01
