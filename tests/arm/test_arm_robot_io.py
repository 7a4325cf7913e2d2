"""An arm in this process: what stops it, who lets it go on, and what is absent where nothing is measured."""

import time
from dataclasses import replace

import numpy as np
import pytest
from scripted_arm import DOWN, ScriptedArm, ScriptedArmConfig, eventually

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError, StaleStateError
from robot_rl.geometry import Pose

LIMITS = CommandLimits(max_age=2.0)


@pytest.fixture
def make():
    """Makes an arm; its driver is `io.arm`."""
    made = []

    def make(config=None, limits=LIMITS, cap=None, max_age=2.0, prepare=lambda arm: None):
        said = []

        def driver(host):
            arm = ScriptedArm(config or ScriptedArmConfig(), host)
            prepare(arm)
            made.append(arm)
            return arm

        io = ArmRobotIO(driver, limits, cap or ArmCap(), freshness=Freshness(max_age=max_age), report=said.append)
        io.arm, io.said = made[-1], said
        made.append(io)
        return io

    yield make
    for one in made:
        one.close()


def to(io, x=0.5, z=0.2, ttl=0.3):
    return Command(io.wall.now(), ttl, Pose(np.array([x, 0.0, z]), DOWN))


def targets(io):
    return [one for one in io.arm.told if isinstance(one, Pose)]


def test_a_program_that_stood_still_loses_an_episode_and_not_the_run(make):
    io = make()
    late = replace(to(io), stamp=io.wall.now() - 10**9)
    with pytest.raises(RobotLostError, match=r"command expired 0\.7\d\d s before it arrived: this machine stood still"):
        io.command(late)
    io.command(to(io, 0.505))
    assert len(targets(io)) == 1


def test_a_command_at_the_moment_of_a_fault_finds_the_arm_stopped(make):
    io = make()
    for _ in range(10):
        io.arm.fault = "reflex"
        io.command(to(io, 0.505))
        assert io.stopped == "reflex"
        io.arm.fault = None
        io.recover()
    assert not targets(io)


def test_a_fault_stops_the_arm_until_a_person_consents(make):
    io = make()
    io.command(to(io, 0.505))
    assert len(targets(io)) == 1
    io.arm.fault = "protective stop"
    assert eventually(lambda: io.stopped)
    assert io.arm.told[-1] == "hold"
    assert io.stopped == "protective stop"
    assert io.said == ["the arm holds: protective stop"]
    io.arm.fault = None  # by itself: it is not for the program to decide that this is enough
    io.command(to(io, 0.51))
    assert len(targets(io)) == 1, "a stopped arm follows nothing"
    assert io.arm.recovered == 0
    io.recover()
    assert io.stopped is None
    assert io.arm.recovered == 1
    io.command(to(io, 0.51))
    assert len(targets(io)) == 2


@pytest.mark.parametrize("method", ["hold", "faults"])
def test_a_driver_that_fails_stops_the_arm_and_commands_expire_after_it_too(make, method):
    io = make()
    own = getattr(io.arm, method)

    def fail():
        raise OSError("the connection was reset")

    io.command(to(io, 0.505))
    setattr(io.arm, method, fail)
    assert eventually(lambda: io.stopped)
    assert io.stopped == "the arm's driver has failed (OSError: the connection was reset); look at it, then consent"
    setattr(io.arm, method, own)
    assert eventually(lambda: io.arm.told[-1] == "hold")
    io.recover()
    io.command(to(io, 0.505, ttl=0.1))
    assert len(targets(io)) == 2
    assert eventually(lambda: io.arm.told[-1] == "hold", patience=0.5)


def test_a_driver_that_cannot_hold_is_let_go_at_the_end(make):
    io = make()
    own = io.arm.hold

    def fail():
        raise OSError("the connection was reset")

    io.command(to(io, 0.505, ttl=5.0))
    io.arm.hold = fail
    with pytest.raises(OSError, match="reset"):
        io.close()
    assert io.arm.closed == 1
    io.arm.hold = own


