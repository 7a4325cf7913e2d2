"""Recorded episodes in Rerun: images, states, actions and who chose them, rewards and labels; the tool in space."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.schema import IMAGE_PREFIX, Episode, Source
from robot_rl.data.store.reward_overlays import overlay_fingerprints, overlay_names, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import PluginError
from robot_rl.geometry import quat_from_rotvec
from robot_rl.system.atomic_file import writing


def show(store: EpisodeStore, episode_ids: Iterable[str], path: Path | None) -> None:
    """Send episodes to the viewer, or into a file that the viewer opens.

    Args:
        store: Where they are.
        episode_ids: Which; each becomes a branch of the tree, with time counted from its start.
        path: The `.rrd` file; None starts the viewer.

    Raises:
        PluginError: if Rerun is not installed, or its viewer cannot be started.
        DataError: if an episode cannot be read.
        RunDirectoryError: if the file cannot be written.
    """
    try:
        import rerun
    except ImportError as error:
        raise PluginError(
            "viewing needs Rerun: pip install 'robot_rl[rerun]'; or write a picture with --out FILE.png"
        ) from error
    recording = rerun.RecordingStream("robot_rl")
    try:
        if path is None:
            recording.spawn()
        else:
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                recording.save(path)
    except RuntimeError as error:
        raise PluginError(f"the Rerun viewer cannot be started: {error}; write a file with --out FILE.rrd") from error
    labelled = {name: overlay_fingerprints(store.path, name) for name in overlay_names(store.path)}
    for episode_id in episode_ids:
        mark = store.fingerprint(episode_id)
        labels = {
            name: read_overlay(store.path, name, mark).reward for name, marks in labelled.items() if mark in marks
        }
        _send(rerun, recording, store.read(episode_id), labels)
    recording.flush()


FORCE_LENGTH = 0.002
"""Length of the arrow of the force [m/N]."""
POSE = "tcp_pose"
"""Of `state/tcp_pose`, and of `state/left/tcp_pose` where there are several arms."""
AXES_LENGTH = 0.02
"""Of the tool's frame [m]."""


def _scenes(episode: Episode, root: str) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Return pose (T + 1, 6) and wrench of each tool by the branch of its scene; each is in a frame of its own arm."""
    seen = episode.observations
    arms = [key.removeprefix("state/").removesuffix(POSE) for key in seen if key.endswith(f"/{POSE}")]
    return {
        f"{root}/scene/{arm}".rstrip("/"): (seen[f"state/{arm}{POSE}"], seen.get(f"state/{arm}wrench")) for arm in arms
    }


def _send(rerun: Any, recording: Any, episode: Episode, labels: dict[str, np.ndarray]) -> None:
    root = episode.episode_id
    recording.log(f"{root}/facts", rerun.TextDocument(str(dict(episode.metadata))), static=True)
    scenes = _scenes(episode, root)
    for scene, (pose, _) in scenes.items():
        recording.log(f"{scene}/way", rerun.LineStrips3D([pose[:, :3]]), static=True)
        axes = rerun.Arrows3D(vectors=AXES_LENGTH * np.eye(3), colors=255 * np.eye(3, dtype=np.uint8))
        recording.log(f"{scene}/tcp/axes", axes, static=True)
    for t in range(len(episode) + 1):
        recording.set_time("step", sequence=t)
        recording.set_time("time", duration=(int(episode.stamp_obs[t]) - int(episode.stamp_obs[0])) / 1e9)
        for scene, (pose, wrench) in scenes.items():
            turn = quat_from_rotvec(pose[t, 3:].astype(np.float64))
            recording.log(
                f"{scene}/tcp",
                rerun.Transform3D(translation=pose[t, :3], quaternion=rerun.Quaternion(xyzw=np.roll(turn, -1))),
            )
            if wrench is not None:
                recording.log(f"{scene}/tcp/force", rerun.Arrows3D(vectors=[FORCE_LENGTH * wrench[t, :3]]))
        for key, column in episode.observations.items():
            content = column[t]
            if key.startswith(IMAGE_PREFIX):
                recording.log(f"{root}/{key}", rerun.Image(content[..., 0] if content.shape[-1] == 1 else content))
            elif content.size:
                recording.log(f"{root}/{key}", rerun.Scalars(content.ravel().astype(np.float64)))
        if episode.action_base is not None:
            recording.log(f"{root}/action_base", rerun.Scalars(episode.action_base[t].astype(np.float64)))
        if t < len(episode):
            recording.log(f"{root}/action", rerun.Scalars(episode.action[t].astype(np.float64)))
            recording.log(f"{root}/action_policy", rerun.Scalars(episode.action_policy[t].astype(np.float64)))
            recording.log(f"{root}/source", rerun.Scalars([float(episode.source[t])]))
            if t == 0 or episode.source[t] != episode.source[t - 1]:
                who = Source(int(episode.source[t])).name.lower()
                recording.log(f"{root}/source_changes", rerun.TextLog(f"{who} in control"))
            recording.log(f"{root}/reward/{episode.reward_source}", rerun.Scalars([float(episode.reward[t])]))
            for name, reward in labels.items():
                recording.log(f"{root}/reward/label_{name}", rerun.Scalars([float(reward[t])]))
