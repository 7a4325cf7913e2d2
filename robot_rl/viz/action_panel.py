"""A picture of what a base proposed and what was carried out, over the last steps of an episode."""

from __future__ import annotations

from collections import deque

import numpy as np
from PIL import Image, ImageDraw

from robot_rl.data.schema import Step

SIZE = (240, 180)
"""Width and height [px]."""
STEPS = 40
"""Steps that are shown; the newest is at the right."""
PAPER, AXIS, BASE, EXECUTED = (255, 255, 255), (210, 210, 210), (150, 150, 150), (31, 119, 180)


class ActionPanel:
    """Draws a strip for each element of the action: the base's proposal in grey, what was carried out in blue."""

    def __init__(self) -> None:
        self._rows: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=STEPS)

    def begin(self) -> None:
        """Start an episode."""
        self._rows.clear()

    def add(self, step: Step) -> None:
        """Add a step; one without a base adds nothing."""
        if step.action_base is not None:
            self._rows.append((step.action_base, step.action))

    def picture(self) -> np.ndarray | None:
        """Return the picture, uint8 of shape (height, width, 3); None while there is nothing to show."""
        if not self._rows:
            return None
        image = Image.new("RGB", SIZE, PAPER)
        draw, count = ImageDraw.Draw(image), len(self._rows[0][0])
        width, height = SIZE[0] / (STEPS - 1), SIZE[1] / count
        for axis in range(count):
            middle = height * (axis + 0.5)
            draw.line((0, middle, SIZE[0], middle), fill=AXIS)
            for which, colour in ((0, BASE), (1, EXECUTED)):
                points = [
                    (SIZE[0] - width * (len(self._rows) - 1 - t), middle - 0.45 * height * float(row[which][axis]))
                    for t, row in enumerate(self._rows)
                ]
                draw.line([*points, points[-1]], fill=colour, width=2)
        draw.text((4, 0), "base", fill=BASE)
        draw.text((40, 0), "carried out", fill=EXECUTED)
        return np.asarray(image)
