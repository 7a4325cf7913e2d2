"""The rate of a policy on an arm: 20 Hz as well as 10, and a rate that the rest cannot keep is refused."""

from dataclasses import replace

import numpy as np
import pytest
from judged_arm import judged_arm

from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.robot_workcell import RobotWorkcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError


@pytest.fixture
def cell(tmp_path, request):
    path = tmp_path / "robot.yaml"
    path.write_text(judged_arm(task={"control_period": request.param, "max_steps": 25, "start": None}))
    cell = RobotWorkcell(read_robot_file(path, "plug"))("plug", WorkcellOptions())
    yield cell
    cell.close()


@pytest.mark.parametrize(("cell", "period"), [(0.05, 0.05), (0.1, 0.1)], indirect=["cell"])
def test_an_arm_is_controlled_in_the_period_of_the_task(cell, period):
    env = RobotEnv(cell)
    start = env.start(0, "e")
    assert start is not None
    before, stamps, infos = cell.io.read().T_base_tcp.position, [], []
    for _ in range(20):
        infos.append(env.advance(np.array([0.3, 0.0, 0.0], np.float32)))
        stamps.append(cell.clock.now())
    steps = 1e-9 * np.diff(stamps)
    assert np.median(steps) == pytest.approx(period, abs=0.3 * period)
    assert (stamps[-1] - stamps[0]) * 1e-9 == pytest.approx(19 * period, rel=0.3)
    assert (cell.io.read().T_base_tcp.position - before)[0] > 0.01
    assert not infos[-1].recorded.terminated


@pytest.mark.parametrize("cell", [0.05], indirect=True)
def test_a_reaction_time_of_the_whole_period_is_refused(cell):
    with pytest.raises(ConfigError, match=r"reaction_time=0.06 s is no less than the control period of plug, 0.05 s"):
        RobotEnv(cell, options=replace(WorkcellOptions(), reaction_time=0.06))
