"""Simulated robot and tasks that implement the contracts of `robot_rl`."""

import os
import sys

from robot_rl.system.sister_packages import check_sister

PART_OF = "robot_rl"
"""Mark: see `robot_rl.system.sister_packages`."""

check_sister("calibration")  # whose results are read here

GL_FAILURE = ""
"""Reason why this process cannot render, or empty. Everything else works; cameras raise `RenderError`."""

# MuJoCo picks its OpenGL platform when it is imported. On a machine without a screen only EGL can render.
if sys.platform == "linux" and not os.environ.get("DISPLAY") and "MUJOCO_GL" not in os.environ:
    if "mujoco" in sys.modules:
        GL_FAILURE = "mujoco was imported before sim, when MUJOCO_GL was not set"
    os.environ["MUJOCO_GL"] = "egl"
GL_PLATFORM = os.environ.get("MUJOCO_GL", "(unset)")
try:
    import mujoco
except (AttributeError, ImportError, OSError, RuntimeError) as error:
    # A missing library shows as an AttributeError of PyOpenGL's, a platform unknown to MuJoCo as a RuntimeError.
    GL_FAILURE = str(error)
    os.environ["MUJOCO_GL"] = "disable"
    import mujoco  # noqa: F401
