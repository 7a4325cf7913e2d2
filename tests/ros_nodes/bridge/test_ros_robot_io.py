"""The arm behind topics keeps the contract of the arm in the process, with the safety node between."""

import time
from itertools import islice

import pytest
from robot_io_contract import RobotIOContract, RobotUnderTest
from ros_nodes_graph import Cell, Graph

from robot_rl.env.state_assembler import camera_part
from robot_rl.env.task import WorkcellOptions
from ros_nodes.bridge.ros_state import FRAME_SLACK
from sim.sensing import Sensing

CAMERA_DELAY = Sensing().camera_delay
LONG_COMMANDS = {"max_ttl": 3.0, "max_speed": 2.0, "max_acceleration": 40.0, "max_feedforward_force": 20.0}
"""The contract speaks of commands that count for seconds, lead 10 cm away, and push."""
CAP = {"cap_feedforward_force": 20.0} | {"cap_lead": 1.0, "cap_turn": 4.0, "cap_speed": 10.0, "cap_turn_rate": 40.0}
PATIENT = 1.5
"""Largest age of a state in real time [s]: a test shall not fail because its machine is busy."""


def under_test(cell, **facts):
    def freeze():
        cell.sim.cell.io.history.frozen = True

    cell.workcell.task.reset(0)
    return RobotUnderTest(
        cell.workcell.io, cell.workcell.clock, freeze, max_age=0.2, joints=7, takes_wrench=True, **facts
    )


class TestLockstepPeg(RobotIOContract):
    @pytest.fixture
    def robot(self):
        graph = Graph()
        yield under_test(Cell(graph, "peg_insert", safety=LONG_COMMANDS, cap=CAP))
        graph.close()


class TestLockstepGripper(RobotIOContract):
    @pytest.fixture
    def robot(self):
        graph = Graph()
        yield under_test(Cell(graph, "cube_lift", safety=LONG_COMMANDS, cap=CAP), gripper_width=0.08)
        graph.close()


class TestRealTime(RobotIOContract):
    @pytest.fixture
    def robot(self):
        graph = Graph()
        safety = {**LONG_COMMANDS, "max_age": PATIENT}
        cell = Cell(graph, "peg_insert", lockstep=False, safety=safety, cap=CAP, max_age=PATIENT)
        robot = under_test(cell)

        def freeze():
            cell.sim.cell.io.simulated.history.frozen = True

        yield RobotUnderTest(robot.io, robot.clock, freeze, max_age=PATIENT, joints=7, patience=2.8, takes_wrench=True)
        graph.close()


@pytest.mark.parametrize("late", [0.004, 0.013, 0.022, 0.03])
def test_the_periods_of_an_episode_begin_just_after_frames_have_come(late):
    """Wherever between two frames an episode starts: frames of 30 Hz are not up to 33 ms older than they have to be."""
    graph = Graph()
    options = WorkcellOptions(cameras=("front",), image_size=(64, 64))
    cell = Cell(graph, "reach", lockstep=False, options=options)
    io = cell.workcell.io

    def begins_with_a_fresh_frame():
        io.await_frames()
        time.sleep(late)
        stamp = io.parts.stamp(camera_part("front"))
        cell.workcell.await_frames()
        age = io.parts.age(camera_part("front"), cell.workcell.clock.now())
        return io.parts.stamp(camera_part("front")) > stamp and age < CAMERA_DELAY + FRAME_SLACK + 0.03

    tries = (begins_with_a_fresh_frame() for _ in range(40))
    fresh = list(islice(filter(None, tries), 5))
    graph.close()
    assert len(fresh) == 5, "a busy machine begins late at times, but not always"


def test_without_cameras_or_in_lockstep_nothing_is_awaited():
    graph = Graph()
    for cell in (
        Cell(graph, "reach", lockstep=False, namespace="one"),
        Cell(graph, "reach", options=WorkcellOptions(cameras=("front",), image_size=(64, 64)), namespace="two"),
    ):
        started = time.monotonic()
        cell.workcell.await_frames()
        assert time.monotonic() - started < FRAME_SLACK
    graph.close()
