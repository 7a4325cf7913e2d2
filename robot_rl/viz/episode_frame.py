"""One moment of an episode as a picture: all cameras side by side, a caption, and who acted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from robot_rl.data.schema import Episode, Source

SOURCE_COLOURS = {
    Source.POLICY: (0, 114, 178),
    Source.HUMAN: (213, 94, 0),
    Source.SCRIPT: (0, 158, 115),
    Source.HOLD: (150, 150, 150),
}
"""Blue, orange and green of Okabe and Ito's palette."""
PAPER, INK = (255, 255, 255), (30, 30, 30)
LINE = 16
"""Height of a line of text [px]."""
LEAST_WIDTH, LEAST_HEIGHT = 320, 200
"""Least width of a picture, and of the frames in it; smaller frames are enlarged, pixel by pixel [px]."""


def to_picture(frame: np.ndarray) -> Image.Image:
    """Return a frame, uint8 of shape (height, width, 1 or 3), as an RGB picture."""
    return Image.fromarray(frame[..., 0] if frame.shape[-1] == 1 else frame).convert("RGB")


def describe_outcome(episode: Episode) -> str:
    """Return `success`, `failed`, `interrupted` or `outcome not recorded`."""
    if episode.facts.interrupted:
        return "interrupted"
    success = episode.facts.success
    return "success" if success else "outcome not recorded" if success is None else "failed"


def captioned(frames: Sequence[np.ndarray], caption: str, source: Source | None = None, detail: str = "") -> np.ndarray:
    """Return the frames of a moment side by side under two lines of text, uint8, of even height and width.

    Args:
        frames: One of each camera, uint8 of shape (height, width, 1 or 3).
        caption: First line.
        source: Who acted, shown in the second line in its colour; None after the last step.
        detail: Rest of the second line.
    """
    pictures = [to_picture(frame) for frame in frames]
    factor = -(-LEAST_HEIGHT // max(picture.height for picture in pictures))
    if factor > 1:
        pictures = [p.resize((factor * p.width, factor * p.height), Image.Resampling.NEAREST) for p in pictures]
    width, height = max(LEAST_WIDTH, sum(p.width for p in pictures)), max(p.height for p in pictures)
    image = Image.new("RGB", (width + width % 2, height + height % 2 + 2 * LINE), PAPER)
    draw, x = ImageDraw.Draw(image), 0
    for picture in pictures:
        image.paste(picture, (x, 2 * LINE))
        x += picture.width
    draw.text((4, 2), caption, fill=INK)
    if source is not None:
        draw.rectangle((4, LINE + 3, 14, LINE + 11), fill=SOURCE_COLOURS[source])
        draw.text((18, LINE), f"{source.name.lower()}   {detail}", fill=INK)
    return np.asarray(image)
