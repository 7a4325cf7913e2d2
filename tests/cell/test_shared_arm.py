"""Tasks that take turns on one open arm: whether they meet, which frames they share, and who closes it."""

import numpy as np
import pytest
from judged_arm import PAIR, practised_arm

from robot_rl.cell.goal import Goal, GoalConfig
from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.shared_arm import SharedArm
from robot_rl.cell.tcp_region import TcpRegion
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, StepOrderError, UnknownNameError
from robot_rl.geometry import Pose

TASKS = ("there", "back")
BLIND = dict.fromkeys(TASKS, WorkcellOptions())


def shared(path, change=lambda content: None):
    file = practised_arm(path, change)
    return SharedArm({task: read_robot_file(file, task) for task in TASKS})


def start_of(*position):
    return {**PAIR["task"]["start"], "position": list(position)}


def test_a_region_is_the_workspace_around_the_start():
    region = TcpRegion(np.array([0.4, -0.1, 0.1]), np.array([0.5, 0.1, 0.2]))
    assert region.beyond(np.array([0.45, 0.0, 0.2])) == 0.0
    assert region.beyond(np.array([0.53, 0.14, 0.15])) == pytest.approx(0.05)
    assert region.meets(TcpRegion(np.array([0.5, 0.0, 0.0]), np.array([0.6, 0.0, 0.3])))
    assert not region.meets(TcpRegion(np.array([0.51, 0.0, 0.0]), np.array([0.6, 0.0, 0.3])))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c["task"].pop("start"), "there has no start pose"),
        (lambda c: c["reverse"]["task"].update(start=start_of(0.45, 0.2, 0.2)), "back cannot begin: its start"),
        (
            lambda c: (
                c["limits"].update(box_high=[0.52, 0.3, 0.28]),
                c["reverse"]["task"].update(start=start_of(0.45, 0.11, 0.2)),
            ),
            "there and back do not meet",
        ),
    ],
    ids=["no start", "outside of the limits", "apart"],
)
def test_tasks_that_do_not_meet_are_refused_before_anything_is_opened(tmp_path, change, named):
    with pytest.raises(ConfigError, match=named):
        shared(tmp_path, change)


def test_a_goal_lies_around_its_centre_or_where_the_arm_is():
    here = Pose(np.array([0.4, 0.1, 0.2]), np.array([0.0, 1.0, 0.0, 0.0]))
    spread = (0.02, 0.02, 0.02)
    fixed, drawn = Goal(GoalConfig(spread, centre=(0.5, 0.0, 0.3))), Goal(GoalConfig(spread))
    fixed.draw(3, here)
    drawn.draw(3, here)
    assert drawn.point - here.position == pytest.approx(fixed.point - np.array([0.5, 0.0, 0.3]))
    assert np.all(np.abs(drawn.point - here.position) <= 0.02)


def test_tasks_that_want_other_frames_are_refused_with_both_sizes(tmp_path):
    wanted = {
        "there": WorkcellOptions(cameras=("wrist",), image_size=(64, 64)),
        "back": WorkcellOptions(cameras=("wrist",), image_size=(96, 96)),
    }
    with pytest.raises(ConfigError, match="there 64 and back 96 px"), shared(tmp_path).opened(wanted):
        pass


@pytest.mark.wall_clock
def test_one_task_begins_where_the_other_has_left_the_arm_and_closing_one_keeps_it_open(tmp_path):
    arm = shared(tmp_path)
    with pytest.raises(StepOrderError, match="not open"):
        arm("there", WorkcellOptions())
    with arm.opened(BLIND):
        with pytest.raises(UnknownNameError):
            arm("elsewhere", WorkcellOptions())
        cells = {task: arm(task, WorkcellOptions()) for task in TASKS}
        there, back = (RobotEnv(cells[task]) for task in TASKS)
        there.start(0, "first")
        for _ in range(4):
            there.advance(np.array([1.0, 0.0, 0.0], np.float32))
        left = cells["there"].io.read().T_base_tcp.position
        there.close()
        begun = back.start(0, "second").T_base_reset.position
        assert begun == pytest.approx(left, abs=0.012), "it has coasted to its set-point at most"
        assert cells["back"].task.obstacle() is None and cells["there"].task.obstacle() is None
        for _ in range(6):  # there goes 5 cm from its start, and back has gone further by now
            back.advance(np.array([1.0, 0.0, 0.0], np.float32))
        assert "mm outside of the workspace of there" in cells["back"].task.obstacle()
        assert cells["there"].task.obstacle() is None, "the arm goes to its start by itself"
        back.close()
