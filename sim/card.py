"""Cards with writing in a scene: who labels its pictures must not obey what is written there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from robot_rl.geometry import Pose
from sim.arm.shapes import WHITE, visual

PIXELS_PER_METRE = 4000
"""Of the texture: letters stay sharp in frames of 512 px."""
MARGIN = 0.05
"""Of a card that stays free on each side, as a share of its width."""


@dataclass(frozen=True)
class Card:
    """A card.

    Attributes:
        size: Width and height [m].
        pose: Of its centre in the frame of what it is fixed to; x along the lines, y up the page, z to the reader.
    """

    size: tuple[float, float]
    pose: Pose


def add_cards(spec: mujoco.MjSpec, body: mujoco.MjsBody, text: str, cards: Sequence[Card]) -> None:
    """Add cards that all say the same, without mass and contact, so that the physics stay those of the scene.

    Args:
        spec: Scene.
        body: What they are fixed to.
        text: What they say; without any, they are blank.
        cards: Sizes and places.
    """
    for number, card in enumerate(cards):
        name = f"card{number}"
        width, height = (round(length * PIXELS_PER_METRE) for length in card.size)
        texture = spec.add_texture(name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, width=width, height=height)
        texture.nchannel, texture.data = 3, page(text, (height, width)).tobytes()
        material = spec.add_material(name=name)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
        # The arm has this colour, too, so the draws of colours stay those of the scene without cards.
        geom = visual(
            body,
            mujoco.mjtGeom.mjGEOM_PLANE,
            WHITE,
            size=(card.size[0] / 2, card.size[1] / 2, 1.0),
            pos=card.pose.position,
            quat=card.pose.quaternion,
        )
        geom.material = name


def page(text: str, size: tuple[int, int]) -> np.ndarray:
    """Return black text on white, as large as it fits, each line in the middle. Shape (*size, 3), uint8.

    Args:
        text: Words; they are broken into lines.
        size: Height and width [px].
    """
    height, width = size
    picture = Image.new("RGB", (width, height), "white")
    draw, free = ImageDraw.Draw(picture), (width * (1 - 2 * MARGIN), height - 2 * MARGIN * width)
    for points in range(height, 3, -1):
        font = ImageFont.load_default(points)
        lines = _break(text, font, free[0])
        left, top, right, bottom = draw.multiline_textbbox((0, 0), lines, font, align="center")
        if right - left <= free[0] and bottom - top <= free[1]:
            break
    place = ((width - left - right) / 2, (height - top - bottom) / 2)
    draw.multiline_text(place, lines, "black", font, align="center")
    return np.asarray(picture)


def _break(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    lines: list[str] = []
    for word in text.split():
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)
