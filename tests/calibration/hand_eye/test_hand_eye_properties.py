"""Hand-eye calibration: what the result may not depend on, how it moves with the frames, and how sure it is."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import PINHOLE, apart, random_rig

from calibration.hand_eye.closed_form import METHODS, closed_form, consensus
from calibration.hand_eye.hand_eye import calibrate_hand_eye
from calibration.hand_eye.problem import Guess, linearise, resized, scaled, solve
from calibration.hand_eye.rotation_spread import check_rotations, rotation_spread
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

vectors = st.tuples(*[st.floats(-1.0, 1.0)] * 3).map(np.array)
poses = st.builds(lambda p, r: Pose.from_rotvec(p, r), vectors, vectors)
mountings = pytest.mark.parametrize("mounting", MOUNTINGS)


def fit(sightings, mounting):
    return calibrate_hand_eye(PINHOLE, sightings, mounting, "fr3")


def perfect(seed, mounting, count=8):
    """Poses of the arm and of the board without any noise, and the truth."""
    rng = np.random.default_rng(seed)
    random = [Pose.from_rotvec(rng.uniform(-0.4, 0.4, 3), rng.uniform(-1, 1, 3)) for _ in range(count + 2)]
    truth = Guess(mounting, random[0], random[1], tuple(random[2:]))
    return [truth.predict_tcp(T) for T in truth.boards], truth


@mountings
def test_the_order_of_views_does_not_matter(mounting):
    sightings, _ = random_rig(0, mounting, 12)
    before = fit(sightings, mounting)
    order = np.random.default_rng(1).permutation(12)
    after = fit([sightings[i] for i in order], mounting)
    assert max(apart(before.result.T_parent_camera, after.result.T_parent_camera)) < 2e-6
    np.testing.assert_allclose(after.result.sigma, before.result.sigma, rtol=0.02)
    assert after.used == tuple(before.used[i] for i in order)


@mountings
def test_another_tool_frame_moves_the_result_along(mounting):
    """A tcp defined elsewhere on the tool: the camera moves in it (eye in hand), or the board does (eye to hand)."""
    S = Pose.from_rotvec(np.array([0.02, -0.03, 0.1]), np.array([0.3, -0.2, 0.5]))
    sightings, _ = random_rig(2, mounting, 12, position=1e-6, rotation=1e-6)
    before = fit(sightings, mounting)
    after = fit([dataclasses.replace(s, T_base_tcp=s.T_base_tcp @ S) for s in sightings], mounting)
    X, Y = before.result.T_parent_camera, before.T_parent_board
    expected = (S.inverse() @ X, Y) if mounting == "eye_in_hand" else (X, S.inverse() @ Y)
    assert max(apart(expected[0], after.result.T_parent_camera)) < 2e-5
    assert max(apart(expected[1], after.T_parent_board)) < 2e-5


@mountings
def test_another_frame_on_the_board_moves_the_board_only(mounting):
    S = Pose.from_rotvec(np.array([0.05, -0.02, 0.0]), np.array([0.0, 0.0, 0.8]))
    sightings, _ = random_rig(3, mounting, 12)
    moved = [
        dataclasses.replace(s, view=dataclasses.replace(s.view, points=s.view.points @ S.matrix.T + S.position))
        for s in sightings
    ]
    before, after = fit(sightings, mounting), fit(moved, mounting)
    assert max(apart(before.result.T_parent_camera, after.result.T_parent_camera)) < 1e-5
    assert max(apart(before.T_parent_board, after.T_parent_board @ S)) < 1e-5


@mountings
def test_errors_are_as_large_as_the_covariance_states(mounting):
    """The squared distance over 8 rigs has a mean of 6 with a standard error of 1.2, correlations included."""
    distances = []
    for seed in range(100, 108):
        sightings, truth = random_rig(seed, mounting, 12)
        result = fit(sightings, mounting).result
        found = result.T_parent_camera
        error = np.concatenate((found.position - truth.X.position, (found @ truth.X.inverse()).rotvec))
        distances.append(error @ np.linalg.solve(np.array(result.covariance), error))
    assert 3.0 < np.mean(distances) < 10.0


@mountings
def test_more_views_make_the_result_surer(mounting):
    """On average over rigs: the noise of the arm is estimated from the same views."""
    sigmas = []
    for seed in range(3):
        sightings, _ = random_rig(seed, mounting, 24)
        sigmas.append([fit(sightings[:count], mounting).result.sigma[:3].max() for count in (8, 24)])
    few, many = np.mean(sigmas, axis=0)
    assert many < 0.8 * few


@mountings
def test_a_noisier_arm_never_makes_a_bad_result_good(mounting):
    good = []
    for factor in (1.0, 10.0, 30.0):
        sightings, _ = random_rig(5, mounting, 12, position=factor * 2e-4, rotation=factor * 1e-3)
        try:
            good.append(fit(sightings, mounting).quality.good)
        except CalibrationError:
            good.append(False)
    assert good == sorted(good, reverse=True)
    assert good[0]
    assert not good[-1]


# ------------------------------------------------------------------ closed forms


@mountings
@pytest.mark.parametrize("method", METHODS)
def test_closed_forms_are_exact_for_perfect_poses(method, mounting):
    arm, truth = perfect(0, mounting)
    X = closed_form(method, mounting, arm, truth.boards)
    assert max(apart(truth.X, X)) < 1e-6


@mountings
@given(seed=st.integers(0, 10**6), factor=st.floats(0.7, 1.4))
@settings(max_examples=5, deadline=None)
def test_the_consensus_finds_poses_and_the_size_of_the_board(mounting, seed, factor):
    """A board stated too small by a factor looks nearer by it."""
    sightings, truth = random_rig(seed % 1000, mounting, 10, noise=0.0, position=1e-9, rotation=1e-9)
    boards = [scaled(truth.predict_board(s.T_base_tcp), 1.0 / factor) for s in sightings]
    guess, scale = consensus(mounting, sightings, boards, np.random.default_rng(0))
    assert scale == pytest.approx(factor, rel=1e-5)
    assert max(apart(truth.X, guess.X)) < 1e-5
    assert max(apart(truth.Y, guess.Y)) < 1e-5


def test_a_closed_form_of_a_single_view_is_none():
    arm, truth = perfect(0, "eye_in_hand", 1)
    assert closed_form("Park", "eye_in_hand", arm, truth.boards) is None


# ------------------------------------------------------------------ the linear model


def rows_of(seed, mounting, count=10, **options):
    sightings, truth = random_rig(seed, mounting, count)
    guess = dataclasses.replace(truth, boards=tuple(truth.predict_board(s.T_base_tcp) for s in sightings))
    return linearise(PINHOLE, sightings, guess, 0.1, scale=False, **options)


@mountings
def test_the_solution_is_linear_and_knows_no_order(mounting):
    rows = rows_of(0, mounting)
    one = solve(rows, 2e-4, 1e-3)
    twice = solve([dataclasses.replace(row, e=2.0 * row.e) for row in rows], 2e-4, 1e-3)
    np.testing.assert_allclose(twice.z, 2.0 * one.z, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(twice.covariance, one.covariance)
    back = solve(rows[::-1], 2e-4, 1e-3)
    np.testing.assert_allclose(back.z, one.z, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(back.left[::-1], one.left, rtol=1e-6, atol=1e-10)


@mountings
def test_the_solution_is_the_minimum_of_its_misfit(mounting):
    rows = rows_of(1, mounting)
    solution = solve(rows, 2e-4, 1e-3)

    def misfit(z):
        left = np.array([row.e + row.G @ z for row in rows])
        return float(np.einsum("ni,nij,nj->", left, solution.weights, left))

    best = misfit(solution.z)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert misfit(solution.z + 1e-4 * rng.standard_normal(12)) > best


@mountings
def test_information_only_grows_with_views_and_shrinks_with_noise(mounting):
    """In the order of covariances: what is left is never surer about any direction."""
    rows = rows_of(2, mounting, 14)
    few, many = solve(rows[:9], 2e-4, 1e-3).covariance, solve(rows, 2e-4, 1e-3).covariance
    noisy = solve(rows, 4e-4, 2e-3).covariance
    for larger, smaller in ((few, many), (noisy, many)):
        unit = np.sqrt(np.diag(larger))
        assert np.linalg.eigvalsh((larger - smaller) / np.outer(unit, unit)).min() > -1e-9


def test_a_free_lens_costs_certainty_and_its_prior_bounds_it():
    directions = np.diag([1.0] * 4 + [1e-3] * 8)
    fixed, free = rows_of(3, "eye_in_hand"), rows_of(3, "eye_in_hand", directions=directions)
    certain = solve(fixed, 2e-4, 1e-3).covariance
    solution = solve(free, 2e-4, 1e-3, np.zeros(12))
    assert (np.diag(solution.covariance)[:12] >= np.diag(certain) * (1 - 1e-9)).all()
    assert (np.diag(solution.covariance)[12:] <= 1.0 + 1e-9).all()


@given(T=poses, a=st.floats(0.5, 2.0), b=st.floats(0.5, 2.0))
@settings(max_examples=20, deadline=None)
def test_scaling_a_board_is_a_group(T, a, b):
    assert max(apart(scaled(scaled(T, a), b), scaled(T, a * b))) < 1e-7
    assert max(apart(scaled(scaled(T, a), 1.0 / a), T)) < 1e-7


def test_a_resized_board_looks_the_same_from_as_much_farther_away():
    (sighting, *_), truth = random_rig(0, "eye_in_hand", 1)
    T = truth.predict_board(sighting.T_base_tcp)
    larger, far = resized(sighting, 1.3), scaled(T, 1.3)
    np.testing.assert_allclose(
        PINHOLE.project(larger.view.points @ far.matrix.T + far.position),
        PINHOLE.project(sighting.view.points @ T.matrix.T + T.position),
        atol=1e-9,
    )
    np.testing.assert_array_equal(larger.view.pixels, sighting.view.pixels)


# ------------------------------------------------------------------ rotations


@given(T=poses, seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_the_spread_of_rotations_knows_neither_base_nor_order(T, seed):
    rng = np.random.default_rng(seed)
    arm = [Pose.from_rotvec(rng.normal(size=3), rng.uniform(-0.7, 0.7, 3)) for _ in range(6)]
    first, second, axis = rotation_spread(arm)
    assert first >= second >= 0.0
    assert np.linalg.norm(axis) == pytest.approx(1.0)
    np.testing.assert_allclose(rotation_spread([T @ pose for pose in arm])[:2], (first, second), atol=1e-9)
    np.testing.assert_allclose(rotation_spread(arm[::-1])[:2], (first, second), rtol=0.2)
    still = [Pose(np.zeros(3), pose.quaternion) for pose in arm]
    np.testing.assert_allclose(rotation_spread(still)[:2], (first, second), atol=1e-12)


@pytest.mark.parametrize("angle", [0.05, 0.2, 0.6])
def test_rotations_about_one_axis_have_no_second(angle):
    arm = [Pose.from_rotvec(np.zeros(3), np.array([0.0, a, 0.0])) for a in np.linspace(-angle, angle, 7)]
    first, second, axis = rotation_spread(arm)
    pairs = [a - b for i, a in enumerate(np.linspace(-angle, angle, 7)) for b in np.linspace(-angle, angle, 7)[i + 1 :]]
    assert first == pytest.approx(np.sqrt(np.mean(np.square(pairs))))
    assert second == pytest.approx(0.0, abs=1e-6)
    assert abs(axis[1]) == pytest.approx(1.0)
    with pytest.raises(CalibrationError, match=r"turned by only|about one axis only, near the tcp's y axis"):
        check_rotations(arm)


def test_no_rotations_are_no_spread():
    assert rotation_spread([])[:2] == (0.0, 0.0)
    assert rotation_spread([Pose.identity()])[:2] == (0.0, 0.0)