def test_a_fault_that_cannot_be_ended_keeps_the_arm_stopped_and_names_the_cure(make):
    io = make()
    io.arm.fault, io.arm.curable = "it has no power", False
    assert eventually(lambda: io.stopped)
    with pytest.raises(ArmStoppedError, match="it has no power; switch it on"):
        io.recover()
    assert io.stopped == "it has no power"


def test_too_much_force_latches_and_too_fast_a_tcp_too(make):
    io = make()
    io.arm.wrench = np.array([0, 0, 200.0, 0, 0, 0])
    assert eventually(lambda: io.stopped)
    assert "allowed are 80 N" in io.stopped
    io.arm.wrench = np.zeros(6)
    assert eventually(lambda: np.linalg.norm(io.read().wrench) < 1.0)
    io.recover()
    io.arm.twist = np.array([0.9, 0, 0, 0, 0, 0])
    assert eventually(lambda: io.stopped)
    assert "the tcp moves at 0.90 m/s" in io.stopped


def test_a_limit_that_latches_while_the_arm_recovers_is_not_released_by_the_consent_before_it(make):
    io = make()
    io.arm.fault = "reflex"
    assert eventually(lambda: io.stopped)
    own = io.arm.recover

    def recover_while_somebody_pushes():
        io.arm.wrench = np.array([100.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        assert eventually(lambda: io.read().peak_force > 80.0)
        io.arm.wrench = np.zeros(6)
        assert eventually(lambda: np.linalg.norm(io.read().wrench) < 1.0)
        own()

    io.arm.recover = recover_while_somebody_pushes
    with pytest.raises(ArmStoppedError, match=r"contact force of \d+ N, allowed are 80 N"):
        io.recover()
    assert "contact force" in io.stopped
    io.arm.recover = own
    io.recover()
    assert io.stopped is None


def test_set_points_pass_the_limits_that_the_safety_node_has(make):
    io = make()
    for _ in range(200):
        io.command(to(io, 1.5))
    assert max(target.position[0] for target in targets(io)) <= LIMITS.box_high[0] + 1e-12
    steps = np.diff([0.5, *(target.position[0] for target in targets(io))])
    assert steps.max() <= LIMITS.max_speed * LIMITS.reaction_time + 1e-9


def test_an_arm_that_is_silent_is_lost_and_comes_back_without_anybody(make):
    io = make(max_age=0.2, limits=replace(LIMITS, max_age=0.2))
    io.arm.silent = True
    assert eventually(lambda: io.parts.age("pose", io.wall.now()) > 0.2)
    with pytest.raises(StaleStateError):
        io.read()
    with pytest.raises(StaleStateError):
        io.command(to(io))
    assert io.stopped is None
    io.arm.silent = False
    assert eventually(lambda: io.parts.age("pose", io.wall.now()) < 0.1)
    io.command(to(io, 0.505))
    assert len(targets(io)) == 1


def test_an_arm_without_a_force_sensor_has_no_wrench_instead_of_zeros(make):
    io = make(ScriptedArmConfig(measures_wrench=False))
    assert not io.measures_wrench
    assert io.read().wrench is None
    assert not io.tare()
    io.command(to(io, 0.505))
    assert len(targets(io)) == 1


def test_the_wrench_is_filtered_tared_and_its_peak_counted_once(make):
    io = make()
    io.arm.wrench = np.array([0, 0, 5.0, 0, 0, 0])
    assert eventually(lambda: io.read().wrench[2] > 4.9)
    time.sleep(0.6)  # what is tared is the mean of half a second
    assert io.tare()
    assert eventually(lambda: abs(io.read().wrench[2]) < 0.5)
    io.arm.wrench = np.array([0, 0, 15.0, 0, 0, 0])
    assert eventually(lambda: io.read().peak_force > 5.0)


def test_what_is_wrong_at_the_start_is_one_line(make):
    with pytest.raises(ConfigError, match=r"max_speed 1 is more than cap_speed 0\.5"):
        make(limits=replace(LIMITS, max_speed=1.0))

    def dead(arm):
        arm.silent, arm.fault = True, "no answer from 10.0.0.9; is it switched on?"

    with pytest.raises(ArmStoppedError, match=r"^no answer from 10\.0\.0\.9; is it switched on\?$"):
        make(prepare=dead)
