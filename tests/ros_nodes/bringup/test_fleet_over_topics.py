"""A robot behind topics as one of a fleet, beside one without ROS: the fleet's learner learns from both."""

import json
import socket

import numpy as np
import pytest
from fleets import recorded, remembered
from running import start

from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.config.yaml_file import dump_yaml
from robot_rl.errors import RobotRLError
from robot_rl.run.deployment import Deployment
from ros_nodes.jobs.actor_jobs import ActorJobs
from ros_nodes.jobs.site import Site

TRAIN = {
    "task": "reach", "env_steps": 60, "demonstrations": 2, "warmup_steps": 20, "checkpoint_interval": 30,
    "update_to_data": 1, "replay": {"batch_size": 16}, "sac": {"hidden_sizes": [32, 32]}, "processes": 2,
    "evaluation": {"episodes": 1, "curve_interval": 0, "video_episodes": 0},
}  # fmt: skip


@pytest.fixture
def plan(tmp_path):
    def make(**train):
        path = tmp_path / "fleet.yaml"
        path.write_text(dump_yaml({"train": {**TRAIN, **train}, "robots": {"topics": {}, "process": {}}}))
        return path

    return make


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.slow
def test_robots_with_and_without_ros_learn_together_and_no_row_is_lost(bringup, plan, tmp_path):
    path, address = plan(), free_address()
    learner = start("fleet", "learner", "--plan", path, "--listen", address, "--out", tmp_path / "learner")
    at = ("--plan", path, "--learner", address)
    other = start("fleet", "robot", "process", *at, "--out", tmp_path / "process")
    flags = ("--fleet", path, "--fleet_robot", "topics", "--fleet_learner", address)
    training = bringup("train", "--lockstep", *flags, name="topics", plain=True)
    try:
        assert training.end() == 0, training.text()
        assert not any(line.startswith("[learner]") for line in training.lines), "it has no learner of its own"
        for process in (other, learner):
            said = process.communicate(timeout=120)[1]
            assert process.returncode == 0, said
    finally:
        for process in (other, learner):
            process.kill()
    for robot in ("topics", "process"):
        rows = recorded(tmp_path / robot)
        assert len(rows) == 30
        np.testing.assert_array_equal(remembered(tmp_path / "learner", robot), rows)
    assert json.loads((tmp_path / "learner/summary.json").read_text())["robots"].keys() == {"topics", "process"}


@pytest.mark.parametrize(
    ("train", "given", "said"),
    [
        ({}, {"settings": ("task=reach", "env_steps=5")}, "env_steps beside fleet=.*stand in its file, under `train`"),
        ({}, {"demos": "played"}, "demos beside fleet="),
        ({}, {"settings": ("task=peg_insert",)}, "the nodes are for the task peg_insert, .* for reach; set task"),
        ({}, {"fleet_robot": "nobody"}, "unknown robot 'nobody'.*topics"),
        ({}, {"out": ""}, "needs out:=DIRECTORY"),
        ({"realtime": True}, {}, "has realtime=true: set it to false, since its simulated time waits"),
    ],
)
def test_what_does_not_go_together_is_one_line(plan, tmp_path, train, given, said):
    config = {"fleet": str(plan(**train)), "fleet_robot": "topics", "out": str(tmp_path / "run"), **given}
    jobs = ActorJobs(ActorNodeConfig(**config), lambda: Site(Deployment(), lockstep=True), print)
    with pytest.raises(RobotRLError, match=said):
        jobs.run()
    assert not (tmp_path / "run").exists()
