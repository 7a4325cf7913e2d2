"""Another world: each setting changes what it names by as much as it names, and a task refuses what it lacks."""

from dataclasses import fields, replace

import numpy as np
import pytest
from ur5e import UR5E

from robot_rl.config.randomization import LooksConfig, RandomizationConfig, WorldConfig
from robot_rl.env.registry import make_environment, make_workcell
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError

PLAIN = RandomizationConfig(LooksConfig(0.0, 0.0, 0.0, 0.0, 0.0))


def cell(task="peg_insert", cameras=(), **world):
    return make_workcell(task, WorkcellOptions(cameras, (48, 64), randomization=PLAIN, world=WorldConfig(**world)))


def axis(pose):
    w, x, y, z = pose.quaternion
    return np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])


def test_a_tilted_hole_has_this_angle_in_another_direction_each_episode_and_the_estimate_does_not_know():
    upright, leaning = cell().task, cell(tilt=0.06).task
    directions = []
    for seed in range(4):
        upright.reset(seed)
        leaning.reset(seed)
        assert np.arccos(axis(leaning.T_base_hole)[2]) == pytest.approx(0.06, abs=1e-6)
        assert axis(upright.T_base_hole)[2] == pytest.approx(1.0)
        assert (leaning.T_base_hole.position == upright.T_base_hole.position).all()
        directions.append(np.arctan2(*axis(leaning.T_base_hole)[:2]))
    assert len({round(direction, 3) for direction in directions}) == 4


def test_the_estimate_is_as_wrong_as_it_is_set():
    def errors(task, key, factor):
        env = make_environment(task, WorkcellOptions(world=WorldConfig(estimate_error=factor)))
        return np.stack([env.start(seed, "one").observation[key] for seed in range(5)])

    for task, key in (("peg_insert", "state/hole_estimate"), ("cube_lift", "state/cube_estimate")):
        true, usual, double = (errors(task, key, factor) for factor in (0.0, 1.0, 2.0))
        assert double - true == pytest.approx(2.0 * (usual - true), abs=1e-5)
        assert np.abs(usual - true)[:, :2].min() > 1e-5


def test_the_force_sensor_is_wrong_by_this_much_in_a_drawn_direction():
    true, biased = cell(), cell(wrench_bias=3.0)
    directions = []
    for seed in range(3):
        for one in (true, biased):
            one.task.reset(seed)
        error = biased.io.read().wrench - true.io.read().wrench
        assert np.linalg.norm(error[:3]) == pytest.approx(3.0, abs=1e-6)
        assert error[3:] == pytest.approx(np.zeros(3), abs=1e-9)
        directions.append(tuple(error[:3].round(3)))
    assert len(set(directions)) == 3


def test_friction_delay_and_clearance_are_those_of_the_model():
    usual, other = cell(), cell(friction=2.0, command_delay=0.04, clearance=0.5)
    assert other.io.model.geom_friction[:, 0] == pytest.approx(2.0 * usual.io.model.geom_friction[:, 0])
    assert other.io.gains.delay == pytest.approx(0.04)
    assert other.task.parameters.clearance == pytest.approx(0.5 * usual.task.parameters.clearance)
    assert (other.io.model.geom_pos != usual.io.model.geom_pos).any()


def test_brightness_and_camera_pose_change_the_pictures_alone():
    def seen(**world):
        one = cell(cameras=("front",), **world)
        one.task.reset(3)
        try:
            return one.io.read(), one.io.model.cam_pos.copy()
        finally:
            one.close()

    (usual, at), (dark, same), (moved, displaced) = seen(), seen(brightness=0.5), seen(camera_position=0.02)
    assert dark.images["front"].mean() < 0.7 * usual.images["front"].mean()
    assert (same == at).all()
    assert np.linalg.norm(displaced - at, axis=1) == pytest.approx(0.02)
    turned, still = seen(camera_rotation=0.1)
    assert (still == at).all()
    for state in (dark, moved, turned):
        assert np.abs(state.images["front"].astype(int) - usual.images["front"]).mean() > 2.0
        assert (state.T_base_tcp.position == usual.T_base_tcp.position).all()


@pytest.mark.parametrize("task", ["reach", "cube_lift", "peg_insert"])
def test_a_task_has_what_it_declares_and_refuses_the_rest(task, tmp_path):
    own = make_environment(task).environment_spec.world
    file = tmp_path / "arm.xml"
    file.write_text(UR5E)
    for field in fields(WorldConfig):
        world = replace(WorldConfig(), **{field.name: {"card": "SUCCESS", "arm": str(file)}.get(field.name, 0.5)})
        if field.name in own:
            make_environment(task, WorkcellOptions(world=world)).close()
        else:
            with pytest.raises(ConfigError, match=rf"{task} has no world\.{field.name}; it has .*{own[0]}"):
                make_environment(task, WorkcellOptions(world=world))
