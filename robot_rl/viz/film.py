"""Films of episodes as MP4 that browsers play (H.264): of recorded ones, and of those that are being played."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.data.schema import BASE_ACTION, IMAGE_PREFIX, Episode, Observation, Source, Step
from robot_rl.data.store.info import control_rate
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.errors import DataError
from robot_rl.viz.action_panel import SIZE, ActionPanel
from robot_rl.viz.episode_frame import captioned, describe_outcome

RATES = (1.0, 240.0)
"""Least and most frames per second of a film: in real time, steps of an hour or of a microsecond show nothing."""


def write_film(episodes: Iterable[Episode], path: Path, *, fps: float | None = None) -> None:
    """Write a film of recorded episodes, step by step.

    Args:
        episodes: Which; all with the same cameras.
        path: The file.
        fps: Frames per second, within `RATES`; None takes real time, by the stamps of the first episode.

    Raises:
        DataError: if there are no episodes, or one has no images.
        RunDirectoryError: if it cannot be written.
    """
    writer: Mp4Writer | None = None
    with ExitStack() as stack:
        for episode in episodes:
            cameras = sorted(key for key in episode.observations if key.startswith(IMAGE_PREFIX))
            if not cameras:
                raise DataError(f"episode {episode.episode_id}: has no images to film; a .png shows actions too")
            if writer is None:
                rate = fps or control_rate(episode.stamp_obs) or 10.0
                writer = stack.enter_context(Mp4Writer(path, _shown(rate)))
            panel = ActionPanel()
            for t in range(len(episode) + 1):
                frames = [episode.observations[camera][t] for camera in cameras]
                if t < len(episode):
                    panel.add(episode.step(t))
                if (picture := panel.picture()) is not None:
                    frames.append(picture)
                caption = f"{episode.episode_id}   step {t} of {len(episode)}   {describe_outcome(episode)}"
                if t < len(episode):
                    source, detail = Source(int(episode.source[t])), f"reward {episode.reward[t]:.3g}"
                    writer.add(captioned(frames, caption, source, detail))
                else:
                    writer.add(captioned(frames, caption))
    if writer is None:
        raise DataError("no episodes to show")


class FilmRecorder:
    """An observer of a rollout that films what cameras see; use it in a `with` block.

    With a base policy, a panel beside the frames shows what it proposed and what was carried out. A film that cannot be
    finished is removed.

    Args:
        path: The file.
        frame_rate: Frames per second, within `RATES`; the control rate gives real time.
        cameras: Whose frames are shown, from left to right; None shows all.
        hold: How long the last frame of an episode stays [s].
    """

    def __init__(
        self, path: Path, frame_rate: float, cameras: tuple[str, ...] | None = None, hold: float = 1.0
    ) -> None:
        self._cameras = cameras
        rate = _shown(frame_rate)
        self._file, self._held = Mp4Writer(path, rate), round(hold * rate)
        self._episodes, self._panel = 0, ActionPanel()

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Keep the first frame of a new episode until it is known who acts on it."""
        del episode_id  # episodes are numbered
        self._episodes += 1
        self._last = observation
        self._panel.begin()

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Film the frame on which the step acted."""
        self._panel.add(step)
        self._write(f"step {step.index}", step.source, f"reward {step.reward:.3g}")
        self._last = next_observation

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Film the last frame for a while, with the outcome."""
        outcome = "success" if result.success else f"failed: {result.failure or 'step limit'}"
        if episode.facts.success is None:
            outcome = f"return {result.total_reward:.4g}"
        for _ in range(1 + self._held):
            self._write(f"step {len(episode)}   {outcome}, {result.cycle_time:.1f} s")

    def __enter__(self) -> Self:
        """Return the recorder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the file, or after an error remove it."""
        self._file.__exit__(kind, error, trace)

    def _write(self, caption: str, source: Source | None = None, detail: str = "") -> None:
        every = sorted(key for key in self._last if key.startswith(IMAGE_PREFIX))
        keys = every if self._cameras is None else [f"{IMAGE_PREFIX}{camera}" for camera in self._cameras]
        frames = [self._last[key] for key in keys]
        if (panel := self._panel.picture()) is not None:
            frames.append(panel)
        elif BASE_ACTION in self._last:  # all pictures of a film have one size
            frames.append(np.full((SIZE[1], SIZE[0], 3), 255, np.uint8))
        self._file.add(captioned(frames, f"episode {self._episodes}   {caption}", source, detail))


def _shown(rate: float) -> float:
    """Return the rate at which a film is shown [1/s]."""
    return min(max(rate, RATES[0]), RATES[1])
