"""Every quality-of-service profile, with its reason. A topic uses one of these and nothing else."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


def _profile(depth: int, *, reliable: bool = True, latched: bool = False) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


MEASUREMENT = _profile(10)
"""What we measure and publish. Reliable, so that readers of either kind can take it."""
READING = _profile(5, reliable=False)
"""What we read of a robot or camera. Best effort: it takes what any driver offers, and a lost sample is not worth
waiting for, because the next one is newer."""
LOCKSTEP_READING = _profile(10)
"""The same where time waits for us: then every sample counts."""
COMMAND = _profile(1)
"""Commands and stops share one topic, so that they cannot overtake each other; only the newest counts."""
EVENT = _profile(10)
"""Buttons, heartbeats, verdicts: rare and small, and each one counts."""
LATCHED = _profile(1, latched=True)
"""What somebody who comes later has to know: the task, the state of the emergency stop, a calibration."""
STREAM = _profile(256)
"""Frames of the link between actor and learner, which numbers and repeats them itself."""
