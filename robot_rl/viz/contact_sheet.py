"""Pictures of recorded episodes, made without a screen: a contact sheet (PNG) and a film (MP4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.data.schema import IMAGE_PREFIX, INTERRUPTED, Episode, Source
from robot_rl.data.store.info import control_rate
from robot_rl.errors import DataError
from robot_rl.system.atomic_file import writing

SOURCE_COLOURS = {
    Source.POLICY: (0, 114, 178),
    Source.HUMAN: (213, 94, 0),
    Source.SCRIPT: (0, 158, 115),
    Source.HOLD: (150, 150, 150),
}
"""Blue, orange and green of Okabe and Ito's palette."""
_ACTION_COLOURS = (
    (0, 0, 0),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
    (0, 158, 115),
    (213, 94, 0),
    (0, 114, 178),
)
_REWARD, _PAPER, _INK, _GRID = (200, 30, 30), (255, 255, 255), (30, 30, 30), (205, 205, 205)
_COLUMNS, _THUMB = 10, 96
_TEXT, _BAND, _PLOT, _GAP = 16, 8, 44, 8


def contact_sheet(episodes: Sequence[Episode], path: Path) -> None:
    """Writes a PNG: per episode frames at even distances, who acted when, actions and rewards over time.

    Raises:
        DataError: if there are no episodes.
        RunDirectoryError: if it cannot be written.
    """
    if not episodes:
        raise DataError("no episodes to show")
    strips = [_strip(episode) for episode in episodes]
    legend = _legend()
    sheet = Image.new("RGB", (_COLUMNS * _THUMB, legend.height + sum(strip.height for strip in strips)), _PAPER)
    top = 0
    for part in (legend, *strips):
        sheet.paste(part, (0, top))
        top += part.height
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path, "png")


def film(episodes: Iterable[Episode], path: Path, *, fps: float | None = None) -> None:
    """Writes an MP4: all cameras side by side, step by step, framed in the colour of who acted.

    Args:
        episodes: Which; all with the same cameras.
        path: The file.
        fps: Frames per second; None takes real time, as the stamps of the first episode tell.

    Raises:
        DataError: if there are no episodes, or one has no images.
        RunDirectoryError: if it cannot be written.
    """
    writer: Mp4Writer | None = None
    with ExitStack() as stack:
        for episode in episodes:
            if not (cameras := _cameras(episode)):
                raise DataError(f"episode {episode.episode_id}: has no images to film; a .png shows actions too")
            if writer is None:
                rate = fps or control_rate(episode.stamp_obs) or 10.0
                writer = stack.enter_context(Mp4Writer(path, rate))
            for t in range(len(episode) + 1):
                writer.add(_frame(episode, cameras, t))
    if writer is None:
        raise DataError("no episodes to show")


def _cameras(episode: Episode) -> list[str]:
    return sorted(key for key in episode.observations if key.startswith(IMAGE_PREFIX))


def _outcome(episode: Episode) -> str:
    if episode.metadata.get(INTERRUPTED):
        return "interrupted"
    success = episode.metadata.get("success")
    return "success" if success else "outcome not recorded" if success is None else "failed"


def _legend() -> Image.Image:
    image = Image.new("RGB", (_COLUMNS * _THUMB, _TEXT + _GAP), _PAPER)
    draw, x = ImageDraw.Draw(image), 4
    for text, colour in [*((s.name.lower(), c) for s, c in SOURCE_COLOURS.items()), ("reward", _REWARD)]:
        draw.rectangle((x, 5, x + 10, 13), fill=colour)
        draw.text((x + 14, 3), text, fill=_INK)
        x += 70
    draw.text((x, 3), "thin lines: elements of the action, -1 to 1", fill=_INK)
    return image


def _strip(episode: Episode) -> Image.Image:
    """One episode of a contact sheet."""
    rows = np.linspace(0, len(episode), _COLUMNS).round().astype(int)
    pictures = []
    for key in _cameras(episode):
        height, width = episode.observations[key].shape[1:3]
        size = (_THUMB - 2, max(1, round((_THUMB - 2) * height / width)))
        pictures.append([_picture(episode.observations[key][t]).resize(size) for t in rows])
    image_height = sum(row[0].height + 2 for row in pictures)
    image = Image.new("RGB", (_COLUMNS * _THUMB, _TEXT + image_height + _BAND + _PLOT + _GAP), _PAPER)
    draw = ImageDraw.Draw(image)
    text = f"{episode.episode_id}   {len(episode)} steps   {_outcome(episode)}   rewards: {episode.reward_source}"
    draw.text((4, 2), text, fill=_INK)
    top = _TEXT
    for row in pictures:
        for column, picture in enumerate(row):
            image.paste(picture, (column * _THUMB + 1, top))
        top += row[0].height + 2
    _timeline(draw, episode, top)
    return image


def _timeline(draw: ImageDraw.ImageDraw, episode: Episode, top: int) -> None:
    """Who acted, and below that actions and rewards, over time."""
    width, steps = _COLUMNS * _THUMB, len(episode)
    edges = np.linspace(0, width, steps + 1)
    for t in range(steps):
        colour = SOURCE_COLOURS.get(int(episode.source[t]), _INK)  # type: ignore[call-overload]
        draw.rectangle((edges[t], top, edges[t + 1], top + _BAND - 1), fill=colour)
    low, high = top + _BAND, top + _BAND + _PLOT
    scale = max(1.0, float(np.abs(episode.reward).max()))
    for t in np.flatnonzero(episode.reward).tolist():
        height = abs(float(episode.reward[t])) / scale * _PLOT
        draw.rectangle((edges[t], high - height, edges[t + 1], high), fill=_REWARD)
    draw.line((0, (low + high) / 2, width, (low + high) / 2), fill=_GRID)
    middles = (edges[:-1] + edges[1:]) / 2
    for element, colour in zip(episode.action.T, _ACTION_COLOURS * len(episode.action.T), strict=False):
        heights = high - (np.clip(element, -1, 1) + 1) / 2 * _PLOT
        draw.line([*zip(middles.tolist(), heights.tolist(), strict=True)], fill=colour)


def _frame(episode: Episode, cameras: list[str], t: int) -> np.ndarray:
    """One frame of a film, of even height and width."""
    views = [_picture(episode.observations[key][t]) for key in cameras]
    height, width = max(view.height for view in views), max(320, sum(view.width for view in views))
    image = Image.new("RGB", (width + width % 2, height + height % 2 + 2 * _TEXT), _PAPER)
    draw, x = ImageDraw.Draw(image), 0
    for view in views:
        image.paste(view, (x, 2 * _TEXT))
        x += view.width
    draw.text((4, 2), f"{episode.episode_id}   step {t} of {len(episode)}   {_outcome(episode)}", fill=_INK)
    if t < len(episode):
        source = Source(int(episode.source[t]))
        draw.rectangle((4, _TEXT + 3, 14, _TEXT + 11), fill=SOURCE_COLOURS[source])
        draw.text((18, _TEXT), f"{source.name.lower()}   reward {episode.reward[t]:.3g}", fill=_INK)
    return np.asarray(image)


def _picture(frame: np.ndarray) -> Image.Image:
    return Image.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame).convert("RGB")
