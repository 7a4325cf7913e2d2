import numpy as np

from robot_rl.arm.frame_tree import FrameTree
from robot_rl.geometry import Pose


def test_a_pose_is_that_along_the_way_whatever_the_order_and_the_direction():
    rng = np.random.default_rng(0)
    in_root = {name: Pose.from_rotvec(rng.normal(size=3), rng.normal(size=3)) for name in "abcde"}
    tree = FrameTree()
    for parent, child in ("bd", "ab", "ce", "ac"):
        tree.add(parent, child, in_root[parent].inverse() @ in_root[child])
    tree.add("x", "y", Pose.identity())
    for one in "abcde":
        for other in "abcde":
            found, expected = tree.pose(one, other), in_root[one].inverse() @ in_root[other]
            np.testing.assert_allclose(found.vector(), expected.vector(), atol=1e-9)
        assert tree.pose(one, "y") is None
    tree.add("b", "d", Pose.from_rotvec(np.ones(3), np.zeros(3)))
    np.testing.assert_allclose(tree.pose("b", "d").position, np.ones(3))
