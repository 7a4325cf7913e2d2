"""Intrinsics: what the result may not depend on, how it scales with the picture, and how sure it is."""

import dataclasses

import numpy as np
import pytest
from synthetic import FISHEYE, PINHOLE, random_view, random_views

from calibration.camera.intrinsics import calibrate_intrinsics, coverage, tilt_spread
from calibration.camera.view import BoardView
from calibration.hand_eye.problem import Sighting, resized
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

lenses = pytest.mark.parametrize("lens", [PINHOLE, FISHEYE], ids=lambda lens: lens.model)


def fit(views, lens, **options):
    return calibrate_intrinsics(views, "wrist", lens.model, **options)


def close(a, b, share=0.02):
    """Whether two results are the same, up to a share of what they claim to be sure of."""
    return (np.abs(a.result.vector - b.result.vector) <= share * a.result.sigma).all()


@lenses
def test_the_order_of_views_and_of_corners_does_not_matter(lens):
    views = random_views(0, 12, lens)
    before, rng = fit(views, lens), np.random.default_rng(1)
    after = fit([views[i].only(rng.permutation(len(views[i].ids))) for i in rng.permutation(12)], lens)
    assert close(before, after)
    np.testing.assert_allclose(after.result.sigma, before.result.sigma, rtol=0.02)
    assert after.result.rms == pytest.approx(before.result.rms, rel=1e-3)
    assert {view.name for view in after.views} == {view.name for view in before.views}


@lenses
def test_neither_the_boards_frame_nor_its_size_matters(lens):
    """The lens is the same for a board described from another corner, or stated at another size."""
    views = random_views(1, 12, lens)
    before = fit(views, lens, start=lens)
    S = Pose.from_rotvec(np.array([0.05, -0.1, 0.0]), np.array([0.0, 0.0, 1.0]))
    moved = [dataclasses.replace(v, points=v.points @ S.matrix.T + S.position) for v in views]
    larger = [resized(Sighting(v, Pose.identity()), 1.7).view for v in views]
    assert close(before, fit(moved, lens, start=lens))
    assert close(before, fit(larger, lens, start=lens))


@lenses
def test_where_the_search_starts_does_not_matter(lens):
    views = random_views(2, 12, lens)
    before = fit(views, lens)
    off = lens.with_vector(lens.vector * np.append([1.05, 0.95], np.ones(len(lens.vector) - 2)))
    assert close(before, fit(views, lens, start=off), 0.05)


@lenses
def test_pictures_of_twice_the_size_have_the_lens_of_twice_the_size(lens):
    """The noise of corners grows along, so that nothing but the unit changes."""
    views = random_views(3, 12, lens)
    doubled = [BoardView(v.name, (1280, 960), v.ids, 2.0 * v.pixels + 0.5, v.points) for v in views]
    before, after = fit(views, lens), fit(doubled, lens)
    expected = before.result.cropped((0, 0, 640, 480), (1280, 960))
    assert (np.abs(after.result.vector - expected.vector) <= 0.05 * np.array(expected.sigma)).all()
    np.testing.assert_allclose(after.result.sigma, expected.sigma, rtol=0.05)
    assert after.result.rms == pytest.approx(2.0 * before.result.rms, rel=0.01)


def test_a_picture_turned_by_a_half_turn_turns_the_principal_point():
    lens = dataclasses.replace(PINHOLE, distortion=(-0.2, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    views = random_views(4, 12, lens)
    turned = [BoardView(v.name, v.size, v.ids, [639.0, 479.0] - v.pixels, v.points) for v in views]
    a, b = fit(views, lens), fit(turned, lens)
    sigma = a.result.sigma
    assert abs(a.result.fx - b.result.fx) < 0.05 * sigma[0]
    assert abs(a.result.cx - (639.0 - b.result.cx)) < 0.05 * sigma[2]
    assert abs(a.result.cy - (479.0 - b.result.cy)) < 0.05 * sigma[3]
    np.testing.assert_allclose(b.result.distortion[2:4], -np.array(a.result.distortion[2:4]), atol=0.05 * sigma[6])


@lenses
def test_errors_are_as_large_as_the_covariance_states(lens):
    """Of focal lengths and principal point together: a mean of 4 over 6 cameras, with a standard error of 1.2."""
    distances = []
    for seed in range(30, 36):
        result = fit(random_views(seed, 10, lens, noise=0.2), lens, start=lens).result
        error = (result.vector - lens.vector)[:4]
        distances.append(error @ np.linalg.solve(np.array(result.covariance)[:4, :4], error))
    assert 1.5 < np.mean(distances) < 7.5


@lenses
def test_corners_with_less_noise_and_more_views_make_the_lens_surer(lens):
    views = {noise: random_views(5, 20, lens, noise=noise) for noise in (0.1, 0.4)}
    sharp, rough, fewer = (fit(some, lens, start=lens) for some in (views[0.1], views[0.4], views[0.1][:10]))
    np.testing.assert_allclose(rough.result.sigma[:4] / sharp.result.sigma[:4], 4.0, rtol=0.15)
    assert (sharp.result.sigma[:4] < fewer.result.sigma[:4]).all()


def test_more_noise_never_makes_a_bad_result_good():
    good = [
        fit(random_views(6, 10, noise=noise), PINHOLE, start=PINHOLE).quality.good for noise in (0.1, 0.5, 2.0, 4.0)
    ]
    assert good == sorted(good, reverse=True)
    assert good[0]
    assert not good[-1]


def test_the_corners_of_two_boards_fit_no_camera():
    views = random_views(7, 12)
    rng = np.random.default_rng(0)
    mixed = [dataclasses.replace(view, points=view.points[rng.permutation(len(view.ids))]) for view in views]
    with pytest.raises(CalibrationError, match=r"fit one camera and one board|no camera fits"):
        fit(mixed, PINHOLE)


# ------------------------------------------------------------------ coverage and tilt


def test_every_corner_is_counted_once():
    views = random_views(8, 5)
    cells = coverage(views)
    assert cells.shape == (6, 8)
    assert cells.sum() == sum(len(view.ids) for view in views)
    np.testing.assert_array_equal(cells, sum(coverage([view]) for view in views))
    np.testing.assert_array_equal(coverage(views, columns=1, rows=1), [[cells.sum()]])


def test_a_corner_lies_in_the_cell_of_its_pixel():
    corners = np.array([[-0.5, -0.5], [639.4, 479.4], [0.0, 479.0]])
    view = BoardView("v", (640, 480), np.arange(3), corners, np.zeros((3, 3)))
    cells = coverage([view])
    assert (cells[0, 0], cells[5, 7], cells[5, 0]) == (1, 1, 1)


def test_the_spread_of_tilts_is_that_of_the_normals():
    boards = [random_view(np.random.default_rng(seed))[1] for seed in range(6)]
    spread = tilt_spread(boards)
    spun = [
        T @ Pose.from_rotvec(np.array([0.1, 0.2, 0.0]), np.array([0.0, 0.0, 0.3 * i])) for i, T in enumerate(boards)
    ]
    assert tilt_spread(spun) == pytest.approx(spread)  # neither spinning nor shifting a board tilts it
    Q = Pose.from_rotvec(np.zeros(3), np.array([0.4, -0.9, 0.2]))
    assert tilt_spread([Q @ T for T in boards]) == pytest.approx(spread)
    assert tilt_spread([boards[0]] * 4) == pytest.approx(0.0, abs=1e-7)
    both = [Pose.from_rotvec(np.zeros(3), np.array([angle, 0.0, 0.0])) for angle in (-0.3, 0.3)]
    assert tilt_spread(both) == pytest.approx(0.3)
