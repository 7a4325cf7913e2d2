"""A plot of where demonstrations start and end, which shows what is not covered yet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from robot_rl.data.schema import Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task_arms import POSE, arm_key
from robot_rl.geometry import Pose, quat_rotate
from robot_rl.viz.learning_curve import BLUE, GREEN, ORANGE
from robot_rl.viz.png import write_png


def coverage(store: EpisodeStore, path: Path, *, title: str) -> None:
    """Write a PNG of each tool's paths from above and from the side, with starts and ends.

    Args:
        store: The demonstrations.
        path: The PNG.
        title: Of the figure.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    arms = next((episode.facts.arms for episode in store.episodes()), ()) or ("",)
    figure = Figure(figsize=(9.5, 4.6 * len(arms)), layout="constrained")
    figure.suptitle(title, fontweight="bold")
    for arm, panels in zip(arms, figure.subplots(len(arms), 2, squeeze=False), strict=True):
        _draw(store, arm, panels)
    write_png(figure, path, dpi=120)


def _draw(store: EpisodeStore, arm: str, panels: np.ndarray) -> None:
    """Draw the paths of one arm, which has a name if there are several."""
    marked: set[str] = set()
    for episode in store.episodes():
        points = base_path(episode, arm) * 1000.0
        success = bool(episode.facts.success)
        end, colour = ("success", GREEN) if success else ("no success", ORANGE)
        for axes, (i, j) in zip(panels, ((0, 1), (0, 2)), strict=True):
            axes.plot(points[:, i], points[:, j], color="#888888", linewidth=0.8, alpha=0.6)
            axes.plot(*points[0, [i, j]], "o", color=BLUE, markersize=5, label=None if "start" in marked else "start")
            axes.plot(*points[-1, [i, j]], "D", color=colour, markersize=6, label=None if end in marked else end)
        marked |= {"start", end}
    for axes, name, vertical in zip(panels, ("From above", "From the side"), ("y", "z"), strict=True):
        axes.set_title(f"{arm}: {name.lower()}" if arm else name, loc="left", fontsize=11)
        axes.set_xlabel(f"x of the {f'{arm} arm' if arm else 'robot'}'s base [mm]")
        axes.set_ylabel(f"{vertical} [mm]")
        axes.set_aspect("equal", adjustable="datalim")
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(fontsize=9, framealpha=0.85)


def base_path(episode: Episode, arm: str = "") -> np.ndarray:
    """Return the tcp's positions in the base frame [m], shape (T + 1, 3); relative to the start if that is unknown.

    Args:
        episode: The episode.
        arm: Which of several arms; empty: there is one.
    """
    offsets = np.asarray(episode.observations[arm_key(POSE, arm)], float)[:, :3]
    start = episode.facts.T_base_reset_of_arms.get(arm) if arm else episode.facts.T_base_reset
    if start is None:
        return offsets
    pose = Pose.from_rotvec(np.array(start[:3]), np.array(start[3:]))
    return np.array([pose.position + quat_rotate(pose.quaternion, offset) for offset in offsets])
