"""Before an episode the arm goes back along its tool and then to its start pose, or says that it did not get there."""

import dataclasses

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import StartPose, TaskSpec
from robot_rl.errors import RobotLostError

RETREAT = 0.03


class Left:
    """A task that leaves the arm where it is, and remembers where that was when the scene was made ready."""

    def __init__(self, task, io, start):
        self._task, self._io, self.ready_at = task, io, []
        self.spec = dataclasses.replace(task.spec, start=start)

    def reset(self, seed):
        del seed  # the scene stays as it is
        self.ready_at.append(self._io.read().T_base_tcp)

    def __getattr__(self, name):
        return getattr(self._task, name)


class Watched:
    """An arm whose way is kept; with `holds`, it does not obey."""

    def __init__(self, io):
        self._io, self.way, self.stops, self.holds = io, [], 0, False

    def read(self):
        state = self._io.read()
        self.way.append(state.T_base_tcp)
        return state

    def command(self, command):
        if not self.holds:
            self._io.command(command)

    def stop(self):
        self.stops += 1
        self._io.stop()


@pytest.fixture
def cell():
    made = make_workcell("reach")
    made.task.reset(0)
    here = made.io.read().T_base_tcp
    position = here.position + np.array([0.04, 0.05, 0.01])
    start = StartPose(tuple(position.tolist()), tuple((2.0 * here.quaternion).tolist()), RETREAT, speed=0.2)
    arm = Watched(made.io)
    task = Left(made.task, arm, start)
    yield RobotEnv(dataclasses.replace(made, io=arm, task=task)), arm, task, here
    made.close()


def test_it_goes_back_along_the_tool_then_to_the_start_pose_before_the_scene_is_made_ready(cell):
    env, arm, task, here = cell
    env.reset(seed=1)
    (ready,) = task.ready_at
    off = (task.spec.start.pose.inverse() @ ready).vector()
    assert np.linalg.norm(off[:3]) < 5e-3
    along = np.array([(here.inverse() @ pose).position for pose in arm.way])
    back = int(np.argmin(along[:, 2]))
    assert along[back, 2] == pytest.approx(-RETREAT, abs=5e-3)
    assert np.abs(along[:back, :2]).max() < 3e-3, "it went aside before it was clear"
    env.step(np.zeros(env.action_space.shape, np.float32))
    env.reset(seed=2)
    assert len(task.ready_at) == 2
    assert not arm.stops


def test_an_arm_that_does_not_get_there_is_stopped_and_no_episode_begins(cell):
    env, arm, task, _ = cell
    arm.holds = True
    with pytest.raises(RobotLostError, match=r"6\d mm and 0 deg from its start pose; is something in its way"):
        env.reset(seed=1)
    assert arm.stops == 1
    assert not task.ready_at


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"quaternion": [0, 0, 0, 0]}, "w, x, y, z"), ({"retreat": -0.1}, "negative"), ({"speed": 0.0}, "positive")],
)
def test_a_start_pose_that_is_none_is_refused(wrong, message):
    start = {"position": [0.5, 0.0, 0.2], "quaternion": [0, 1, 0, 0]} | wrong
    workspace = {"low": [0, 0, 0], "high": [0, 0, 0], "yaw": 0, "tilt": 0}
    whole = {"name": "t", "instruction": "i", "max_steps": 1, "control_period": 0.1, "workspace": workspace}
    with pytest.raises(ValidationError, match=message):
        TypeAdapter(TaskSpec).validate_python({**whole, "start": start})
