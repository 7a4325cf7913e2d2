"""The robot file of an arm in memory with two tasks that take turns: there from a start pose, back from where it is."""

import copy

import yaml
from judged_arm import PLUG

GOAL = {"spread": [0.02, 0.02, 0.02], "tolerance": 0.012}
FILE = {
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
    """Write it, after a change."""
    content = copy.deepcopy(FILE)
    change(content)
    (path / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    return path / name
