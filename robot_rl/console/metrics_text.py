"""The state of the job and of the arm in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PREFIX = "robot_rl_"
RECENT = 20
"""Newest episodes in the rates."""
_HEALTH = (
    ("updates_per_s", "learner_updates_per_second", "Critic updates per second"),
    ("utd", "update_to_data_ratio", "Critic updates per online step since learning started"),
    ("q_mean", "q_mean", "Return that the critics expect on average"),
    ("critic_loss", "critic_loss", "Loss of the critics"),
    ("success_alone", "success_alone_ratio", "Success rate of the last evaluation without help"),
)
_ARM = (
    ("speed", "tcp_speed_meters_per_second", "Speed of the tool centre point"),
    ("peak_force", "peak_force_newtons", "Largest force of the episode so far"),
    ("gripper", "gripper_width_meters", "Opening of the gripper"),
)
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

LabelledValue = tuple[Mapping[str, str], float]


def exposition(job: Mapping[str, Any], state: Mapping[str, Any], episodes: Sequence[Mapping[str, Any]]) -> str:
    """Return all metrics as text.

    Args:
        job: The facts of the job that do not change.
        state: What changes, of `ConsoleSnapshot.state`.
        episodes: The points of the curve of online episodes, in their order.
    """
    lines: list[str] = []

    def add(name: str, kind: str, text: str, samples: Iterable[LabelledValue]) -> None:
        rows = [_sample(f"{PREFIX}{name}", labels, value) for labels, value in samples if math.isfinite(value)]
        if rows:
            lines.extend((f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} {kind}", *rows))

    def gauge(name: str, text: str, value: Any) -> None:
        if isinstance(value, int | float):
            add(name, "gauge", text, [({}, float(value))])

    health, arm = state["health"], state.get("arm") or {}
    add("job_info", "gauge", "What runs", [({"task": str(job["task"]), "kind": str(job["kind"])}, 1.0)])
    add("phase_info", "gauge", "Phase of the job", [({"phase": str(state["phase"]["name"])}, 1.0)])
    gauge("env_steps", "Online steps so far", health.get("env_step"))
    gauge("env_steps_wanted", "Online steps that the job shall take", job["env_steps"])
    outcomes = {True: "success", False: "failure", None: "not_known"}
    counts = dict.fromkeys(outcomes.values(), 0.0)
    for row in episodes:
        counts[outcomes[row.get("success")]] += 1
    counted = [({"outcome": name}, count) for name, count in counts.items()]
    add("episodes_total", "counter", "Online episodes since the console was started", counted)
    recent = episodes[-RECENT:]
    gauge(
        "success_recent_ratio",
        f"Share of the newest {RECENT} online episodes that succeeded without help",
        _mean([bool(row["success"]) and not row.get("assisted") for row in recent if row.get("success") is not None]),
    )
    gauge(
        "intervention_recent_ratio",
        f"Share of steps that the operator led, mean over the newest {RECENT} online episodes",
        _mean([row["intervention_rate"] for row in recent if row.get("intervention_rate") is not None]),
    )
    for key, name, text in _HEALTH:
        gauge(name, text, health.get(key))
    gauge("holds", "Reasons for which the arm is held now", len(state["holds"]))
    add("hold_info", "gauge", "Who holds the arm", [({"name": str(one["name"])}, 1.0) for one in state["holds"]])
    for key, name, text in _ARM:
        gauge(name, text, arm.get(key))
    if arm.get("force") is not None:
        gauge("tcp_force_newtons", "Force at the tool centre point", math.hypot(*arm["force"]))
    return "\n".join(lines) + "\n"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """Return a line of the format; backslash, quote and line feed of a label are escaped."""
    pairs = [f'{key}="{text.translate(_ESCAPED)}"' for key, text in labels.items()]
    return f"{name}{{{','.join(pairs)}}} {value:.10g}" if pairs else f"{name} {value:.10g}"
