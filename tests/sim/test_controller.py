from dataclasses import replace

import mujoco
import numpy as np
import pytest
from arm_rig import ArmRig

from robot_rl.errors import DivergedError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat
from sim.arm.fr3 import ARM_DOF, TORQUE_LIMITS
from sim.controller import ImpedanceController, ImpedanceGains

GAINS = ImpedanceGains()
STATIC_FORCE = GAINS.translation * GAINS.max_translation_error
"""The controller cannot press harder at rest [N]."""
DEEP = (0.0, 0.0, -0.1)


def turn_between(a: Pose, b: Pose) -> float:
    return float(np.linalg.norm(rotvec_from_quat(quat_multiply(quat_conjugate(a.quaternion), b.quaternion))))


def test_the_gains_are_those_that_the_limits_were_argued_from():
    assert pytest.approx(20.0) == STATIC_FORCE


def test_holds_its_pose_against_gravity():
    rig = ArmRig()
    rig.sleep(2.0)
    assert np.linalg.norm(rig.pose().position - rig.start.position) < 1e-4
    assert turn_between(rig.pose(), rig.start) < 1e-3


@pytest.mark.parametrize(
    ("offset", "rotvec"),
    [((0.0, 0.0, 0.03), (0, 0, 0)), ((0.04, -0.04, 0.01), (0, 0, 0.3)), ((-0.05, 0.03, 0.02), (0.15, -0.1, -0.2))],
)
def test_reaches_a_set_point(offset, rotvec):
    rig = ArmRig()
    rig.go(offset, rotvec)
    rig.sleep(2.0)
    assert rig.pose().position - rig.start.position == pytest.approx(offset, abs=3e-4)
    wanted = rotvec_from_quat(quat_multiply(quat_conjugate(rig.start.quaternion), rig.pose().quaternion))
    assert wanted == pytest.approx(rotvec, abs=3e-3)


def test_a_small_step_is_followed_without_much_overshoot():
    rig = ArmRig()
    rig.go((0.0, 0.0, 0.005))
    heights = []
    for _ in range(60):
        rig.sleep(0.01)
        heights.append(rig.pose().position[2] - rig.start.position[2])
    assert max(heights) < 0.0055
    assert np.argmax(np.array(heights) > 0.0045) < 30  # nine tenths within 0.3 s


def test_the_force_at_rest_is_the_stiffness_times_the_clipped_error():
    rig = ArmRig()
    rig.go(DEEP)
    rig.sleep(2.0)
    assert rig.contact_force()[2] == pytest.approx(STATIC_FORCE, abs=2.0)
    rig.go((0.0, 0.0, rig.pose().position[2] - rig.start.position[2] - 0.004))
    rig.sleep(1.0)
    assert rig.contact_force()[2] == pytest.approx(0.004 * GAINS.translation, abs=1.0)


def test_is_stable_in_stiff_contact_after_an_impact():
    rig = ArmRig()
    rig.go(DEEP)
    rig.sleep(0.5)  # it has hit the block by now
    heights, forces = [], []
    for _ in range(250):
        rig.sleep(0.002)
        heights.append(rig.pose().position[2])
        forces.append(rig.contact_force()[2])
    early, late = slice(0, 125), slice(125, 250)
    assert np.ptp(heights[late]) <= max(np.ptp(heights[early]), 1e-6), "the oscillation grows"
    assert np.ptp(heights[late]) < 2e-5
    assert np.ptp(forces[late]) < 0.5
    assert min(forces[late]) > 0.0, "it bounces"


def test_torques_stay_within_the_motors_limits_whatever_the_gains():
    rig = ArmRig(ImpedanceGains(translation=2e5, rotation=1e4))
    rig.go((0.05, 0.05, 0.05))
    saturated = 0
    for _ in range(200):
        rig.sleep(0.002)
        torque = np.abs(rig.data.actuator_force[:ARM_DOF])
        assert (torque <= TORQUE_LIMITS * (1 + 1e-9)).all()
        saturated += (torque > 0.999 * TORQUE_LIMITS).any()
    assert saturated, "the test did not reach the limits"


