"""The control law: it neither sinks nor stops short, and its limits hold whatever is commanded."""

import numpy as np
import pytest

from robot_rl.arm.joints.joint_controller import SMOOTHING, JointController

LOW, HIGH = np.full(3, -1.0), np.full(3, 1.5)
SPEED, LEAD, PERIOD = 1.5, 0.2, 0.01
TOOL_SPEED, TURN_RATE = 0.4, 1.8
JACOBIAN = np.array([[0.1, 0, 0], [0, 0.2, 0.1], [0, 0.1, 0.1], [0, 1, 1], [1, 0, 0], [0, 0, 0]], float)
"""Two of the three joints are parallel: together they turn the tool twice as fast."""


class Servos:
    """Joints that follow their command with a time constant, and stay behind it under load."""

    def __init__(self, position, droop, tau=0.06):
        self.position, self.velocity = np.array(position), np.zeros(3)
        self.droop, self.tau = np.array(droop), tau

    def step(self, command):
        change = (command - self.droop - self.position) * PERIOD / self.tau
        self.position, self.velocity = self.position + change, change / PERIOD
        return self.position, self.velocity


def controller(position):
    made = JointController(LOW, HIGH, SPEED, LEAD, 2 * np.pi / 4096, (TOOL_SPEED, TURN_RATE))
    made.restart(np.array(position))
    return made


def run(law, servos, seconds):
    for _ in range(round(seconds / PERIOD)):
        law.step(servos.position, servos.velocity, PERIOD, JACOBIAN)
        servos.step(law.command)


DROOP = (0.05, 0.0, -0.08)


def test_targets_that_are_the_measured_position_do_not_let_it_sink():
    law, servos = controller([0.2, 0.0, 0.5]), Servos([0.2, 0.0, 0.5], DROOP)
    run(law, servos, 1.0)  # sags once, when the load comes on
    rest = servos.position.copy()
    for _ in range(100):
        law.aim(servos.position)
        run(law, servos, 0.1)
    assert servos.position == pytest.approx(rest, abs=1e-3)


@pytest.mark.parametrize("interval", [0.01, 0.1, 1.0])
def test_a_target_is_reached_under_load_however_often_it_is_set(interval):
    law, servos, target = controller(np.zeros(3)), Servos(np.zeros(3), DROOP), np.array([0.5, -0.5, 0.3])
    farthest = np.zeros(3)
    for _ in range(round(3.0 / interval)):
        law.aim(target)
        run(law, servos, interval)
        farthest = np.maximum(farthest, servos.position * np.sign(target))
    assert servos.position == pytest.approx(target, abs=2e-3)
    assert (farthest <= np.abs(target) + 0.05).all()


def test_hold_ends_a_motion_and_stays():
    law, servos = controller(np.zeros(3)), Servos(np.zeros(3), DROOP)
    law.aim(np.full(3, 1.0))
    run(law, servos, 0.3)
    law.hold()
    run(law, servos, 0.5)
    held, command = servos.position.copy(), law.command.copy()
    run(law, servos, 2.0)
    assert servos.position == pytest.approx(held, abs=1e-3)
    assert law.command == pytest.approx(command, abs=1e-3)


def test_in_contact_the_lead_is_bounded_and_nothing_winds_up():
    law, blocked = controller(np.zeros(3)), np.zeros(3)
    law.aim(np.full(3, 1.0))
    for _ in range(3000):
        command = law.step(blocked, np.zeros(3), PERIOD, JACOBIAN)
    assert command == pytest.approx(np.full(3, LEAD))
    law.aim(np.full(3, -1.0))
    for _ in range(round((2 * LEAD / (TURN_RATE / np.sqrt(5)) + SMOOTHING) / PERIOD)):
        command = law.step(blocked, np.zeros(3), PERIOD, JACOBIAN)
    assert command == pytest.approx(np.full(3, -LEAD)), "it turns round at once"


