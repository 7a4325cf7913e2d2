import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from robot_rl.geometry import (
    Pose,
    quat_conjugate,
    quat_from_matrix,
    quat_from_rotvec,
    quat_multiply,
    quat_rotate,
    quat_to_matrix,
    rotvec_from_quat,
    swing_twist_z,
    yaw_pose,
)

unit = st.floats(-1.0, 1.0)
vectors = arrays(float, 3, elements=st.floats(-2.0, 2.0))
axes = arrays(float, 3, elements=unit).filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v))
quaternions = (
    arrays(float, 4, elements=unit).filter(lambda q: np.linalg.norm(q) > 0.1).map(lambda q: q / np.linalg.norm(q))
)
poses = st.builds(Pose, vectors, quaternions)
# Angles of all sizes, and those where the logarithm is delicate: near 0 and near pi.
angles = st.one_of(
    st.floats(0.0, np.pi),
    st.floats(-14.0, -3.0).map(lambda e: 10.0**e),
    st.floats(-14.0, -3.0).map(lambda e: np.pi - 10.0**e),
)
MIRROR = np.array([0.0, 1.0, 0.0, 0.0])


def scipy_rotation(q):
    return Rotation.from_quat(q, scalar_first=True)


def same_rotation(a, b, tolerance=1e-12):
    return abs(abs(a @ b) - 1.0) < tolerance


def same_pose(a, b):
    return np.allclose(a.position, b.position, atol=1e-12) and same_rotation(a.quaternion, b.quaternion)


@given(quaternions, quaternions)
def test_product_agrees_with_an_independent_library(a, b):
    assert same_rotation(quat_multiply(a, b), (scipy_rotation(a) * scipy_rotation(b)).as_quat(scalar_first=True))


@given(quaternions, vectors)
def test_rotation_agrees_with_an_independent_library_and_with_its_matrix(q, v):
    assert np.allclose(quat_rotate(q, v), scipy_rotation(q).apply(v), atol=1e-12)
    assert np.allclose(quat_to_matrix(q) @ v, quat_rotate(q, v), atol=1e-12)


@given(poses, poses, poses)
def test_poses_form_a_group(a, b, c):
    assert same_pose((a @ b) @ c, a @ (b @ c))
    assert same_pose(a @ Pose.identity(), a)
    assert same_pose(Pose.identity() @ a, a)
    assert same_pose(a @ a.inverse(), Pose.identity())
    assert same_pose(a.inverse().inverse(), a)


@given(poses, poses, vectors)
def test_composition_maps_points_as_one_after_the_other(T_a_b, T_b_c, p_c):
    p_b = T_b_c.position + quat_rotate(T_b_c.quaternion, p_c)
    p_a = T_a_b.position + quat_rotate(T_a_b.quaternion, p_b)
    T_a_c = T_a_b @ T_b_c
    assert np.allclose(T_a_c.position + quat_rotate(T_a_c.quaternion, p_c), p_a, atol=1e-12)
    assert np.allclose(T_a_c.matrix, T_a_b.matrix @ T_b_c.matrix, atol=1e-12)


@given(axes, angles)
def test_logarithm_undoes_the_exponential(axis, angle):
    rotvec = axis * angle
    q = quat_from_rotvec(rotvec)
    assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-12)
    back = rotvec_from_quat(q)
    if angle < np.pi - 1e-9:
        assert np.allclose(back, rotvec, rtol=1e-9, atol=1e-15)
    assert np.allclose(rotvec_from_quat(-q), back, rtol=1e-6) or angle > np.pi - 1e-6  # q and -q are one rotation
    assert np.linalg.norm(back) <= np.pi + 1e-12


@given(quaternions)
def test_exponential_undoes_the_logarithm(q):
    assert same_rotation(quat_from_rotvec(rotvec_from_quat(q)), q)


@given(axes, angles)
def test_matrix_and_quaternion_carry_the_same_rotation(axis, angle):
    q = quat_from_rotvec(axis * angle)
    R = quat_to_matrix(q)
    assert np.allclose(R @ R.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)
    assert same_rotation(quat_from_matrix(R), q)


@pytest.mark.parametrize("axis", np.vstack((np.eye(3), -np.eye(3))).tolist())
def test_half_turns_have_a_matrix_and_back(axis):
    q = np.array([0.0, *axis])
    assert same_rotation(quat_from_matrix(quat_to_matrix(q)), q)
    assert np.linalg.norm(rotvec_from_quat(q)) == pytest.approx(np.pi)


@given(quaternions)
def test_conjugate_turns_back(q):
    assert np.allclose(quat_multiply(q, quat_conjugate(q)), [1.0, 0.0, 0.0, 0.0], atol=1e-12)


@given(st.floats(-np.pi, np.pi, exclude_max=True), st.floats(0.0, np.pi - 1e-3), st.floats(-np.pi, np.pi))
def test_swing_and_twist_are_found_again(yaw, tilt, direction):
    swing = quat_from_rotvec(tilt * np.array([np.cos(direction), np.sin(direction), 0.0]))
    twist = yaw_pose(0.0, 0.0, 0.0, yaw).quaternion
    found_yaw, found_tilt = swing_twist_z(quat_multiply(swing, twist))
    assert np.exp(1j * found_yaw) == pytest.approx(np.exp(1j * yaw), abs=1e-9)
    assert -np.pi <= found_yaw < np.pi
    assert found_tilt == pytest.approx(tilt, abs=1e-7)


@given(quaternions)
def test_tilt_is_the_angle_between_the_z_axes(q):
    _, tilt = swing_twist_z(q)
    assert np.cos(tilt) == pytest.approx(quat_rotate(q, np.array([0.0, 0.0, 1.0]))[2], abs=1e-9)


@given(vectors, vectors)
def test_a_pose_as_a_vector_comes_back(position, rotvec):
    pose = Pose.from_rotvec(position, rotvec)
    vector = pose.vector()
    assert same_pose(Pose.from_rotvec(vector[:3], vector[3:]), pose)


def test_yaw_pose_turns_x_towards_y():
    pose = yaw_pose(1.0, 2.0, 3.0, np.pi / 2)
    assert np.allclose(pose.position, [1.0, 2.0, 3.0])
    assert np.allclose(quat_rotate(pose.quaternion, np.array([1.0, 0.0, 0.0])), [0.0, 1.0, 0.0], atol=1e-12)
    assert np.allclose(quat_rotate(MIRROR, np.array([1.0, 1.0, 1.0])), [1.0, -1.0, -1.0])


@given(poses, arrays(float, 6, elements=unit), vectors, vectors)
def test_a_wrench_does_the_same_work_wherever_it_is_written(T_a_b, wrench, velocity, spin):
    """In frame b the body moves at v + w x p: power is force times velocity plus torque times spin."""
    R, p = T_a_b.matrix, T_a_b.position
    here = T_a_b.carry_wrench(wrench)
    there = np.concatenate((R.T @ (velocity + np.cross(spin, p)), R.T @ spin))
    assert here @ np.concatenate((velocity, spin)) == pytest.approx(wrench @ there, abs=1e-9)
