import dataclasses

import mujoco
import numpy as np

from robot_rl.config.randomization import DynamicsConfig, LooksConfig, RandomizationConfig
from robot_rl.env.registry import make_environment
from robot_rl.env.task import WorkcellOptions
from sim.arm.fr3 import ARM_DOF
from sim.controller import ImpedanceGains
from sim.randomize import DynamicsRandomizer, VisualRandomizer
from sim.scene import add_hole_block, add_peg_tool, new_scene

PHYSICS = ("geom_size", "geom_friction", "geom_pos", "body_mass", "dof_damping", "geom_solref")
LOOKS = ("light_diffuse", "light_pos", "geom_rgba", "cam_pos", "cam_quat")


def scene():
    spec = new_scene()
    add_peg_tool(spec)
    add_hole_block(spec, half_widths=(0.1, 0.1), height=0.06, clearance=5e-4, chamfer=1e-3)
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
    model, amount = scene(), LooksConfig()
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
    nothing = LooksConfig(**{field.name: 0.0 for field in dataclasses.fields(LooksConfig)})
    VisualRandomizer(model, nothing).draw(5)
    for now, then in zip(look(model), look(scene()), strict=True):
        np.testing.assert_allclose(now, then, rtol=1e-6)


DYNAMICS = ("dof_frictionloss", "dof_damping", "geom_friction", "body_mass", "body_inertia")
WIDE = DynamicsConfig(joint_friction=0.5, joint_damping=0.4, contact_friction=0.3, mass=0.2, stiffness=0.1, delay=0.05)


def dynamics(model):
    return [getattr(model, name).copy() for name in DYNAMICS]


def test_the_seed_decides_the_dynamics_whatever_came_before_and_the_look_stays():
    model, gains = scene(), ImpedanceGains()
    randomizer, before = DynamicsRandomizer(model, gains, WIDE), look(model)
    drawn = [(randomizer.draw(seed), dynamics(model)) for seed in (1, 2, 1)]
    assert drawn[0][0] == drawn[2][0] != drawn[1][0]
    assert all(same(drawn[0][1], drawn[2][1]))
    assert not any(same(drawn[0][1], drawn[1][1]))
    assert all(same(before, look(model)))


def test_dynamics_stay_within_what_is_stated_and_the_arm_keeps_its_masses():
    model, original, gains = scene(), scene(), ImpedanceGains(delay=0.01)
    randomizer = DynamicsRandomizer(model, gains, WIDE)
    links = model.jnt_bodyid[:ARM_DOF]
    largest = dict.fromkeys((*DYNAMICS, "translation", "delay"), 0.0)
    for seed in range(200):
        drawn = randomizer.draw(seed)
        for name in DYNAMICS:
            now, then = getattr(model, name), getattr(original, name)
            absolute = name == "dof_frictionloss"
            share = (now - then if absolute else np.abs(now[then != 0] / then[then != 0] - 1.0)).max()
            largest[name] = max(largest[name], float(share))
        largest["translation"] = max(largest["translation"], abs(drawn.translation / gains.translation - 1.0))
        largest["delay"] = max(largest["delay"], drawn.delay - gains.delay)
        assert drawn.delay >= gains.delay
        assert np.array_equal(model.body_mass[links], original.body_mass[links])
    widths = {
        **{"dof_frictionloss": WIDE.joint_friction, "dof_damping": WIDE.joint_damping, "delay": WIDE.delay},
        **{"geom_friction": WIDE.contact_friction, "body_mass": WIDE.mass, "body_inertia": WIDE.mass},
        "translation": WIDE.stiffness,
    }
    for name, width in widths.items():
        assert 0.9 * width < largest[name] <= width + 1e-6, name


def episode(randomization, seed=3):
    env = make_environment("reach", WorkcellOptions(randomization=randomization))
    env.start(seed, "a")
    push = np.array([1.0, 0.5, -0.5], np.float32)
    poses = [env.advance(push).observation["state/tcp_pose"] for _ in range(8)]
    env.close()
    return np.array(poses)


def test_without_dynamics_an_episode_is_the_one_it_was_bit_for_bit():
    usual = episode(RandomizationConfig())
    assert np.array_equal(usual, episode(RandomizationConfig(LooksConfig(brightness=0.0), DynamicsConfig())))


def test_with_dynamics_the_same_commands_move_the_arm_otherwise_and_the_same_with_the_same_seed():
    wide = RandomizationConfig(dynamics=WIDE)
    moved = episode(wide)
    assert np.array_equal(moved, episode(wide))
    assert 1e-4 < np.abs(moved - episode(RandomizationConfig())).max() < 0.05
