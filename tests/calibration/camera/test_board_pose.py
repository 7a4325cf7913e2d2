"""The pose of a board and its normal equations: derivatives, group laws, and what a pose may not depend on."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FISHEYE, PINHOLE, apart, random_view

from calibration.camera.board_pose import HUBER, adjoint, board_pose, skew, step, view_terms, weighted_product
from calibration.camera.view import BadViewError
from calibration.result import CameraIntrinsics
from robot_rl.geometry import Pose

BROWN = CameraIntrinsics("c", 640, 480, "plumb_bob", 600.0, 610.0, 320.0, 240.0, (0.1, -0.05, 0.001, 0.002, 0.01))
lenses = pytest.mark.parametrize("lens", [PINHOLE, FISHEYE, BROWN], ids=lambda lens: lens.model)
seeds = st.integers(0, 10**6)
vectors = st.tuples(*[st.floats(-2.0, 2.0)] * 3).map(np.array)
poses = st.builds(lambda p, r: Pose.from_rotvec(p, r), vectors, vectors)


@given(a=vectors, b=vectors, c=vectors)
@settings(max_examples=30, deadline=None)
def test_skew_is_the_cross_product(a, b, c):
    np.testing.assert_allclose(skew(a) @ b, np.cross(a, b), atol=1e-12)
    np.testing.assert_array_equal(skew(a), -skew(a).T)
    np.testing.assert_allclose(skew(a) @ skew(b) - skew(b) @ skew(a), skew(np.cross(a, b)), atol=1e-12)
    np.testing.assert_array_equal(skew(np.stack((a, b, c)))[1], skew(b))


@given(A=poses, B=poses)
@settings(max_examples=30, deadline=None)
def test_the_adjoint_is_a_homomorphism(A, B):
    np.testing.assert_allclose(adjoint(A @ B), adjoint(A) @ adjoint(B), atol=1e-9)
    np.testing.assert_allclose(adjoint(A.inverse()), np.linalg.inv(adjoint(A)), atol=1e-9)
    np.testing.assert_array_equal(adjoint(Pose.identity()), np.eye(6))
    assert np.linalg.det(adjoint(A)) == pytest.approx(1.0)


@given(d=st.tuples(*[st.floats(-1.0, 1.0)] * 6).map(np.array))
@settings(max_examples=20, deadline=None)
def test_a_small_step_forth_and_back_is_none(d):
    small = 1e-6 * d
    np.testing.assert_allclose((step(small) @ step(-small)).vector(), 0.0, atol=1e-11)
    np.testing.assert_array_equal(step(np.zeros(6)).vector(), np.zeros(6))


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_weighted_product_is_its_sum(seed):
    rng = np.random.default_rng(seed)
    w, A, B = rng.random(7), rng.normal(size=(7, 2, 3)), rng.normal(size=(7, 2, 4))
    expected = sum(w[n] * A[n].T @ B[n] for n in range(7))
    np.testing.assert_allclose(weighted_product(w, A, B), expected, atol=1e-12)


@lenses
@given(seed=seeds)
@settings(max_examples=8, deadline=None)
def test_the_terms_of_a_view_are_derivatives(lens, seed):
    """J is that of the pixels, and g minus the gradient of the cost, inside Huber's limit and outside."""
    rng = np.random.default_rng(seed)
    view, T = random_view(rng, lens, noise=0.1)
    T = step(1e-3 * rng.standard_normal(6)) @ T
    noise = float(rng.choice([0.05, 1.0]))
    terms = view_terms(lens, view, T, noise)
    h = 1e-7  # small: where a corner crosses Huber's limit, the curvature of the cost jumps by up to (J / noise)^2
    for i, d in enumerate(h * np.eye(6)):
        plus, minus = (view_terms(lens, view, step(sign * d) @ T, noise) for sign in (1, -1))
        np.testing.assert_allclose(terms.J[:, :, i], (minus.errors - plus.errors) / (2 * h), rtol=1e-4, atol=1e-2)
        np.testing.assert_allclose(terms.g[i], (minus.cost - plus.cost) / (2 * h), rtol=1e-4, atol=2e-4 * terms.cost)
    np.testing.assert_allclose(terms.H, terms.H.T)
    assert np.linalg.eigvalsh(terms.H).min() > 0.0


