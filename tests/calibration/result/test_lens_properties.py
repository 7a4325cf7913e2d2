"""What must hold for any lens of any model: symmetries, scales, inverses, and the bookkeeping of its parameters."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FISHEYE, PINHOLE

from calibration.result import CameraIntrinsics
from calibration.result.lens import COEFFICIENTS, by_coefficients, distort, undistort

LIMITS = {
    "plumb_bob": (0.15, 0.05, 2e-3, 2e-3, 0.02),
    "rational_polynomial": (0.15, 0.05, 2e-3, 2e-3, 0.02, 0.05, 0.02, 0.01),
    "equidistant": (0.05, 0.02, 0.01, 0.005),
}
"""Coefficients of the size that real lenses have, in which the model is one-to-one over the points below."""
seeds = st.integers(0, 10**6)
models = pytest.mark.parametrize("model", COEFFICIENTS)


def drawn(model, seed, count=12):
    """Coefficients and points in front of the camera."""
    rng = np.random.default_rng(seed)
    limits = np.array(LIMITS[model])
    points = np.column_stack((rng.uniform(-0.4, 0.4, (count, 2)), rng.uniform(0.8, 1.2, count)))
    return rng.uniform(-limits, limits), points


def without_tangential(model, k):
    """The coefficients of a lens that is symmetric about its axis."""
    if model == "equidistant":
        return k
    return np.concatenate((k[:2], [0.0, 0.0], k[4:]))


@models
@given(seed=seeds, factor=st.floats(0.1, 10.0))
@settings(max_examples=20, deadline=None)
def test_the_image_depends_on_the_direction_of_a_point_only(model, seed, factor):
    k, points = drawn(model, seed)
    near, J = distort(model, k, points)
    far, J_far = distort(model, k, factor * points)
    np.testing.assert_allclose(far, near, atol=1e-12)
    np.testing.assert_allclose(J_far, J / factor, rtol=1e-9, atol=1e-12)
    # Euler's theorem for functions of degree 0: the derivative along the ray is 0.
    np.testing.assert_allclose(np.einsum("nij,nj->ni", J, points), 0.0, atol=1e-12)


@models
@given(seed=seeds, angle=st.floats(-np.pi, np.pi))
@settings(max_examples=20, deadline=None)
def test_a_lens_without_tangential_distortion_commutes_with_rotations_about_its_axis(model, seed, angle):
    k, points = drawn(model, seed)
    k = without_tangential(model, k)
    c, s = np.cos(angle), np.sin(angle)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    turned, _ = distort(model, k, points @ R.T)
    np.testing.assert_allclose(turned, distort(model, k, points)[0] @ R[:2, :2].T, atol=1e-12)


@models
@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_undistort_inverts_distort(model, seed):
    k, points = drawn(model, seed)
    rays = undistort(model, k, distort(model, k, points)[0])
    np.testing.assert_allclose(rays, points / np.linalg.norm(points, axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1.0)


@models
@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_both_derivatives_are_those_of_finite_differences(model, seed):
    k, points = drawn(model, seed, 4)
    _, J = distort(model, k, points)
    by_k = by_coefficients(model, k, points)
    h = 1e-6
    for i, d in enumerate(h * np.eye(3)):
        numeric = (distort(model, k, points + d)[0] - distort(model, k, points - d)[0]) / (2 * h)
        np.testing.assert_allclose(J[:, :, i], numeric, atol=1e-7)
    for i, d in enumerate(h * np.eye(len(k))):
        numeric = (distort(model, k + d, points)[0] - distort(model, k - d, points)[0]) / (2 * h)
        np.testing.assert_allclose(by_k[:, :, i], numeric, atol=1e-7)


@models
def test_on_the_axis_there_is_no_distortion(model):
    k, _ = drawn(model, 0)
    axis = np.array([[0.0, 0.0, 2.0]])
    distorted, J = distort(model, k, axis)
    np.testing.assert_allclose(distorted, 0.0, atol=1e-12)
    np.testing.assert_allclose(J[0], [[0.5, 0, 0], [0, 0.5, 0]], atol=1e-9)
    np.testing.assert_allclose(undistort(model, k, np.zeros((1, 2))), [[0, 0, 1]], atol=1e-12)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_without_coefficients_the_models_are_tangent_and_angle(seed):
    _, points = drawn("plumb_bob", seed)
    for model in ("plumb_bob", "rational_polynomial"):
        plane, _ = distort(model, np.zeros(COEFFICIENTS[model]), points)
        np.testing.assert_allclose(plane, points[:, :2] / points[:, 2:], atol=1e-15)
    plane, _ = distort("equidistant", np.zeros(4), points)
    angles = np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2])
    np.testing.assert_allclose(np.hypot(*plane.T), angles, atol=1e-12)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_brown_is_the_rational_model_without_a_denominator(seed):
    k, points = drawn("plumb_bob", seed)
    brown, J = distort("plumb_bob", k, points)
    rational, J_rational = distort("rational_polynomial", np.append(k, [0.0, 0.0, 0.0]), points)
    np.testing.assert_array_equal(brown, rational)
    np.testing.assert_array_equal(J, J_rational)


# ------------------------------------------------------------------ CameraIntrinsics

lenses = pytest.mark.parametrize("lens", [PINHOLE, FISHEYE], ids=lambda lens: lens.model)


@lenses
def test_the_fingerprint_changes_with_every_parameter_and_with_nothing_else(lens):
    prints = {lens.fingerprint}
    for change in np.diag(1e-9 * np.ones(len(lens.vector))):
        prints.add(lens.with_vector(lens.vector + change).fingerprint)
    prints |= {dataclasses.replace(lens, **change).fingerprint for change in ({"camera": "b"}, {"width": 641})}
    assert len(prints) == len(lens.vector) + 3
    covariance = tuple(map(tuple, np.eye(len(lens.vector)).tolist()))
    assert dataclasses.replace(lens, covariance=covariance, rms=0.2).fingerprint == lens.fingerprint
    assert lens.with_vector(lens.vector) == lens


@lenses
def test_the_camera_matrix_maps_normalised_coordinates_to_pixels(lens):
    flat = dataclasses.replace(lens, distortion=(0.0,) * len(lens.distortion))
    points = np.array([[0.0, 0.0, 1.0], [1e-4, -2e-4, 1.0]])
    homogeneous = points @ flat.matrix.T
    np.testing.assert_allclose(flat.project(points), homogeneous[:, :2] / homogeneous[:, 2:], atol=1e-6)


rectangles = st.tuples(st.integers(0, 200), st.integers(0, 150), st.integers(100, 400), st.integers(100, 300))


@lenses
@given(first=rectangles, second=st.tuples(st.integers(0, 40), st.integers(0, 40), st.just(60), st.just(50)))
@settings(max_examples=20, deadline=None)
def test_a_crop_of_a_crop_is_one_crop(lens, first, second):
    """With the same scale, offsets add up."""
    left, top, width, height = first
    once = lens.cropped(first, (width, height)).cropped(second, (120, 100))
    direct = lens.cropped((left + second[0], top + second[1], second[2], second[3]), (120, 100))
    np.testing.assert_allclose(once.vector, direct.vector, atol=1e-9)
    assert (once.width, once.height) == (120, 100)


@lenses
@given(rectangle=rectangles, size=st.tuples(st.integers(20, 900), st.integers(20, 900)))
@settings(max_examples=20, deadline=None)
def test_a_crop_can_be_undone_and_keeps_the_rays(lens, rectangle, size):
    left, top, width, height = rectangle
    covariance = tuple(map(tuple, np.diag(np.arange(1.0, len(lens.vector) + 1)).tolist()))
    lens = dataclasses.replace(lens, covariance=covariance)
    small = lens.cropped(rectangle, size)
    sx, sy = size[0] / width, size[1] / height
    back = small.cropped((-left * sx, -top * sy, lens.width * sx, lens.height * sy), (lens.width, lens.height))
    np.testing.assert_allclose(back.vector, lens.vector, rtol=1e-9)
    np.testing.assert_allclose(back.sigma, lens.sigma, rtol=1e-9)
    pixel = np.array([[lens.cx + 30.0, lens.cy - 20.0]])
    there = (pixel + 0.5 - [left, top]) * [sx, sy] - 0.5
    np.testing.assert_allclose(small.rays(there), lens.rays(pixel), atol=1e-9)


@lenses
def test_a_crop_to_the_whole_image_changes_nothing(lens):
    assert lens.cropped((0, 0, lens.width, lens.height), (lens.width, lens.height)) == lens


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "mirror"}, "valid: plumb_bob, rational_polynomial, equidistant"),
        ({"distortion": (0.0,)}, "has 8 coefficients, got 1"),
        ({"fx": 0.0}, "must be positive"),
        ({"height": -480}, "must be positive"),
        ({"cx": float("inf")}, "finite"),
        ({"rms": -0.1}, "rms"),
        ({"covariance": ((1.0,),)}, "12 x 12"),
    ],
)
def test_parameters_that_no_camera_has_are_refused(change, message):
    fields = {field.name: getattr(PINHOLE, field.name) for field in dataclasses.fields(PINHOLE)}
    with pytest.raises(ValueError, match=message):
        CameraIntrinsics(**(fields | change))
