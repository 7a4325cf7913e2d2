"""Robot files of an arm in memory: with a task that a person judges, and with two tasks that take turns."""

import copy

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


GOAL = {"spread": [0.02, 0.02, 0.02], "tolerance": 0.012}
PAIR = {
    **PLUG,
    "cell": {"judge": "goal", "max_age": 1.0},
    "goal": GOAL,
    "task": {**PLUG["task"], "instruction": "bring the tool there", "reverse": "back", "max_steps": 15},
    "reverse": {"task": {"instruction": "bring the tool back", "start": None}, "goal": GOAL},
}
SKILLED = [
    "demonstrations=1",
    "base.kind=scripted",  # the operator's actions, uncorrected: every episode succeeds
    "warmup=base",
    "warmup_steps=100000",
    "replay.batch_size=16",
    "sac.hidden_sizes=[32, 32]",
    "update_to_data=1",
    "evaluation.curve_interval=0",
    "evaluation.episodes=1",
    "env_steps=12",
]


def practised_arm(path, change=lambda content: None, name="robot.yaml"):
    """Write the file of the pair, there from a start pose and back from where the arm is, after a change."""
    content = copy.deepcopy(PAIR)
    change(content)
    (path / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    return path / name
