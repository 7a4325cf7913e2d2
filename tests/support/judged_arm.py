"""The robot file of an arm in memory, with a task that a person judges."""

import yaml

PLUG = {
    "arm": {"driver": "standin"},
    "limits": {"box_low": [0.38, -0.08, 0.1], "box_high": [0.52, 0.08, 0.28], "max_speed": 0.2, "max_age": 1.0},
    "cell": {"judge": "person", "scene": "none", "max_age": 1.0},
    "task": {
        "instruction": "insert the plug",
        "max_steps": 300,
        "control_period": 0.1,
        "workspace": {"low": [-0.05, -0.05, -0.05], "high": [0.05, 0.05, 0.05], "yaw": 0.1, "tilt": 0.1},
        "action_axes": ["x", "y", "z"],
        "force_limit": 30.0,
        "start": {"position": [0.45, 0.0, 0.2], "quaternion": [0, 1, 0, 0], "speed": 0.2},
    },
}


def judged_arm(**more):
    """Its text; `more` are entries of its sections, beside those that are there."""
    sections = {**PLUG, **{name: {**PLUG.get(name, {}), **entries} for name, entries in more.items()}}
    return yaml.safe_dump(sections)
