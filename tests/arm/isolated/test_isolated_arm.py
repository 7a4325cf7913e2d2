"""A driver in a process of its own: the same contract, and a process that is killed is a fault like others."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest, Host, Recorder

from robot_rl.arm.driver import MEASURABLE
from robot_rl.arm.isolated import isolated_arm
from robot_rl.arm.isolated.isolated_arm import IsolatedArm
from robot_rl.arm.standin.standin_arm import TOOL_DOWN, StandinConfig
from robot_rl.errors import ArmStoppedError, ConfigError
from robot_rl.geometry import Pose

pytestmark = pytest.mark.wall_clock


class IsolatedStandin(IsolatedArm):
    """The arm in memory, whose memory is elsewhere."""

    Config = StandinConfig
    measures = MEASURABLE
    program = (str(Path(__file__).with_name("standin_program.py")),)


@pytest.mark.slow
class TestDriver(ArmDriverContract):
    @pytest.fixture
    def arm(self):
        return ArmUnderTest(lambda host: IsolatedStandin(StandinConfig(), host), gripper_width=0.08)


def children():
    """Processes that this one started and that serve a driver."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    numbers = [int(number) for task in tasks for number in task.read_text().split()]
    program = IsolatedStandin.program[0].encode()
    return [one for one in numbers if program in Path(f"/proc/{one}/cmdline").read_bytes()]


@pytest.fixture
def opened():
    driver, seen = IsolatedStandin(StandinConfig(faults=("reflex@0.5",)), Host()), Recorder()
    driver.start(seen)
    assert seen.has("pose", 3)
    yield driver, seen
    driver.close()
    assert not children()


def test_a_process_that_is_killed_is_named_and_started_again_with_consent(opened):
    driver, seen = opened
    (process,) = children()
    os.kill(process, signal.SIGKILL)
    assert seen.wait(driver.faults)
    assert "the driver's own process is lost" in driver.faults()[0] and "consent" in driver.faults()[0]
    count = len(seen.parts["pose"])
    time.sleep(0.1)
    assert len(seen.parts["pose"]) == count and not children(), "nobody starts it but a person"
    driver.recover()
    assert not driver.faults() and children() != [process]
    assert seen.has("pose", count + 5)
    here = seen.parts["pose"][-1][1]
    driver.move_to(Pose(here.position + np.array([0.0, 0.0, 0.02]), here.quaternion))
    assert seen.wait(lambda: seen.position[2] - here.position[2] > 0.015)


def test_a_fault_of_the_driver_is_named_and_ends_with_consent(opened):
    driver, seen = opened
    assert seen.wait(driver.faults)
    assert "reflex" in driver.faults()[0]
    driver.recover()
    assert not driver.faults()
    assert len(seen.threads) == 1


STUCK = """
from robot_rl.arm.isolated.driver_server import serve
import os
from robot_rl.arm.standin.standin_arm import StandinArm
from robot_rl.errors import ArmStoppedError

class Stuck(StandinArm):
    @property
    def is_stuck(self):
        return True

    def recover(self):
        raise ArmStoppedError("the controller has not answered within 10 s; then consent again")

serve(Stuck)
"""


def test_a_library_that_does_not_come_back_is_left_with_its_process(tmp_path, monkeypatch):
    (tmp_path / "stuck_arm.py").write_text(STUCK, encoding="utf-8")
    monkeypatch.setattr(IsolatedStandin, "program", (str(tmp_path / "stuck_arm.py"),))
    driver, seen = IsolatedStandin(StandinConfig(faults=("reflex@0.2",)), Host()), Recorder()
    driver.start(seen)
    assert seen.wait(driver.faults)
    with pytest.raises(ArmStoppedError, match="not answered within 10 s"):
        driver.recover()
    assert not children() and "not answered within 10 s" in driver.faults()[0]
    driver.recover()
    assert children() and not driver.faults()
    driver.close()


FAILING = """
from robot_rl.arm.isolated.driver_server import serve
from robot_rl.arm.standin.standin_arm import StandinArm
from robot_rl.errors import GraphError

class Failing(StandinArm):
    def move_to(self, T_base_target):
        raise GraphError("the library is busy")

serve(Failing)
"""


def test_after_an_error_of_the_driver_it_is_measured_on(tmp_path, monkeypatch):
    (tmp_path / "failing_arm.py").write_text(FAILING, encoding="utf-8")
    monkeypatch.setattr(IsolatedStandin, "program", (str(tmp_path / "failing_arm.py"),))
    driver, seen = IsolatedStandin(StandinConfig(), Host()), Recorder()
    driver.start(seen)
    assert seen.has("pose", 1)
    driver.move_to(seen.parts["pose"][-1][1])
    assert seen.has("pose", len(seen.parts["pose"]) + 10)
    assert not driver.faults() and children()
    driver.close()


def test_stamps_are_those_of_the_clock_of_this_process(opened):
    _, seen = opened
    behind = time.time_ns() - seen.parts["pose"][-1][0]
    assert -1e6 < behind < 5e9


def test_what_the_driver_refuses_is_refused_here_in_its_words():
    with pytest.raises(ConfigError, match="reflx"):
        IsolatedStandin(StandinConfig(faults=("reflx@1",)), Host())
    assert not children()


def test_an_arm_that_is_not_there_is_refused_in_its_words():
    pytest.importorskip("rtde_control", reason="ur_rtde is not installed: pip install 'robot_rl[ur]'")
    from robot_rl.arm.industrial.isolated_ur import IsolatedUr
    from robot_rl.arm.industrial.ur import UrConfig

    with pytest.raises(ArmStoppedError, match=r"no UR controller answers at 127\.99\.0\.1"):
        IsolatedUr(UrConfig(host="127.99.0.1"), Host())


def test_a_hold_is_not_overtaken_by_the_set_point_before_it_at_whatever_line_it_comes():
    """It comes between two lines of the thread that passes on what is wanted, as the scheduler may have it."""
    lines = 0  # until it comes

    def trace(frame, event, arg):
        nonlocal lines
        if frame.f_code.co_filename != isolated_arm.__file__:
            return None
        if event == "line" and lines:
            lines -= 1
            if not lines:
                holding = threading.Thread(target=driver.hold)
                holding.start()
                holding.join(0.02)  # it may have to wait for this thread
        return trace

    driver, seen = IsolatedStandin(StandinConfig(), Host()), Recorder()
    threading.settrace(trace)
    try:
        driver.start(seen)
    finally:
        threading.settrace(None)
    try:
        assert seen.has("pose", 3)
        for line in range(1, 12):
            start = seen.position
            lines = line
            driver.move_to(Pose(start + np.array([0.04, 0.0, 0.0]), TOOL_DOWN))
            assert seen.wait(lambda: not lines)  # noqa: B023  (it is called here)
            time.sleep(0.25)
            assert np.linalg.norm(seen.position - start) < 0.035, f"at line {line}"
    finally:
        driver.close()
