"""The simulated robot and its tasks, behind the contracts of `robot_rl`."""

import ctypes
import os
import sys

# MuJoCo picks its OpenGL platform when it is imported. On a machine without a screen only EGL can render; where its
# library is missing, the import itself would fail, although everything but the cameras works without.
if sys.platform == "linux":
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")
    if os.environ.get("MUJOCO_GL") == "egl":
        try:
            ctypes.CDLL("libEGL.so.1")
        except OSError:
            os.environ["MUJOCO_GL"] = "disable"
