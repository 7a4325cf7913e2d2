"""The contract of robots over the example of docs/add/arm.md and its peer, in this process, behind limits and cap."""

import pytest
from in_process_arm import WIDE_CAP, WIDE_LIMITS, robot_under_test
from page_arm import PageArm
from robot_io_contract import RobotIOContract

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.env.state_assembler import Freshness


@pytest.mark.wall_clock
class TestTheArmOfThePage(RobotIOContract):
    @pytest.fixture
    def robot(self, tmp_path, monkeypatch):
        page = PageArm(tmp_path, monkeypatch)
        io = ArmRobotIO(page.make, WIDE_LIMITS, WIDE_CAP, freshness=Freshness(max_age=0.3))
        facts = dict(joints=6, measures_wrench=False, settle=0.5, patience=2.0)
        yield robot_under_test(io, lambda: page.where("freeze"), **facts)
        io.close()
        page.peer.end()