def test_normal_work_stays_far_from_the_torque_limits():
    rig, largest = ArmRig(), np.zeros(ARM_DOF)
    for offset in (DEEP, (0.05, 0.0, 0.03), (-0.05, 0.05, 0.0)):
        rig.go(offset)
        for _ in range(200):
            rig.sleep(0.002)
            largest = np.maximum(largest, np.abs(rig.data.actuator_force[:ARM_DOF]))
    assert (largest < 0.8 * TORQUE_LIMITS).all()


def nullspace_pose(rig: ArmRig, way: float) -> np.ndarray:
    """Joint angles with the same tcp pose and the elbow elsewhere, by small steps along the nullspace of J."""
    data, J, site = mujoco.MjData(rig.model), np.zeros((6, rig.model.nv)), rig.model.site("tcp").id
    data.qpos[:], previous = rig.q_start, np.ones(ARM_DOF)
    for _ in range(200):
        mujoco.mj_kinematics(rig.model, data)
        mujoco.mj_comPos(rig.model, data)
        mujoco.mj_jacSite(rig.model, data, J[:3], J[3:], site)
        direction = np.linalg.svd(J)[2][-1]
        direction *= np.sign(direction @ previous)
        data.qpos[:] += way / 200 * direction
        previous = direction
    return data.qpos.copy()


def test_the_posture_torque_moves_the_elbow_and_not_the_tcp():
    rig = ArmRig()
    rig.reset(nullspace_pose(rig, 0.3))
    before = rig.data.qpos.copy()
    farthest = 0.0
    for _ in range(150):
        rig.sleep(0.02)
        farthest = max(farthest, float(np.linalg.norm(rig.pose().position - rig.start.position)))
    assert np.linalg.norm(rig.data.qpos - before) > 0.1
    assert farthest < 1e-3


def test_the_law_is_the_one_that_is_written():
    """The torque against the textbook formula, with the inertia matrix inverted and nothing cached."""
    rig = ArmRig()
    rig.go((0.004, -0.003, 0.002), (0.02, 0.0, -0.03))
    rig.sleep(0.1)  # the ramp is over and the arm still moves
    model, data = rig.model, rig.data
    controller = ImpedanceController(model, data, replace(GAINS, ramp=0.0))
    target = Pose(np.add(rig.start.position, (0.01, 0.0, 0.05)), rig.start.quaternion)
    controller.set_target(target)
    controller.step()
    J, M = np.zeros((6, model.nv)), np.zeros((model.nv, model.nv))
    mujoco.mj_jacSite(model, data, J[:3], J[3:], model.site("tcp").id)
    mujoco.mj_fullM(model, data, M)
    inverse_inertia = J @ np.linalg.inv(M) @ J.T
    here = controller.pose()
    turn = rotvec_from_quat(quat_multiply(target.quaternion, quat_conjugate(here.quaternion)))
    limit = np.repeat([GAINS.max_translation_error, GAINS.max_rotation_error], 3)
    error = np.clip(np.concatenate((target.position - here.position, turn)), -limit, limit)
    K = np.repeat([GAINS.translation, GAINS.rotation], 3)
    D = 2.0 * np.sqrt(K / np.diag(inverse_inertia))
    home = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])
    posture = GAINS.posture * (home - data.qpos) - 2.0 * np.sqrt(GAINS.posture) * data.qvel
    projector = np.eye(ARM_DOF) - J.T @ np.linalg.inv(inverse_inertia) @ J @ np.linalg.inv(M)
    expected = J.T @ (K * error - D * (J @ data.qvel)) + projector @ posture + data.qfrc_bias
    assert data.ctrl[:ARM_DOF] == pytest.approx(expected, abs=1e-8)
    assert np.abs(data.qvel).max() > 1e-3, "the damping was not tested"


def test_a_new_set_point_is_blended_in():
    rig = ArmRig()
    rig.go((0.0, 0.0, 0.01))
    torques = []
    for _ in range(40):
        rig.sleep(0.002)
        torques.append(rig.data.ctrl[:ARM_DOF].copy())
    jumps = np.abs(np.diff(torques, axis=0)).max(axis=0)
    assert (jumps < 0.1 * TORQUE_LIMITS).all()


def test_a_diverged_simulation_is_an_error_and_is_not_reset_unasked():
    rig = ArmRig()
    rig.data.qvel[3] = np.nan
    with pytest.raises(DivergedError):
        rig.sleep(0.1)
