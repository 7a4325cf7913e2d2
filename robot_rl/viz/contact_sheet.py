"""A contact sheet (PNG) of recorded episodes, made without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.errors import DataError
from robot_rl.system.atomic_file import writing
from robot_rl.viz.episode_frame import INK, LINE, PAPER, SOURCE_COLOURS, describe_outcome, to_picture

_ACTION_COLOURS = (
    (0, 0, 0),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
    (0, 158, 115),
    (213, 94, 0),
    (0, 114, 178),
)
_REWARD, _GRID = (200, 30, 30), (205, 205, 205)
_COLUMNS, _THUMB = 10, 96
_BAND, _PLOT, _GAP = 8, 44, 8


def contact_sheet(episodes: Sequence[Episode], path: Path) -> None:
    """Write a PNG: per episode frames at even distances, who acted when, actions and rewards over time.

    Raises:
        DataError: if there are no episodes.
        RunDirectoryError: if it cannot be written.
    """
    if not episodes:
        raise DataError("no episodes to show")
    strips = [_strip(episode) for episode in episodes]
    legend = _legend()
    sheet = Image.new("RGB", (_COLUMNS * _THUMB, legend.height + sum(strip.height for strip in strips)), PAPER)
    top = 0
    for part in (legend, *strips):
        sheet.paste(part, (0, top))
        top += part.height
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path, "png")


def _cameras(episode: Episode) -> list[str]:
    return sorted(key for key in episode.observations if key.startswith(IMAGE_PREFIX))


def _legend() -> Image.Image:
    image = Image.new("RGB", (_COLUMNS * _THUMB, LINE + _GAP), PAPER)
    draw, x = ImageDraw.Draw(image), 4
    for text, colour in [*((s.name.lower(), c) for s, c in SOURCE_COLOURS.items()), ("reward", _REWARD)]:
        draw.rectangle((x, 5, x + 10, 13), fill=colour)
        draw.text((x + 14, 3), text, fill=INK)
        x += 70
    draw.text((x, 3), "thin lines: elements of the action, -1 to 1", fill=INK)
    return image


def _strip(episode: Episode) -> Image.Image:
    """Return one episode of a contact sheet."""
    rows = np.linspace(0, len(episode), _COLUMNS).round().astype(int)
    pictures = []
    for key in _cameras(episode):
        height, width = episode.observations[key].shape[1:3]
        size = (_THUMB - 2, max(1, round((_THUMB - 2) * height / width)))
        pictures.append([to_picture(episode.observations[key][t]).resize(size) for t in rows])
    image_height = sum(row[0].height + 2 for row in pictures)
    image = Image.new("RGB", (_COLUMNS * _THUMB, LINE + image_height + _BAND + _PLOT + _GAP), PAPER)
    draw = ImageDraw.Draw(image)
    text = (
        f"{episode.episode_id}   {len(episode)} steps   {describe_outcome(episode)}   rewards: {episode.reward_source}"
    )
    draw.text((4, 2), text, fill=INK)
    top = LINE
    for row in pictures:
        for column, picture in enumerate(row):
            image.paste(picture, (column * _THUMB + 1, top))
        top += row[0].height + 2
    _timeline(draw, episode, top)
    return image


def _timeline(draw: ImageDraw.ImageDraw, episode: Episode, top: int) -> None:
    """Draw who acted, and below that actions and rewards, over time."""
    width, steps = _COLUMNS * _THUMB, len(episode)
    edges = np.linspace(0, width, steps + 1)
    for t in range(steps):
        colour = SOURCE_COLOURS.get(int(episode.source[t]), INK)  # type: ignore[call-overload]
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
