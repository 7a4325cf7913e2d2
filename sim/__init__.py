"""The simulated robot and its tasks, behind the contracts of `robot_rl`."""

import os
import sys

# MuJoCo picks its OpenGL platform when it is imported. On a machine without a screen only EGL can render.
if sys.platform == "linux" and not os.environ.get("DISPLAY"):
    os.environ.setdefault("MUJOCO_GL", "egl")

GL_PLATFORM = os.environ.get("MUJOCO_GL", "(unset)")
GL_FAILURE = ""
"""Why the OpenGL platform cannot be loaded, or empty. Physics does without it; cameras raise `RenderError`."""
try:
    import mujoco
except (AttributeError, ImportError, OSError, RuntimeError) as error:
    # A missing library shows as an AttributeError of PyOpenGL's, a platform unknown to MuJoCo as a RuntimeError.
    GL_FAILURE = str(error)
    os.environ["MUJOCO_GL"] = "disable"
    import mujoco  # noqa: F401
