"""The simulated arm is brought to poses: in a straight line, within the limits, and it rests when that is said."""

import numpy as np
import pytest

from robot_rl.clock import NS_PER_S
from robot_rl.env.move_arm import PERIOD, Travel
from robot_rl.env.registry import make_workcell
from robot_rl.env.supervision import E_STOP, Holding
from robot_rl.errors import CommandRefusedError, RobotLostError
from robot_rl.geometry import Pose

SPEED, TURN_RATE = 0.1, 0.5


class Watched:
    """An arm whose commands are kept."""

    def __init__(self, io):
        self._io, self.commands, self.stops = io, [], 0

    def read(self):
        return self._io.read()

    def command(self, command):
        self.commands.append(command)
        self._io.command(command)

    def stop(self):
        self.stops += 1
        self._io.stop()


@pytest.fixture
def cell():
    made = make_workcell("reach")
    made.task.reset(0)
    yield made, Watched(made.io)
    made.close()


def test_it_goes_straight_within_its_speed_and_rests_where_it_says(cell):
    made, arm = cell
    start = arm.read().T_base_tcp
    target = start @ Pose.from_rotvec(np.array([0.05, 0.03, -0.04]), np.array([0.1, 0.2, -0.3]))
    rest = Travel(arm, made.clock, SPEED, TURN_RATE).go(target)
    off = (rest.T_base_tcp.inverse() @ target).vector()
    assert np.linalg.norm(off[:3]) < 5e-3
    assert np.linalg.norm(off[3:]) < 0.02
    assert rest.until - rest.since == pytest.approx(5 * PERIOD * NS_PER_S, rel=0.01)
    assert np.linalg.norm(made.io.read().twist[:3]) < 2e-3
    way = (target.position - start.position) / np.linalg.norm(target.position - start.position)
    before = arm.commands[0].T_base_target
    for command in arm.commands:
        pose = command.T_base_target
        beside = np.cross(pose.position - start.position, way)
        assert np.linalg.norm(beside) < 3e-4  # where it begins is measured, by both of us
        change = (before.inverse() @ pose).vector()
        assert np.linalg.norm(change[:3]) <= SPEED * PERIOD * 1.001
        assert np.linalg.norm(change[3:]) <= TURN_RATE * PERIOD * 1.001
        before = pose
    assert not arm.stops


def test_what_ends_the_travel_stops_the_arm(cell):
    made, arm = cell
    target = arm.read().T_base_tcp @ Pose(np.array([0.1, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))

    def check():
        if len(arm.commands) == 4:
            raise CommandRefusedError("the consent was taken back")

    with pytest.raises(CommandRefusedError, match="consent"):
        Travel(arm, made.clock, SPEED, TURN_RATE, check).go(target)
    assert (len(arm.commands), arm.stops) == (4, 1)


def test_it_waits_until_what_shall_be_seen_has_been_seen(cell):
    made, arm = cell
    asked = []

    def shown(since, until):
        asked.append((since, until))
        return len(asked) == 3

    rest = Travel(arm, made.clock, SPEED, TURN_RATE, shown=shown).rest()
    assert (rest.since, rest.until) == asked[2]
    with pytest.raises(RobotLostError, match="what shall be seen at rest has not been seen within 10 s"):
        Travel(arm, made.clock, SPEED, TURN_RATE, shown=lambda since, until: False).rest()


def test_an_arm_that_is_held_and_let_go_does_not_rush_after_its_set_point(cell):
    made, _ = cell
    holding = Holding(made.io)
    arm, fastest = Watched(holding.io), []

    def check():
        fastest.append(float(np.linalg.norm(made.io.read().twist[:3])))
        if len(fastest) == 10:
            holding.hold(E_STOP, "pressed")

    start = arm.read().T_base_tcp
    target = start @ Pose(np.array([0.15, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]))
    travel = Travel(arm, made.clock, 0.05, TURN_RATE, check)
    left = (travel.go(target).T_base_tcp.inverse() @ target).vector()
    assert np.linalg.norm(left[:3]) > 0.1, "it was held on the way"
    assert arm.stops == 1
    holding.release(E_STOP)
    made.clock.sleep_until(made.clock.now() + NS_PER_S)
    assert np.linalg.norm(made.io.read().twist[:3]) < 2e-3, "let go, it stays where it is"
    left = (travel.go(target).T_base_tcp.inverse() @ target).vector()
    assert np.linalg.norm(left[:3]) < 5e-3
    assert max(fastest) < 1.3 * 0.05