class SwayingServos:
    """Servos that overshoot, driven from another process: measured and commanded 50 times a second, late.

    Args:
        law: The control law.
        late: From a measurement to the arrival of its command [s].
    """

    frequency, damping, tick = 24.0, 0.4, 0.001  # of an SO-101 [rad/s, of critical, s]

    def __init__(self, law, late):
        self.law, self.late, self.time = law, late, 0.0
        self.position, self.speed, self.goal = np.zeros(3), np.zeros(3), np.zeros(3)
        self.measured, self.velocity, self.underway = np.zeros(3), np.zeros(3), []

    def run(self, seconds):
        """Go on; returns the positions."""
        path = []
        for _ in range(round(seconds / self.tick)):
            if round(self.time / self.tick) % 20 == 0:
                before, self.measured = self.measured, self.position.copy()
                self.velocity = self.velocity + 0.49 * ((self.measured - before) / 0.02 - self.velocity)
                command = self.law.step(self.measured, self.velocity, 0.02, 0.1 * JACOBIAN)
                self.underway.append((self.time + self.late, command))
            while self.underway and self.underway[0][0] <= self.time:
                self.goal = self.underway.pop(0)[1]
            pull = self.goal - np.array(DROOP) - self.position
            self.speed = self.speed + self.tick * self.frequency * (
                self.frequency * pull - 2 * self.damping * self.speed
            )
            self.position, self.time = self.position + self.tick * self.speed, self.time + self.tick
            path.append(self.position)
        return np.array(path)


@pytest.mark.parametrize("late", [0.0, 0.02, 0.03])
def test_servos_that_overshoot_come_to_rest_where_measurements_and_commands_are_late(late):
    law = controller(np.zeros(3))
    servos, target = SwayingServos(law, late), np.array([0.3, -0.2, 0.1])
    servos.run(1.0)
    law.aim(target)
    path = servos.run(3.0)
    assert path[1500:] == pytest.approx(np.broadcast_to(target, (1500, 3)), abs=4e-3)


@pytest.mark.parametrize("late", [0.0, 0.01])
def test_a_policy_that_wants_nothing_lets_it_come_to_rest_although_it_saw_it_50_ms_ago(late):
    law = controller(np.zeros(3))
    servos, rng = SwayingServos(law, late), np.random.default_rng(0)
    servos.run(1.0)

    def act(amount):
        seen = servos.measured.copy()
        path = servos.run(0.05)
        law.aim(seen + amount)
        return np.concatenate((path, servos.run(0.05)))

    wild = np.concatenate([act(rng.choice([-0.05, 0.05], 3)) for _ in range(50)])
    assert np.abs(np.diff(wild, axis=0)).max() / servos.tick < 2.0, "it does not build up"
    calm = np.concatenate([act(0.0) for _ in range(30)])
    assert np.ptp(calm[-1000:], axis=0) == pytest.approx(np.zeros(3), abs=4e-3)


def test_limits_hold_for_10000_random_commands():
    rng = np.random.default_rng(0)
    law, servos = controller(np.zeros(3)), Servos(np.zeros(3), DROOP, tau=0.1)
    before = law.command
    for k in range(10_000):
        if rng.random() < 0.3:
            law.aim(rng.normal(0, 3, 3))
        if rng.random() < 0.02:
            law.hold()
        if rng.random() < 0.01:
            servos.droop = rng.normal(0, 0.1, 3)
        period = rng.uniform(0, 2 * PERIOD)
        command = law.step(servos.position, servos.velocity, period, JACOBIAN)
        change = command - before
        assert (np.abs(change) <= SPEED * period + 1e-12).all(), k
        twist = JACOBIAN @ change
        assert np.linalg.norm(twist[:3]) <= TOOL_SPEED * period + 1e-12, k
        assert np.linalg.norm(twist[3:]) <= TURN_RATE * period + 1e-12, k
        assert (command >= LOW - 1e-12).all(), k
        assert (command <= HIGH + 1e-12).all(), k
        before = command
        servos.step(command)
        # The position may run away from the command by itself; the command then follows at its largest speed.
        assert (np.abs(command - servos.position) <= LEAD + 0.5).all(), k


def test_a_joint_outside_its_limits_is_led_back():
    law, servos = controller([2.0, 0.0, 0.0]), Servos([2.0, 0.0, 0.0], np.zeros(3))
    run(law, servos, 2.0)
    assert servos.position[0] == pytest.approx(HIGH[0], abs=1e-3)
    assert servos.position[1:] == pytest.approx([0.0, 0.0])
