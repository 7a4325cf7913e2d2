"""Before anything else: `sim` picks MuJoCo's OpenGL platform, which has to happen before anybody imports `mujoco`."""

import sim  # noqa: F401
