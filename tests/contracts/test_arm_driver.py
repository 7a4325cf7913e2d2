"""The contract of arm drivers over the example of docs/add/arm.md; that of crisp is in tests/ros_nodes."""

import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from documents import ADD, Example

from robot_rl.arm.driver import find_driver
from robot_rl.errors import UnknownNameError


class TestTheArmOfThePage(ArmDriverContract):
    @pytest.fixture
    def arm(self, tmp_path, monkeypatch):
        module = Example.read(ADD / "arm.md").load("my_arm", tmp_path, monkeypatch)
        assert find_driver("my_arm") is module.MyArm
        return ArmUnderTest(lambda host: module.MyArm(module.MyArmConfig(), host))


def test_a_driver_that_is_not_installed_is_named():
    with pytest.raises(UnknownNameError, match=r"unknown driver 'crips'; valid: .*crisp.*; did you mean 'crisp'"):
        find_driver("crips")
