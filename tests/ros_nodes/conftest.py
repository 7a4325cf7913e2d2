"""Without ROS these tests are skipped, and say so."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: source an installation, or pip install 'robot_rl[ros]'")
