"""Colours, and shapes that are only looked at."""

from __future__ import annotations

import mujoco

WHITE, GREY, DARK = (0.93, 0.93, 0.95, 1), (0.55, 0.56, 0.6, 1), (0.25, 0.26, 0.28, 1)
ORANGE, GREEN = (0.93, 0.5, 0.15, 1), (0.2, 0.7, 0.35, 1)


def visual(body: mujoco.MjsBody, kind: mujoco.mjtGeom, rgba: tuple[float, ...], **shape: object) -> mujoco.MjsGeom:
    """Add a visual shape without mass and contact."""
    return body.add_geom(type=kind, rgba=rgba, contype=0, conaffinity=0, mass=0, group=1, **shape)
