"""Commands under attack: what the guard lets through never moves the simulated arm out of its limits."""

import numpy as np
import pytest
from arm_rig import ArmRig
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command
from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply

BOX = CommandLimits(box_low=(0.47, -0.03, 0.08), box_high=(0.53, 0.03, 0.12), max_speed=0.1, max_turn_rate=0.8)
BOX_MARGIN = 0.002
"""How far the tcp may swing out of the box [m]: the arm is a spring that gives way to its own inertia."""
SPEED_MARGIN = 0.3
"""By what share the tcp may be faster than the limit, for the same reason."""
COMMANDS = 10_000
EXAMPLES = 100

number = st.one_of(
    st.floats(-0.1, 0.1), st.sampled_from([-1e9, 1e9, 0.0, np.nan, np.inf]), st.sampled_from([-0.06, 0.06])
)
attack = st.tuples(
    st.sampled_from(["absolute", "relative", "alternate", "repeat"]),
    st.tuples(number, number, number),
    st.tuples(number, number, number),
    st.sampled_from([0.002, 0.004, 0.01, 0.02, 0.1, 0.3]),  # time to the next one [s]
    st.sampled_from([-1.0, 0.0, 0.01, 0.3, 1e6, np.nan]),  # ttl [s]
)


@pytest.fixture(scope="module")
def rig():
    return ArmRig()


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(attack, min_size=COMMANDS // EXAMPLES, max_size=COMMANDS // EXAMPLES))
def test_no_command_moves_the_arm_out_of_the_box_or_too_fast(rig, attacks):
    rig.reset()
    made, io = CommandGuard(BOX), rig.io
    low, high = np.array(BOX.box_low) - BOX_MARGIN, np.array(BOX.box_high) + BOX_MARGIN
    last, sign, told = None, 1.0, -1
    for kind, offset, rotvec, wait, ttl in attacks:
        state = io.read()
        if state.stamp > told:  # a driver publishes each measurement once
            made.measured_pose(state.T_base_tcp, state.stamp)
            made.measured_wrench(state.wrench, state.stamp)
            told = state.stamp
        sign = -sign
        factor = 100.0 * sign if kind == "alternate" else 1.0
        origin = np.zeros(3) if kind == "absolute" else state.T_base_tcp.position
        with np.errstate(all="ignore"):
            turn = quat_from_rotvec(np.clip(np.nan_to_num(np.array(rotvec)), -3, 3) * 10)
            target = Pose(origin + factor * np.array(offset), quat_multiply(state.T_base_tcp.quaternion, turn))
        command = last if kind == "repeat" and last is not None else Command(io.now(), ttl, target)
        last = command
        try:
            io.command(made.check(command, io.now()).command)
        except RobotRLError:
            io.stop()
            made.stop(io.now())
        for _ in range(max(1, round(wait / 0.01))):
            rig.sleep(min(wait, 0.01))
            truth = io.read()
            position = rig.pose().position
            assert (low <= position).all(), position
            assert (position <= high).all(), position
            speed, rate = np.linalg.norm(truth.twist[:3]), np.linalg.norm(truth.twist[3:])
            assert speed <= BOX.max_speed * (1 + SPEED_MARGIN)
            assert rate <= BOX.max_turn_rate * (1 + SPEED_MARGIN)
