from dataclasses import replace

import numpy as np
import pytest
from arm_rig import EXACT, ArmRig

from robot_rl.errors import StaleStateError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, quat_rotate, rotvec_from_quat
from sim.sensing import Sensing, WrenchFilter

STATED = Sensing()
MS = 1_000_000


@pytest.mark.parametrize("delay_ms", [10, 30])
def test_a_state_is_the_truth_of_as_long_ago_as_stated(delay_ms):
    rig = ArmRig(sensing=replace(EXACT, delay=delay_ms * 1e-3))
    rig.go((0.03, 0.02, 0.02), (0.0, 0.0, 0.2))
    truth = {}
    for _ in range(100):
        rig.sleep(0.002)
        truth[rig.io.now()] = (rig.pose(), rig.data.qpos.copy())
    state = rig.io.read()
    assert rig.io.now() - state.stamp == delay_ms * MS
    pose, q = truth[state.stamp]
    assert state.T_base_tcp.position == pytest.approx(pose.position, abs=1e-12)
    assert abs(state.T_base_tcp.quaternion @ pose.quaternion) == pytest.approx(1.0, abs=1e-12)
    assert state.joint_position == pytest.approx(q, abs=1e-12)
    moved = np.linalg.norm(rig.pose().position - pose.position)
    assert moved > 1e-4, "the arm did not move, so the delay was not seen"


def test_the_twist_is_the_derivative_of_the_pose():
    rig = ArmRig(sensing=EXACT)
    rig.go((0.03, 0.02, 0.02), (0.0, 0.1, 0.2))
    rig.sleep(0.1)
    earlier = rig.io.read()
    rig.sleep(0.01)
    later = rig.io.read()
    a, b = earlier.T_base_tcp, later.T_base_tcp
    assert later.stamp - earlier.stamp == 10 * MS
    mean = 0.5 * (earlier.twist + later.twist)
    assert mean[:3] == pytest.approx((b.position - a.position) / 0.01, abs=1e-3)
    turn = rotvec_from_quat(quat_multiply(b.quaternion, quat_conjugate(a.quaternion)))
    assert mean[3:] == pytest.approx(turn / 0.01, abs=5e-3)
    assert np.linalg.norm(mean[:3]) > 0.02
    assert np.linalg.norm(mean[3:]) > 0.1


def test_noise_has_the_stated_size_and_no_bias():
    rig = ArmRig(sensing=STATED)
    rig.sleep(0.1)
    states, truth = [rig.io.read() for _ in range(1500)], rig.pose()
    turns = [
        rotvec_from_quat(quat_multiply(quat_conjugate(truth.quaternion), state.T_base_tcp.quaternion))
        for state in states
    ]
    wrenches = np.array([state.wrench for state in states])
    for samples, sigma in (
        (np.array([state.T_base_tcp.position - truth.position for state in states]), STATED.position_noise),
        (np.array(turns), STATED.rotation_noise),
        (wrenches[:, :3], STATED.force_noise),
        (wrenches[:, 3:], STATED.torque_noise),
    ):
        assert samples.std(axis=0) == pytest.approx(sigma, rel=0.1)
        assert np.abs(samples.mean(axis=0)).max() < 0.15 * sigma


def test_the_wrench_is_that_of_the_environment_on_the_tool_in_the_tcp_frame():
    """A known force and torque at the tip, given in the base frame, has to come out in all six components."""
    rig = ArmRig()
    rig.go((0.0, 0.0, 0.05), (0.1, -0.15, 0.3))  # not straight down, so that a wrong frame shows
    rig.sleep(1.5)
    before = rig.io.read().wrench  # the tool's weight seen from another angle than at the tare
    tool = rig.model.body("tool").id
    force, torque = np.array([3.0, -2.0, 4.0]), np.array([0.2, 0.1, -0.3])
    rig.data.xfrc_applied[tool, :3] = force
    rig.data.xfrc_applied[tool, 3:] = torque + np.cross(rig.pose().position - rig.data.xipos[tool], force)
    rig.sleep(1.5)
    felt = rig.io.read().wrench - before
    back = quat_conjugate(rig.pose().quaternion)
    assert felt[:3] == pytest.approx(quat_rotate(back, force), abs=0.05)
    assert felt[3:] == pytest.approx(quat_rotate(back, torque), abs=0.02)


def test_pressing_down_is_felt_as_a_force_along_minus_z_as_large_as_the_contacts():
    rig = ArmRig()
    rig.go((0.0, 0.0, -0.1))
    rig.sleep(2.0)
    state, contact = rig.io.read(), rig.contact_force()
    assert contact[2] > 15.0
    expected = quat_rotate(quat_conjugate(rig.pose().quaternion), contact)
    assert expected[2] < 0.0
    assert state.wrench[2] == pytest.approx(expected[2], rel=0.05)
    assert state.wrench[:3] == pytest.approx(expected, abs=0.05 * np.linalg.norm(contact))
    assert state.peak_force >= np.linalg.norm(state.wrench[:3]) * 0.95


