import dataclasses

import mujoco
import numpy as np

from sim.randomize import VisualRandomization, VisualRandomizer
from sim.scene import add_hole_block, add_peg_tool, new_scene

PHYSICS = ("geom_size", "geom_friction", "geom_pos", "body_mass", "dof_damping", "geom_solref")
LOOKS = ("light_diffuse", "light_pos", "geom_rgba", "cam_pos", "cam_quat")


def scene():
    spec = new_scene()
    add_peg_tool(spec)
    add_hole_block(spec, half_width=0.1, height=0.06, clearance=5e-4, chamfer=1e-3)
    return spec.compile()


def look(model):
    headlight = model.vis.headlight
    return [getattr(model, name).copy() for name in LOOKS] + [headlight.ambient.copy(), headlight.diffuse.copy()]


def same(a, b):
    return [np.array_equal(x, y) for x, y in zip(a, b, strict=True)]


def test_the_seed_decides_the_look_whatever_came_before():
    model = scene()
    randomizer = VisualRandomizer(model)
    physics = [getattr(model, name).copy() for name in PHYSICS]
    looks = []
    for seed in (1, 2, 1):
        randomizer.draw(seed)
        looks.append(look(model))
    assert all(same(looks[0], looks[2]))
    assert not any(same(looks[0], looks[1]))
    assert all(same(physics, [getattr(model, name) for name in PHYSICS]))


def test_looks_stay_within_what_is_stated():
    model, amount = scene(), VisualRandomization()
    original = scene()
    randomizer = VisualRandomizer(model)
    turns = []
    for seed in range(200):
        randomizer.draw(seed)
        assert np.abs(model.cam_pos - original.cam_pos).max() <= amount.camera_position + 1e-12
        assert np.abs(model.light_pos - original.light_pos).max() <= amount.light_position + 1e-6
        share = model.geom_rgba[:, :3] / original.geom_rgba[:, :3].clip(1e-6)
        assert np.nanmax(share[original.geom_rgba[:, :3] > 0]) <= 1 + amount.colour + 1e-6
        assert np.array_equal(model.geom_rgba[:, 3], original.geom_rgba[:, 3])
        for now, then in zip(model.cam_quat, original.cam_quat, strict=True):
            turn = np.empty(3)
            mujoco.mju_subQuat(turn, now, then)
            turns.append(np.linalg.norm(turn))
    assert 0.5 * amount.camera_rotation < np.mean(turns) < max(turns) <= amount.camera_rotation * np.sqrt(3) + 1e-9


def test_what_had_one_colour_still_has_one():
    """The walls of the hole are several geoms; seams between them would point at the hole."""
    model, original = scene(), scene()
    VisualRandomizer(model).draw(3)
    _, paint = np.unique(original.geom_rgba, axis=0, return_inverse=True)
    for group in range(paint.max() + 1):
        assert len(np.unique(model.geom_rgba[paint == group], axis=0)) == 1


def test_no_randomization_changes_nothing():
    model = scene()
    nothing = VisualRandomization(**{field.name: 0.0 for field in dataclasses.fields(VisualRandomization)})
    VisualRandomizer(model, nothing).draw(5)
    for now, then in zip(look(model), look(scene()), strict=True):
        np.testing.assert_allclose(now, then, rtol=1e-6)
