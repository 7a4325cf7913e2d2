"""What every `ArmDriver` has to do. Subclass `ArmDriverContract`, give it an `arm` fixture, and run it.

class TestMyArm(ArmDriverContract):
    @pytest.fixture
    def arm(self): return ArmUnderTest(lambda host: MyArm(MyArm.Config(), host))
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from robot_rl.arm.driver import MEASURABLE, MOTION, ArmDriver, DriverHost
from robot_rl.clock import WallClock
from robot_rl.geometry import Pose

PATIENCE = 20.0
"""For a busy machine [s]."""


class Host:
    """A program that runs a driver without ROS."""

    def __init__(self):
        self.wall, self.max_age, self.problems = WallClock(), 1.0, []

    def problem(self, text):
        self.problems.append(text)


@dataclass(frozen=True)
class ArmUnderTest:
    """An arm with 10 cm of free space above it.

    Attributes:
        make: Makes the driver.
        gripper_width: Width to which its gripper opens [m]; 0 without a gripper.
        reach: Distance that it may stay away from a set-point [m].
        settle: Lets it come to rest once its motors are on; a weak arm sags first.
    """

    make: Callable[[DriverHost], ArmDriver]
    gripper_width: float = 0.0
    reach: float = 0.002
    settle: Callable[[], None] = lambda: None


class Recorder:
    """Receives measurements."""

    def __init__(self):
        self.parts = defaultdict(list)
        self.threads = set()

    def __call__(self, part, stamp, value):
        self.threads.add(threading.get_ident())
        self.parts[part].append((stamp, value))

    def wait(self, done):
        end = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def has(self, part, count=1):
        return self.wait(lambda: len(self.parts[part]) >= count)

    @property
    def position(self):
        return np.array(self.parts["pose"][-1][1].position)


class ArmDriverContract:
    """The tests."""

    @pytest.fixture
    def driver(self, arm):
        made = arm.make(Host())
        yield made
        made.close()

    @pytest.fixture
    def seen(self, arm, driver):
        recorder = Recorder()
        driver.start(recorder)
        assert recorder.has("pose", 3)
        arm.settle()
        assert recorder.has("pose", len(recorder.parts["pose"]) + 10)
        return recorder

    def test_its_settings_have_defaults(self, driver):
        type(driver).Config()

    def test_it_reports_what_it_measures_with_the_stated_shapes(self, driver, seen):
        assert MOTION <= driver.measures <= MEASURABLE
        for part in driver.measures:
            assert seen.has(part, 5), part
        assert set(seen.parts) == driver.measures, "what is not measured is not reported"
        assert all(seen.parts[part][-1][1].shape == (6,) for part in driver.measures & {"twist", "wrench"})
        joints = seen.parts["joints"][-1][1]
        assert joints.position.shape == joints.velocity.shape
        pose = seen.parts["pose"][-1][1]
        assert abs(float(pose.quaternion @ pose.quaternion) - 1.0) < 1e-3
        assert len(seen.threads) == 1

    def test_stamps_rise_and_are_those_of_the_wall_clock(self, seen):
        assert seen.has("pose", 20)
        stamps = [stamp for stamp, _ in seen.parts["pose"]]
        assert all(np.diff(stamps) > 0)
        assert abs(WallClock().now() - stamps[-1]) < 1e9 * PATIENCE

    def test_it_goes_to_the_set_point(self, arm, driver, seen):
        assert seen.wait(lambda: not driver.faults()), driver.faults()
        here = seen.parts["pose"][-1][1]
        target = Pose(np.add(here.position, (0.0, 0.0, 0.02)), here.quaternion)

        def there():
            driver.move_to(target)
            return bool(np.linalg.norm(seen.position - target.position) <= arm.reach)

        assert seen.wait(there)

    def test_hold_ends_a_motion(self, arm, driver, seen):
        assert seen.wait(lambda: not driver.faults()), driver.faults()
        here = seen.parts["pose"][-1][1]
        target = Pose(np.add(here.position, (0.0, 0.0, 0.08)), here.quaternion)

        def moves():
            driver.move_to(target)
            return bool(np.linalg.norm(seen.position - here.position) > 0.005)

        assert seen.wait(moves), driver.faults()
        driver.hold()
        count = len(seen.parts["pose"])
        assert seen.has("pose", count + 60)
        held = seen.position
        assert seen.has("pose", count + 100)
        assert np.linalg.norm(seen.position - held) < arm.reach
        assert np.linalg.norm(seen.position - target.position) > 0.01

    def test_without_a_fault_it_recovers_by_doing_nothing(self, arm, driver, seen):
        assert seen.wait(lambda: not driver.faults()), driver.faults()
        before = seen.position
        driver.recover()
        count = len(seen.parts["pose"])
        assert seen.has("pose", count + 20)
        assert np.linalg.norm(seen.position - before) < arm.reach

    def test_the_gripper_goes_to_its_width(self, arm, driver, seen):
        driver.move_gripper(arm.gripper_width / 2)
        if arm.gripper_width == 0.0:
            assert not seen.parts["gripper"]
            return

        def there():
            driver.move_gripper(arm.gripper_width / 2)
            widths = seen.parts["gripper"]
            return bool(widths) and abs(widths[-1][1] - arm.gripper_width / 2) < 0.1 * arm.gripper_width

        assert seen.wait(there)

    def test_it_may_be_closed_twice_and_reports_nothing_after(self, driver, seen):
        driver.close()
        driver.close()
        time.sleep(0.1)
        count = sum(map(len, seen.parts.values()))
        time.sleep(0.1)
        assert sum(map(len, seen.parts.values())) == count
