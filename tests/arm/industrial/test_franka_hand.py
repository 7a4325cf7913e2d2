"""A hand of a Franka that does not end a motion: what it was told meanwhile is not done when it does."""

import threading
import time

import pytest
from scripted_arm import eventually

from robot_rl.arm.industrial.franka_hand import STROKE, FrankaHand
from robot_rl.errors import ArmStoppedError

SPEED = 10.0
"""Of the fingers [m/s]: a motion counts as one that does not end after 3 s."""


class BlockedHand:
    """As franky's, with a motion that ends only when it is stopped, or let go."""

    server_version, width = 3, STROKE

    def __init__(self):
        self.moved = []
        self.answers = True
        self.goes_on = threading.Event()

    def move(self, width, speed):
        self.moved.append(width)
        self.goes_on.wait()
        self.width = width

    def stop(self):
        if self.answers:
            self.goes_on.set()


@pytest.fixture
def gripper():
    return BlockedHand()


@pytest.fixture
def hand(gripper):
    hand = FrankaHand(gripper, SPEED, (RuntimeError,), lambda text: None)
    hand.start()
    hand.move(0.02)
    assert eventually(lambda: gripper.moved == [0.02])
    hand.move(0.07)
    assert eventually(hand.fault)
    yield hand
    gripper.goes_on.set()
    hand.close()


def test_consent_does_not_carry_out_what_was_commanded_before_it(hand, gripper):
    gripper.answers = False
    with pytest.raises(ArmStoppedError, match="does not answer"):
        hand.recover()
    gripper.answers = True
    hand.recover()
    assert hand.fault() is None
    time.sleep(0.2)
    assert gripper.moved == [0.02]
    hand.move(0.07)
    assert eventually(lambda: gripper.moved == [0.02, 0.07]), "the next command counts"


def test_a_motion_that_ends_by_itself_is_not_followed_by_another_one_before_consent(hand, gripper):
    gripper.goes_on.set()
    time.sleep(0.2)
    assert gripper.moved == [0.02]
    assert hand.fault()
