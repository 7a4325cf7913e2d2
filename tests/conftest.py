"""Before anything else: `sim` picks MuJoCo's OpenGL platform, which has to happen before anybody imports `mujoco`.

And examples of properties may take as long as they do, since these machines are busy at times.
"""

from hypothesis import HealthCheck, settings

import sim  # noqa: F401

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")
