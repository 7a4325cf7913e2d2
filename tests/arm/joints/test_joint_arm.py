"""A joint arm under random commands: what reaches its servos keeps the limits, whatever is asked for."""

import time

import numpy as np
import pytest
from arm_driver_contract import Host, Recorder
from servo_peer import LagBody, ServoPeer

from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.arm.servo.servo_arm import So101, So101Config
from robot_rl.geometry import Pose

COUNT = 2 * np.pi / 4096
MIDDLE = 2050.0
"""Of every calibrated range of the peer [counts]."""


@pytest.mark.parametrize("family", ["feetech", "dynamixel"])
def test_limits_hold_for_random_set_points(family, tmp_path):
    peer = ServoPeer(family, tmp_path / "tty", LagBody([MIDDLE] * 6)).start()
    config = So101Config(port=peer.link, servos=family, timeout=0.2, joint_speed=1.0, joint_lead=0.1)
    arm = So101(config, Host())
    seen = Recorder()
    arm.start(seen)
    rng, end, sent = np.random.default_rng(0), time.monotonic() + 4.0, 0
    try:
        assert seen.has("pose", 3)
        while time.monotonic() < end:
            near = seen.parts["pose"][-1][1].position
            position = rng.normal(near, 0.05) if rng.random() < 0.5 else rng.normal(0, 1.0, 3)
            arm.move_to(Pose.from_rotvec(position, rng.normal(0, 2, 3)))
            arm.move_gripper(rng.normal(0.04, 0.1))
            if rng.random() < 0.05:
                arm.hold()
            sent += 1
            time.sleep(0.002)
    finally:
        arm.close()
        peer.end()
    goals = np.array(peer.goals_seen)
    assert sent > 100
    assert len(goals) > 50
    chain = so101_chain()
    angles = (goals[:, :5] - MIDDLE) * COUNT
    assert (angles >= chain.low - COUNT).all()
    assert (angles <= chain.high + COUNT).all()
    lows, highs = 600 - np.arange(1, 7), 3500 + np.arange(1, 7)
    assert ((goals >= lows) & (goals <= highs)).all()
    # A command makes up for no more than one lost cycle.
    assert np.abs(np.diff(angles, axis=0)).max() <= 1.0 * 2 / config.rate + 2 * COUNT
    assert all(np.isfinite(pose.position).all() for _, pose in seen.parts["pose"])
