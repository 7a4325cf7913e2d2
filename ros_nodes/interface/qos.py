"""Every quality-of-service profile, with its reason. A topic uses one of these and nothing else."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy

OFFERED_LEASE = 0.075
"""Lease of the liveliness of our heartbeats [s]. DDS announces it every two thirds of that, so a reader with a lease of
0.25 s misses four announcements before it reports a death."""


def _profile(depth: int, *, reliable: bool = True, latched: bool = False) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def _live(lease: float) -> QoSProfile:
    profile = _profile(1)
    profile.liveliness = LivelinessPolicy.AUTOMATIC
    profile.liveliness_lease_duration = Duration(seconds=lease)
    return profile


def watched(lease: float) -> QoSProfile:
    """Return the profile that reads heartbeats: DDS reports a writer without a sign of life for `lease` [s]."""
    return _live(lease)


MEASUREMENT = _profile(10)
"""What we measure and publish. Reliable, so that readers of either kind can take it."""
READING = _profile(5, reliable=False)
"""What we read of a robot or camera. Best effort: it takes what any driver offers, and a lost sample is not worth
waiting for, because the next one is newer."""
NEWEST_FRAME = _profile(1, reliable=False)
"""Frames of another driver, which are large: only the newest one counts."""
LOCKSTEP_READING = _profile(10)
"""The same where time waits for us: then every sample counts."""
COMMAND = _profile(1)
"""Commands and stops share one topic, so that they cannot overtake each other; only the newest counts."""
EVENT = _profile(10)
"""Buttons and verdicts: rare and small, and each one counts."""
HEARTBEAT = _live(OFFERED_LEASE)
"""Heartbeats. DDS announces by itself that their writer lives, also while the node's callbacks are late."""
LATCHED = _profile(1, latched=True)
"""What somebody who comes later has to know: the task, the state of the emergency stop, a calibration."""
FIXED_TRANSFORMS = _profile(100, latched=True)
"""Fixed transforms of TF, from many publishers, each with the newest of its own."""
STREAM = _profile(256)
"""Frames of the link between actor and learner, which numbers and repeats them itself."""
