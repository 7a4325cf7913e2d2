"""The simulated robot and its tasks, behind the contracts of `robot_rl`."""

import os
import sys

# MuJoCo picks its OpenGL platform when it is imported. On a machine without a screen only EGL can render.
if sys.platform == "linux" and not os.environ.get("DISPLAY"):
    os.environ.setdefault("MUJOCO_GL", "egl")
