"""The contract of robots over the example driver of docs/add/arm.md, in this process, behind limits and cap."""

import threading

import pytest
from documents import ADD, Example
from in_process_arm import WIDE_CAP, WIDE_LIMITS, robot_under_test
from robot_io_contract import RobotIOContract

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.env.state_assembler import Freshness


class TestTheArmOfThePage(RobotIOContract):
    @pytest.fixture
    def robot(self, tmp_path, monkeypatch):
        module = Example.read(ADD / "arm.md").load("my_arm", tmp_path, monkeypatch)
        silent = threading.Event()

        class Freezable(module.MyArm):
            def _run(self):
                report = self._receive
                self._receive = lambda *measured: None if silent.is_set() else report(*measured)
                super()._run()

        io = ArmRobotIO(
            lambda host: Freezable(module.MyArmConfig(), host),
            WIDE_LIMITS,
            WIDE_CAP,
            freshness=Freshness(max_age=0.3),
        )
        yield robot_under_test(io, silent.set, joints=6, measures_wrench=False, settle=0.5, patience=2.0)
        io.close()
