"""The arm behind topics keeps the contract of the arm in the process, with the safety node between."""

import pytest
from robot_io_contract import RobotIOContract, RobotUnderTest
from ros_nodes_graph import Cell, Graph

LONG_COMMANDS = {"max_ttl": 3.0, "max_speed": 2.0, "max_acceleration": 40.0}
"""The contract speaks of commands that count for seconds and lead 10 cm away."""
PATIENT = 1.5
"""Largest age of a state in real time [s]: a test shall not fail because its machine is busy."""


def under_test(cell, **facts):
    def freeze():
        cell.sim.cell.io.history.frozen = True

    cell.workcell.task.reset(0)
    return RobotUnderTest(cell.workcell.io, cell.workcell.clock, freeze, max_age=0.2, joints=7, **facts)


class TestLockstepPeg(RobotIOContract):
    @pytest.fixture
    def robot(self):
        graph = Graph()
        yield under_test(Cell(graph, "peg_insert", safety=LONG_COMMANDS))
        graph.close()


class TestLockstepGripper(RobotIOContract):
    @pytest.fixture
    def robot(self):
        graph = Graph()
        yield under_test(Cell(graph, "cube_lift", safety=LONG_COMMANDS), gripper_width=0.08)
        graph.close()


class TestRealTime(RobotIOContract):
    @pytest.fixture
    def robot(self):
        graph = Graph()
        safety = {**LONG_COMMANDS, "max_age": PATIENT}
        cell = Cell(graph, "peg_insert", lockstep=False, safety=safety, max_age=PATIENT)
        robot = under_test(cell)

        def freeze():
            cell.sim.cell.io._io.history.frozen = True

        yield RobotUnderTest(robot.io, robot.clock, freeze, max_age=PATIENT, joints=7, patience=2.8)
        graph.close()
