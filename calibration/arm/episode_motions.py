"""Motions in free space from recorded episodes: the commands to the arm, and the path that it took.

Episodes hold actions and poses relative to the start. The task's own safety filter turns them into set-points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from robot_rl.data.schema import Episode, Source
from robot_rl.env.action_mapping import SafetyFilter
from robot_rl.env.playback import Motion
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec
from robot_rl.env.task_arms import WRENCH
from robot_rl.errors import DataError
from robot_rl.geometry import Pose

CONTACT_FORCE = 4.0
"""Force on the tool above which the arm is in contact [N]; the inertia of the tool alone stays below."""
MIN_STEPS = 5
"""Shorter motions are skipped."""


def motions_of(episodes: Iterable[Episode], task: TaskSpec) -> Iterator[Motion]:
    """Yield the free motion at the start of each episode; episodes without one are skipped.

    A motion is free until something touches the tool, the gripper closes, the action has a wrench, or the arm is held.

    Args:
        episodes: Episodes of that task, recorded with its limits.
        task: The task and its limits.

    Raises:
        DataError: if an episode lacks forces, or the pose at which it began.
    """
    for episode in episodes:
        free = _free_steps(episode, task)
        if free >= MIN_STEPS:
            yield _motion(episode, free, SafetyFilter(task))


def _free_steps(episode: Episode, task: TaskSpec) -> int:
    """Return the number of steps before the first that is not free."""
    if (wrench := episode.observations.get(WRENCH)) is None:
        raise DataError(
            f"episode {episode.episode_id} has no forces ({WRENCH}), so where contact begins is not known; record with "
            "an arm that measures them"
        )
    force = np.linalg.norm(wrench[1:, :3], axis=1)
    bound = (force > CONTACT_FORCE) | (episode.source == Source.HOLD)
    steps = len(task.action_axes)
    bound |= episode.action[:, steps : steps + len(task.wrench_axes)].any(axis=1)
    if task.gripper:
        bound |= episode.action[:, -1] <= -0.5
    return int(np.argmax(bound)) if bound.any() else len(episode)


def _motion(episode: Episode, steps: int, safety: SafetyFilter) -> Motion:
    if (start := episode.facts.T_base_reset) is None:
        raise DataError(f"episode {episode.episode_id} lacks its start pose (T_base_reset); record it again")
    where = np.array(start)
    T_base_reset = Pose.from_rotvec(where[:3], where[3:])
    measured = episode.observations["state/tcp_pose"][: steps + 1].astype(float)
    poses = tuple(T_base_reset @ Pose.from_rotvec(row[:3], row[3:]) for row in measured)
    stamps = episode.stamp_obs[: steps + 1]
    nothing = np.zeros(6)
    targets = [
        safety.apply(
            action, RobotState(int(stamp), pose, nothing, nothing, nothing, nothing), T_base_reset, int(stamp)
        ).command.T_base_target
        for action, pose, stamp in zip(episode.action[:steps], poses[:-1], episode.stamp_action[:steps], strict=True)
    ]
    return Motion(episode.episode_id, stamps, poses, episode.stamp_action[:steps], tuple(targets))
