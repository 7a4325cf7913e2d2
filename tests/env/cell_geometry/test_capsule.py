import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from robot_rl.env.cell_geometry.capsule import Capsule, axes_of, closest_points

POINTS = arrays(float, (2, 2, 3), elements=st.floats(-1.0, 1.0, width=16))


def distance(a, b):
    on_a, on_b = closest_points(a[None], b[None])
    return float(np.linalg.norm(on_a[0] - on_b[0])), on_a[0], on_b[0]


def on_grid(a, b, steps=101):
    """The distance of two segments by trying points of both: at most half a spacing of each too long."""
    share = np.linspace(0.0, 1.0, steps)[:, None]
    ours, theirs = a[0] + share * (a[1] - a[0]), b[0] + share * (b[1] - b[0])
    spacing = (np.linalg.norm(a[1] - a[0]) + np.linalg.norm(b[1] - b[0])) / (steps - 1)
    return float(np.linalg.norm(ours[:, None] - theirs[None], axis=-1).min()), spacing


def is_on(point, segment):
    lengths = [np.linalg.norm(point - end) for end in segment]
    return abs(sum(lengths) - np.linalg.norm(segment[1] - segment[0])) < 1e-6


@given(POINTS)
def test_no_other_points_of_two_segments_are_nearer(ends):
    a, b = ends
    found, on_a, on_b = distance(a, b)
    tried, spacing = on_grid(a, b)
    assert tried - spacing <= found <= tried + 2e-6  # one shorter than a micrometre is a point
    assert is_on(on_a, a)
    assert is_on(on_b, b)


def test_parallel_crossing_and_pointlike_segments():
    x = np.array([[0.0, 0, 0], [1, 0, 0]])
    assert distance(x, x + np.array([0, 0.3, 0]))[0] == 0.3
    assert distance(x, x + np.array([3, 0, 4]))[0] == np.hypot(2, 4)
    assert distance(x, np.array([[0.5, -1, 0.2], [0.5, 1, 0.2]]))[0] == 0.2
    assert distance(x, np.array([[0.5, 0.4, 0]] * 2))[0] == 0.4
    assert distance(np.array([[2.0, 0, 0]] * 2), x)[0] == 1.0
    assert distance(np.zeros((2, 3)), np.array([[0, 0, 0.7]] * 2))[0] == 0.7


def test_many_pairs_at_once_are_the_pairs_one_by_one():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50, 2, 3))
    on_a, on_b = closest_points(a, b)
    one_by_one = [distance(*pair)[0] for pair in zip(a, b, strict=True)]
    np.testing.assert_allclose(np.linalg.norm(on_a - on_b, axis=1), one_by_one, atol=1e-12)
    assert axes_of([Capsule((0, 0, 0), (1, 2, 3), 0.1)]).tolist() == [[[0, 0, 0], [1, 2, 3]]]
    assert axes_of([]).shape == (0, 2, 3)
