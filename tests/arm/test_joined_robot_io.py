"""Several arms behind one interface: what one of them cannot do, none does."""

import time
from dataclasses import replace

import numpy as np
import pytest
from fakes import OneOfArms, fake_arms
from robot_io_contract import RobotIOContract, RobotUnderTest
from scripted_arm import ScriptedArm, ScriptedArmConfig, eventually

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.joined_robot_io import JoinedRobotIO
from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ActionError, ArmStoppedError, CommandRefusedError, RobotLostError, StaleStateError
from robot_rl.geometry import Pose

STILL = np.zeros(6, np.float32)
BOTH = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0], np.float32)


def measured(io):
    return {name: state.T_base_tcp for name, state in io.read().arms.items()}


class SteadyClock(FakeClock):
    """Goes on in small steps, between which another thread has its turn."""

    def sleep_until(self, stamp):
        while self.now() < stamp:
            super().sleep_until(min(self.now() + NS_PER_S // 50, stamp))
            time.sleep(1e-5)


class TestJoined(RobotIOContract):
    @pytest.fixture(params=["left", "right"])
    def robot(self, request):
        cell, robots = fake_arms(clock=SteadyClock(start=NS_PER_S))
        arm = robots[request.param]
        return RobotUnderTest(
            OneOfArms(cell.io, request.param, lambda: measured(cell.io)),
            cell.clock,
            arm.freeze,
            max_age=arm.max_age,
            joints=3,
        )


@pytest.fixture
def moving():
    """A cell whose arms are both on their way, and each arm."""
    cell, robots = fake_arms()
    env = RobotEnv(cell)
    env.start(0, "e")
    env.advance(BOTH)
    return env, cell, robots


def stand_within(cell, robots, seconds):
    """Whether both arms have come to rest that much later, and stay there."""
    cell.clock.sleep_until(cell.clock.now() + round(seconds * NS_PER_S))
    places = [robot.position() for robot in robots.values()]
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S)
    return all(np.array_equal(robot.position(), place) for robot, place in zip(robots.values(), places, strict=True))


@pytest.mark.parametrize("arm", ["left", "right"])
def test_one_stale_arm_stops_both(moving, arm):
    env, cell, robots = moving
    began, stops = cell.clock.now(), [robot.stops for robot in robots.values()]
    robots[arm].freeze()
    with pytest.raises(StaleStateError):
        env.advance(BOTH)
    assert (cell.clock.now() - began) / NS_PER_S <= 0.3
    assert all(robot.stops > before for robot, before in zip(robots.values(), stops, strict=True))
    assert stand_within(cell, robots, 0.0)


@pytest.mark.parametrize("arm", ["left", "right"])
def test_one_arm_that_refuses_or_is_lost_stops_both_before_either_goes_on(moving, arm):
    env, cell, robots = moving
    for error in (CommandRefusedError("too fast"), RobotLostError("the cable is out")):

        def refuse(command, error=error):
            raise error

        own, robots[arm].command = robots[arm].command, refuse
        with pytest.raises(type(error)):
            env.advance(BOTH)
        assert stand_within(cell, robots, 0.0)
        robots[arm].command = own
        env.start(1, "f")


def test_one_stop_that_fails_stops_the_other_arm(moving):
    _, cell, robots = moving

    def lost():
        raise RobotLostError("gone")

    robots["left"].stop = lost
    with pytest.raises(RobotLostError):
        cell.io.stop()
    assert robots["right"].stops == 1


@pytest.fixture
def stoppable():
    """Two arms of which each may stop itself, as one; and their drivers by name."""
    drivers, arms = {}, {}

    def make(name):
        def driver(host):
            drivers[name] = ScriptedArm(ScriptedArmConfig(), host)
            return drivers[name]

        return ArmRobotIO(driver, CommandLimits(max_age=2.0), ArmCap(), freshness=Freshness(max_age=2.0))

    for name in ("left", "right"):
        arms[name] = make(name)
    yield JoinedRobotIO(arms, arms["left"].wall, max_skew=2.0), drivers
    for one in arms.values():
        one.close()


def onwards(io):
    """A command that moves both arms."""
    points = {
        n: SetPoint(Pose(a.T_base_tcp.position + 0.002, a.T_base_tcp.quaternion)) for n, a in io.read().arms.items()
    }
    return Command.of_arms(time.time_ns(), 5.0, points)


@pytest.mark.parametrize("arm", ["left", "right"])
def test_one_arm_that_has_stopped_itself_holds_both_until_a_person_consents(stoppable, arm):
    io, drivers = stoppable
    io.command(onwards(io))
    assert io.stopped is None
    drivers[arm].fault = "reflex"
    assert eventually(lambda: io.stopped == f"arm {arm}: reflex")
    io.command(onwards(io))
    for driver in drivers.values():
        assert driver.told[-1] == "hold"
    drivers[arm].curable = False
    with pytest.raises(ArmStoppedError, match=f"arm {arm}: reflex; switch it on"):
        io.recover()
    drivers[arm].curable = True
    io.recover()
    assert io.stopped is None
    io.command(onwards(io))
    for driver in drivers.values():
        assert driver.told[-1] != "hold"


@pytest.mark.parametrize("arm", ["left", "right"])
def test_an_arm_that_stops_while_it_is_commanded_holds_the_other_one_at_once(stoppable, arm):
    io, drivers = stoppable
    for _ in range(5):
        command = onwards(io)
        drivers[arm].fault = "reflex"
        io.command(command)
        assert io.stopped == f"arm {arm}: reflex"
        assert all(driver.told[-1:] in ([], ["hold"]) for driver in drivers.values())
        io.recover()


def test_commands_that_end_end_together(moving):
    _, cell, robots = moving
    assert stand_within(cell, robots, 0.3), "three periods without a new command"


def test_states_that_are_too_far_apart_in_time_are_refused_and_the_skew_is_known():
    cell, robots = fake_arms()
    cell.io.read()
    assert cell.io.skew == 0.0
    robots["right"].freeze()
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S // 50)
    cell.io.read()
    assert cell.io.skew == pytest.approx(0.02)
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S // 20)
    with pytest.raises(StaleStateError, match=r"state of the arm right, from the other arms on, is 0\.070 s old"):
        cell.io.read()


def test_one_bad_set_point_is_sent_to_nobody():
    cell, robots = fake_arms()
    here = cell.io.read().arms["left"].T_base_tcp
    nowhere = SetPoint(Pose(np.array([np.nan, 0.0, 0.0]), here.quaternion))
    with pytest.raises(ActionError, match="arm right: set-point is no pose"):
        cell.io.command(Command.of_arms(cell.clock.now(), 1.0, {"left": SetPoint(here), "right": nowhere}))
    with pytest.raises(ActionError, match="one set-point for the arms left, right"):
        cell.io.command(Command(cell.clock.now(), 1.0, here))
    assert not any(robot.commands or robot.stops for robot in robots.values())


def test_frames_of_the_arms_are_named_by_their_arms():
    cell, robots = fake_arms()
    frame = np.zeros((2, 2, 3), np.uint8)

    class Sees:
        def __init__(self, robot):
            self.read = lambda: replace(robot.read(), images={"wrist": frame})

    joined = JoinedRobotIO({name: Sees(robot) for name, robot in robots.items()}, cell.clock)
    assert set(joined.read().images) == {"left_wrist", "right_wrist"}