def test_the_weight_of_the_tool_is_tared_away():
    rig = ArmRig()
    rig.sleep(0.5)
    assert np.abs(rig.io.read().wrench).max() < 0.01
    rig.go((0.04, -0.03, 0.04), (0.0, 0.0, 0.3))  # elsewhere and turned about the vertical: still nothing
    rig.sleep(2.0)
    assert np.abs(rig.io.read().wrench).max() < 0.05


def test_peak_force_is_the_largest_since_the_last_read():
    rig = ArmRig()
    rig.go((0.0, 0.0, -0.1))
    peaks, forces = [], []
    for _ in range(60):
        rig.sleep(0.01)
        state = rig.io.read()
        peaks.append(state.peak_force)
        forces.append(np.linalg.norm(state.wrench[:3]))
    hit = ArmRig()
    hit.go((0.0, 0.0, -0.1))
    hit.sleep(0.6)
    assert hit.io.read().peak_force == pytest.approx(max(peaks))
    assert max(peaks) >= max(forces)
    assert hit.io.read().peak_force == 0.0
    hit.sleep(0.01)
    assert hit.io.read().peak_force == pytest.approx(peaks[-1], rel=0.1)


def test_the_filter_is_the_first_order_low_pass_it_claims_to_be():
    cutoff, period, batch = 15.0, 0.002, 5
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(40 * batch, 6))
    fast, a, y = WrenchFilter(cutoff, period, batch), 1.0 - np.exp(-2 * np.pi * cutoff * period), np.ones(6)
    fast.restart(np.ones(6))
    for start in range(0, len(inputs), batch):
        fast.inputs[:] = inputs[start : start + batch]
        fast.update()
        for x in inputs[start : start + batch]:
            y = y + a * (x - y)
        assert fast.value == pytest.approx(y)


def test_the_filter_lets_63_percent_of_a_step_through_in_one_time_constant():
    period = 1.0 / (2 * np.pi * 15.0) / 50
    filter_ = WrenchFilter(15.0, period, 50)
    filter_.inputs[:] = 1.0
    filter_.update()
    assert filter_.value == pytest.approx(1.0 - np.exp(-1.0))


class StillCamera:
    """Keeps the joint positions that it is asked to show, and draws noise as a real one does."""

    def __init__(self):
        self.seen = []

    def render(self, qpos, rng):
        self.seen.append(qpos.copy())
        rng.normal(size=100)
        return {"still": np.zeros((2, 2, 3), np.uint8)}


def test_frames_are_as_old_as_stated():
    rig, camera = ArmRig(), StillCamera()
    rig.io.attach_cameras(camera)
    rig.go((0.03, 0.0, 0.03))
    truth = {}
    for _ in range(100):
        rig.sleep(0.002)
        truth[rig.io.now()] = rig.data.qpos.copy()
    assert "still" in rig.io.read().images
    assert camera.seen[-1] == pytest.approx(truth[rig.io.now() - round(EXACT.camera_delay * 1e9)], abs=1e-12)


def test_looking_does_not_change_what_the_other_sensors_say():
    blind, seeing = ArmRig(sensing=STATED), ArmRig(sensing=STATED)
    seeing.io.attach_cameras(StillCamera())
    for _ in range(3):
        for rig in (blind, seeing):
            rig.sleep(0.1)
        a, b = blind.io.read(), seeing.io.read()
        assert np.array_equal(a.T_base_tcp.position, b.T_base_tcp.position)
        assert np.array_equal(a.wrench, b.wrench)


def test_a_dead_driver_is_noticed_also_across_a_reset():
    rig = ArmRig()
    rig.io.history.frozen = True
    rig.sleep(0.3)
    with pytest.raises(StaleStateError):
        rig.io.read()
    rig.reset()
    with pytest.raises(StaleStateError):
        rig.io.read()
    rig.io.history.frozen = False
    rig.sleep(0.02)
    assert isinstance(rig.io.read().T_base_tcp, Pose)


def test_an_episode_does_not_depend_on_when_it_starts():
    """Samples are taken on a grid of 10 ms; a reset in between starts a new one."""
    rigs = ArmRig(sensing=STATED), ArmRig(sensing=STATED)
    rigs[1].sleep(0.006)
    rigs[1].reset()
    states = []
    for rig in rigs:
        rig.go((0.0, 0.0, -0.05))
        rig.sleep(0.5)
        states.append(rig.io.read())
    assert np.array_equal(states[0].T_base_tcp.position, states[1].T_base_tcp.position)
    assert np.array_equal(states[0].wrench, states[1].wrench)
    assert states[0].peak_force == states[1].peak_force
