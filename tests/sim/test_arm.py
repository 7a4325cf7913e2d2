import mujoco
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robot_rl.geometry import quat_from_matrix, quat_from_rotvec, quat_multiply
from sim.arm.fr3 import ARM_DOF, HOME, JOINT_LIMITS, TORQUE_LIMITS
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.mount import add_arm
from sim.scene import DOWNWARD, add_peg_tool, new_scene

# Denavit-Hartenberg parameters (Craig's convention) of the FR3 as Franka Robotics publishes them: a, d, alpha.
PUBLISHED_DH = np.array(
    [
        [0.0, 0.333, 0.0],
        [0.0, 0.0, -np.pi / 2],
        [0.0, 0.316, np.pi / 2],
        [0.0825, 0.0, np.pi / 2],
        [-0.0825, 0.384, -np.pi / 2],
        [0.0, 0.0, np.pi / 2],
        [0.088, 0.0, np.pi / 2],
    ]
)
FLANGE, HAND_YAW = 0.107, -np.pi / 4
LOWER = [-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159]
UPPER = [2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159]
LINK_MASSES = [2.927465, 2.935537, 2.244901, 2.615596, 2.327121, 1.817038, 0.627143]


def rot_x(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def rot_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def shift(x, z):
    T = np.eye(4)
    T[0, 3], T[2, 3] = x, z
    return T


def published_forward_kinematics(q):
    T = np.eye(4)
    for (a, d, alpha), angle in zip(PUBLISHED_DH, q, strict=True):
        T = T @ rot_x(alpha) @ shift(a, 0.0) @ rot_z(angle) @ shift(0.0, d)
    return T @ shift(0.0, FLANGE) @ rot_z(HAND_YAW)


@pytest.fixture(scope="module")
def arm():
    spec = new_scene()
    add_arm(spec)
    return spec.compile()


@pytest.fixture(scope="module")
def arm_with_peg():
    spec = new_scene()
    add_peg_tool(spec)
    return spec.compile()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_forward_kinematics_is_the_published_one(arm, seed):
    q = np.random.default_rng(seed).uniform(LOWER, UPPER)
    data = mujoco.MjData(arm)
    data.qpos[:] = q
    mujoco.mj_kinematics(arm, data)
    flange = data.body("flange")
    expected = published_forward_kinematics(q)
    assert flange.xpos == pytest.approx(expected[:3, 3], abs=1e-12)
    assert flange.xmat.reshape(3, 3) == pytest.approx(expected[:3, :3], abs=1e-12)


def test_joint_and_torque_limits_are_the_published_ones(arm):
    assert arm.jnt_range == pytest.approx(np.column_stack((LOWER, UPPER)))
    assert arm.jnt_limited.all()
    limits = np.array([87, 87, 87, 87, 12, 12, 12])
    assert pytest.approx(limits) == TORQUE_LIMITS
    assert arm.actuator_ctrlrange == pytest.approx(np.column_stack((-limits, limits)))
    assert (JOINT_LIMITS[:, 0] < HOME).all()
    assert (JOINT_LIMITS[:, 1] > HOME).all()


def test_motors_give_no_more_than_their_limit_and_joints_stop_at_theirs(arm):
    data = mujoco.MjData(arm)
    data.qpos[:] = HOME
    data.ctrl[:] = 1e4
    for _ in range(1000):
        mujoco.mj_step(arm, data)
        assert (np.abs(data.qfrc_actuator) <= TORQUE_LIMITS * (1 + 1e-9)).all()
    assert (data.qpos < JOINT_LIMITS[:, 1] + 0.05).all()
    assert np.isfinite(data.qpos).all()


def test_links_weigh_what_is_published_and_the_looks_weigh_nothing(arm):
    links = [arm.body(f"link{i}").mass[0] for i in range(1, ARM_DOF + 1)]
    assert links == pytest.approx(LINK_MASSES)
    assert arm.body_mass.sum() == pytest.approx(sum(LINK_MASSES))


def test_gravity_torques_are_the_gradient_of_the_potential_energy(arm):
    """Independent of how masses and centres of mass got into the model: finite differences of the energy."""
    arm.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(arm)

    def potential(q):
        data.qpos[:], data.qvel[:] = q, 0.0
        mujoco.mj_forward(arm, data)
        heights = [data.xipos[arm.body(f"link{i + 1}").id][2] for i in range(ARM_DOF)]
        assert data.energy[0] == pytest.approx(9.81 * np.dot(LINK_MASSES, heights))
        return data.energy[0]

    q = HOME + 0.1
    h = 1e-5
    gradient = [(potential(q + h * e) - potential(q - h * e)) / (2 * h) for e in np.eye(ARM_DOF)]
    potential(q)
    assert data.qfrc_bias == pytest.approx(gradient, abs=1e-6)


def test_inertia_of_every_body_is_possible(arm_with_peg):
    """Positive, and no principal moment larger than the sum of the others."""
    inertia = np.sort(arm_with_peg.body_inertia[arm_with_peg.body_mass > 0], axis=1)
    assert (inertia > 0).all()
    assert (inertia[:, 2] <= inertia[:, 0] + inertia[:, 1]).all()


@given(
    st.tuples(st.floats(0.4, 0.6), st.floats(-0.15, 0.15), st.floats(0.02, 0.35)),
    st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2), st.floats(-0.6, 0.6)),
)
@example((0.400390625, 0.125, 0.03125), (0.0, -0.140625, 0.0))  # from the ready pose one ends at limits of joints
@settings(max_examples=40, deadline=None)
def test_inverse_kinematics_reaches_the_work_area_within_limits(arm_with_peg, position, tilt):
    quaternion = quat_multiply(quat_from_rotvec(np.array(tilt)), DOWNWARD)
    q = solve_ik(arm_with_peg, "tcp", np.array(position), quaternion)
    data = mujoco.MjData(arm_with_peg)
    data.qpos[:] = q
    mujoco.mj_kinematics(arm_with_peg, data)
    tcp = data.site("tcp")
    assert tcp.xpos == pytest.approx(position, abs=1e-5)
    assert abs(quat_from_matrix(tcp.xmat.reshape(3, 3)) @ quaternion) == pytest.approx(1.0, abs=1e-9)
    assert (q >= JOINT_LIMITS[:, 0]).all()
    assert (q <= JOINT_LIMITS[:, 1]).all()


def test_inverse_kinematics_says_when_a_pose_is_out_of_reach(arm_with_peg):
    with pytest.raises(ValueError, match="no joint angles bring tcp"):
        solve_ik(arm_with_peg, "tcp", np.array([1.5, 0.0, 0.3]), DOWNWARD)
