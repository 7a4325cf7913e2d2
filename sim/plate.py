"""A white plate with black rectangles on it: what a calibration board is to a renderer."""

from __future__ import annotations

import mujoco
import numpy as np

from sim.arm import visual

_THICKNESS = 0.002
_LIFT = 5e-5
"""How far the black stands out, since two faces in one plane flicker [m]."""


def add_plate(
    spec: mujoco.MjSpec, body: mujoco.MjsBody, black: np.ndarray, extent: tuple[float, float], margin: float
) -> None:
    """Adds a plate to a body; the body's frame is the pattern's: x right, y down, z away from the viewer.

    Args:
        spec: Scene.
        body: What it belongs to.
        black: Rectangles (left, top, width, height) in the pattern's frame [m], shape (n, 4).
        extent: Width and height of the pattern [m].
        margin: White around it [m].
    """
    width, height = extent
    visual(
        body,
        mujoco.mjtGeom.mjGEOM_BOX,
        (0.95, 0.95, 0.95, 1),
        size=(width / 2 + margin, height / 2 + margin, _THICKNESS / 2),
        pos=(width / 2, height / 2, _LIFT + _THICKNESS / 2),
    )
    left, top, wide, high = black.T
    corners = np.stack(
        (
            np.stack((left, left, left + wide, left + wide), axis=1),
            np.stack((top, top + high, top + high, top), axis=1),
            np.zeros((len(black), 4)),
        ),
        axis=2,
    ).reshape(-1, 3)
    triangles = np.array([(0, 1, 2), (0, 2, 3)])  # seen from -z
    faces = (4 * np.arange(len(black))[:, None, None] + triangles).reshape(-1, 3)
    # MuJoCo moves a mesh to its centre of mass and turns it to its axes of inertia, and the geom back by as much.
    name = f"{body.name}_black"
    mesh = spec.add_mesh(name=name, uservert=corners.ravel().tolist(), userface=faces.ravel().tolist())
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    visual(body, mujoco.mjtGeom.mjGEOM_MESH, (0.03, 0.03, 0.03, 1), meshname=name)
