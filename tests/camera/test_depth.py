import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.camera.depth import depth_picture


@given(st.floats(0.05, 1.0), st.floats(0.05, 3.0))
def test_near_is_bright_in_equal_steps_and_what_was_not_measured_is_black(near, length):
    far = near + length
    depth = np.concatenate(([0.0, -1.0, np.nan, np.inf, 0.5 * near, 2.0 * far], np.linspace(near, far, 255)))
    picture = depth_picture(depth[None, :], near, far)
    assert picture.shape == (1, len(depth), 3)
    assert (picture == picture[:, :, :1]).all()
    assert picture[0, :6, 0].tolist() == [0, 0, 0, 0, 255, 1]
    assert picture[0, 6:, 0].tolist() == list(range(255, 0, -1))