def test_hubers_weights_are_whole_for_small_errors_and_fall_beyond():
    view, T = random_view(np.random.default_rng(0), noise=0.0)
    sizes = np.linspace(0.0, 5.0, len(view.ids))
    view = dataclasses.replace(view, pixels=view.pixels + np.stack((sizes, np.zeros_like(sizes)), axis=1))
    weights = view_terms(PINHOLE, view, T, 1.0).weights
    limit = HUBER * np.sqrt(2.0)
    np.testing.assert_allclose(weights[sizes <= limit], 1.0)
    np.testing.assert_allclose(weights[sizes > limit], limit / sizes[sizes > limit], rtol=1e-6)


@lenses
@given(seed=seeds)
@settings(max_examples=8, deadline=None)
def test_perfect_corners_give_the_pose(lens, seed):
    view, T = random_view(np.random.default_rng(seed), lens, noise=0.0)
    found, terms = board_pose(lens, view)
    assert max(apart(T, found)) < 1e-7
    assert terms.cost < 1e-10


@lenses
@given(seed=seeds, shift=st.tuples(*[st.floats(-0.3, 0.3)] * 2), turn=st.floats(-3.0, 3.0))
@settings(max_examples=8, deadline=None)
def test_another_frame_on_the_board_changes_nothing_but_the_frame(lens, seed, shift, turn):
    view, _ = random_view(np.random.default_rng(seed), lens)
    S = Pose.from_rotvec(np.array([*shift, 0.0]), np.array([0.0, 0.0, turn]))
    moved = dataclasses.replace(view, points=view.points @ S.matrix.T + S.position)
    before, after = board_pose(lens, view)[0], board_pose(lens, moved)[0]
    assert max(apart(before, after @ S)) < 2e-5


@given(seed=seeds)
@settings(max_examples=8, deadline=None)
def test_the_order_of_corners_and_the_scale_of_the_world_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    view, _ = random_view(rng)
    before, _ = board_pose(PINHOLE, view)
    order = rng.permutation(len(view.ids))
    shuffled, _ = board_pose(PINHOLE, view.only(order))
    assert max(apart(before, shuffled)) < 2e-5
    larger, _ = board_pose(PINHOLE, dataclasses.replace(view, points=3.0 * view.points))
    np.testing.assert_allclose(larger.position, 3.0 * before.position, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(larger.matrix, before.matrix, atol=1e-4)


@lenses
def test_errors_are_as_large_as_the_covariance_states(lens):
    """The squared distance in standard deviations has a mean of 6, its standard error over 60 views being 0.45."""
    distances = []
    for seed in range(60):
        view, T = random_view(np.random.default_rng(seed), lens, noise=0.2, tilt=0.5)
        found, terms = board_pose(lens, view, 0.2)
        error = (T @ found.inverse()).vector()
        distances.append(error @ terms.H @ error)
    assert 4.6 < np.mean(distances) < 7.6


def test_one_corner_far_off_hardly_moves_the_pose():
    view, T = random_view(np.random.default_rng(3), noise=0.1)
    clean, _ = board_pose(PINHOLE, view, 0.1)
    pixels = view.pixels.copy()
    pixels[4] += (25.0, -40.0)
    spoiled, terms = board_pose(PINHOLE, dataclasses.replace(view, pixels=pixels), 0.1)
    assert apart(T, spoiled)[0] < apart(T, clean)[0] + 2e-3
    assert int(np.linalg.norm(terms.errors, axis=1).argmax()) == 4


def test_views_without_a_pose_are_refused():
    view, _ = random_view(np.random.default_rng(0))
    row = view.only(view.points[:, 1] == view.points[0, 1])
    for useless in (row, view.only(np.arange(3))):
        with pytest.raises(BadViewError, match="no pose of the board fits"):
            board_pose(PINHOLE, useless)
