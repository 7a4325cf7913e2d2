"""A contact sheet (PNG) of recorded episodes, made without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from robot_rl.clock import NS_PER_S
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
_ENTRIES = 9
"""So many fit into a line of the legend."""


def contact_sheet(episodes: Sequence[Episode], path: Path) -> None:
    """Write a PNG: per episode frames at even distances, who acted when, actions and rewards over time.

    Raises:
        DataError: if there are no episodes.
        RunDirectoryError: if it cannot be written.
    """
    if not episodes:
        raise DataError("no episodes to show")
    strips = [_strip(episode) for episode in episodes]
    legend = _legend(max(episode.action.shape[1] for episode in episodes))
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


def _legend(elements: int) -> Image.Image:
    """Return the legend of a sheet whose actions have at most so many elements."""
    rows: list[tuple[str, list[tuple[str, tuple[int, int, int]]]]] = [
        ("who acted (band):", [(source.name.lower(), colour) for source, colour in SOURCE_COLOURS.items()]),
        ("action (lines, -1 to 1):", [(f"element {n + 1}", _action_colour(n)) for n in range(elements)]),
        ("reward (bars):", [("full height: 1, or the largest of the episode", _REWARD)]),
    ]
    lines = [
        (title if first == 0 else "", entries[first : first + _ENTRIES])
        for title, entries in rows
        for first in range(0, len(entries), _ENTRIES)
    ]
    image = Image.new("RGB", (_COLUMNS * _THUMB, len(lines) * LINE + _GAP), PAPER)
    draw = ImageDraw.Draw(image)
    for line, (title, entries) in enumerate(lines):
        draw.text((4, 3 + line * LINE), title, fill=INK)
        for column, (text, colour) in enumerate(entries):
            x, y = 160 + 88 * column, line * LINE
            draw.rectangle((x, y + 5, x + 10, y + 13), fill=colour)
            draw.text((x + 14, y + 3), text, fill=INK)
    return image


def _action_colour(element: int) -> tuple[int, int, int]:
    return _ACTION_COLOURS[element % len(_ACTION_COLOURS)]


def _strip(episode: Episode) -> Image.Image:
    """Return one episode of a contact sheet."""
    rows = np.linspace(0, len(episode), _COLUMNS).round().astype(int)
    pictures = []
    for key in _cameras(episode):
        height, width = episode.observations[key].shape[1:3]
        size = (_THUMB - 2, max(1, round((_THUMB - 2) * height / width)))
        pictures.append([to_picture(episode.observations[key][t]).resize(size) for t in rows])
    image_height = sum(row[0].height + 2 for row in pictures)
    image = Image.new("RGB", (_COLUMNS * _THUMB, 2 * LINE + image_height + _BAND + _PLOT + _GAP), PAPER)
    draw = ImageDraw.Draw(image)
    text = (
        f"{episode.episode_id}   {len(episode)} steps   {describe_outcome(episode)}   "
        f"rewards: {episode.reward_source}, at most {float(np.abs(episode.reward).max()):.3g}"
    )
    draw.text((4, 2), text, fill=INK)
    top = LINE
    for row in pictures:
        for column, picture in enumerate(row):
            image.paste(picture, (column * _THUMB + 1, top))
        top += row[0].height + 2
    _timeline(draw, episode, top)
    _time_axis(draw, episode, top + _BAND + _PLOT)
    return image


def _time_axis(draw: ImageDraw.ImageDraw, episode: Episode, top: int) -> None:
    """Write the time [s] below the timeline, at every tenth of the steps and at the end."""
    seconds = (episode.stamp_obs - episode.stamp_obs[0]) / NS_PER_S
    for column in range(_COLUMNS):
        here = np.interp(column / _COLUMNS * len(episode), np.arange(len(episode) + 1), seconds)
        draw.text((column * _THUMB + 1, top + 1), f"{here:.1f} s", fill=INK)
    end = f"{seconds[-1]:.1f} s"
    draw.text((_COLUMNS * _THUMB - 2 - draw.textlength(end), top + 1), end, fill=INK)


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
    for number, element in enumerate(episode.action.T):
        heights = high - (np.clip(element, -1, 1) + 1) / 2 * _PLOT
        draw.line([*zip(middles.tolist(), heights.tolist(), strict=True)], fill=_action_colour(number))
