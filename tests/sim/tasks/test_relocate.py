"""Success is a cube that lies in the other bin and was let go of; the reverse begins where the task ends."""

import numpy as np
import pytest
from play import always, play, stage, steps

from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose
from sim.tasks.cube import CUBE
from sim.tasks.relocate import BIN, BIN_OFFSET, CUBE_RANGE, HOLD_STEPS, RELEASED_WIDTH, make, make_back, make_forward


@pytest.fixture(scope="module")
def bins():
    env, cell = stage("relocate")
    yield env, cell
    env.close()


def side_of(data):
    return int(np.sign(data.body("cube").xpos[1]))


def lies_in_a_bin(data):
    """Whether all corners of the cube are between the walls of one bin, and its underside on the floor."""
    body = data.body("cube")
    corners = body.xmat.reshape(3, 3) @ np.array(np.meshgrid(*[[-CUBE, CUBE]] * 3)).reshape(3, 8) + body.xpos[:, None]
    inside = np.abs(corners[0] - 0.5).max() <= BIN[0] + 0.002
    inside &= np.abs(corners[1] - side_of(data) * BIN_OFFSET).max() <= BIN[1] + 0.002
    return inside and abs(corners[2].min()) < 0.002


@pytest.mark.slow
def test_the_operator_relocates_both_ways_and_every_success_is_at_rest_in_the_other_bin(bins):
    env, cell = bins
    sides, successes = [], 0
    for seed in range(100, 108):
        env.reset(seed=seed)
        start = side_of(cell.io.data)
        assert lies_in_a_bin(cell.io.data)
        resting = []
        for info in steps(env, seed, always(env), demonstrate=True):
            there = lies_in_a_bin(cell.io.data) and side_of(cell.io.data) == -start
            resting.append(there and cell.io.read().gripper_width >= RELEASED_WIDTH - 0.002)
            if info["step"].success:
                successes += 1
                assert all(resting[-HOLD_STEPS:])
        sides.append(start)
    assert successes >= 7
    assert set(sides) == {-1, 1}


def test_what_does_not_carry_the_cube_scores_zero(bins):
    env, _ = bins
    for policy in (always(env), always(env, 0.0, 0.0, 1.0), always(env, 0.0, 1.0, 1.0, 0.0, -1.0)):
        played = play(env, 100, policy)
        assert not played.success
        assert not any(step.reward for step in played.steps)


def test_a_cube_that_is_held_moving_on_a_wall_or_in_its_own_bin_is_no_success():
    cell = make(WorkcellOptions())
    task = cell.task
    task.reset(1)
    state = cell.io.read()

    def judged(x=0.0, y=0.0, z=CUBE, speed=0.0, width=0.08, own=False):
        side = -task.target_side if own else task.target_side
        place = Pose(np.array([0.5 + x, side * BIN_OFFSET + y, z]), np.array([1.0, 0.0, 0.0, 0.0]))
        task.cube_pose, task.cube_speed = lambda: place, lambda: speed
        grasped, seen = (type(state)(**{**vars(state), "gripper_width": one}) for one in (0.0, width))
        task.evaluate(grasped)
        return [task.evaluate(seen).success for _ in range(HOLD_STEPS)]

    assert judged() == [False] * (HOLD_STEPS - 1) + [True]
    assert judged(x=BIN[0] - CUBE, y=BIN[1] - CUBE)[-1], "in a corner of the bin"
    assert not any(judged(x=BIN[0]) + judged(y=BIN[1]) + judged(z=0.05) + judged(own=True))
    assert not any(judged(speed=0.1) + judged(width=2 * CUBE))


def test_each_half_starts_where_the_other_one_ends():
    ahead, back = make_forward(WorkcellOptions()).task, make_back(WorkcellOptions()).task
    for task, start in ((ahead, -1), (back, 1)):
        for seed in range(5):
            task.reset(seed)
            cube = task.cube_pose().position
            assert np.abs(cube[:2] - [0.5, start * BIN_OFFSET]).max() <= CUBE_RANGE + 1e-4
            assert task.target[1] == pytest.approx(-start * BIN_OFFSET)
    assert ahead.spec.name == "relocate_forward"
    assert back.spec.name == "relocate_back"


def put(cell, x, y, yaw=0.0):
    """The scene with the arm at its start pose and the cube somewhere, at rest."""
    cell.task.reset(seed=100)
    qpos = cell.io.data.qpos.copy()
    qpos[-7:] = [x, y, CUBE, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
    cell.io.reset(qpos, seed=100)


@pytest.mark.parametrize(("x", "y"), [(0.517, -0.142), (0.5, -0.028), (0.555, -0.084), (0.55, 0.13)])
def test_a_cube_at_a_wall_is_brought_to_where_the_tool_gets_at_it(bins, x, y):
    _, cell = bins
    put(cell, x, y)
    cell.task.tidy(cell.io, cell.clock)
    off = cell.task.cube_pose().position[:2] - (0.5, np.sign(y) * BIN_OFFSET)
    assert np.abs(off).max() <= CUBE_RANGE
    assert lies_in_a_bin(cell.io.data)


def test_a_direction_begins_in_the_scene_as_it_is_with_a_fresh_estimate_of_it():
    (_, cell), yaw = stage("relocate_forward"), 0.3
    put(cell, 0.51, -0.07, yaw + np.pi / 2)  # a quarter turn shows the same cube
    before = cell.task.cube_pose()
    for seed in (100, 101):
        cell.task.go_on(seed)
        state = cell.io.read()
        estimate = cell.task.observe(state, state.T_base_tcp)["state/cube_estimate"]
        seen = state.T_base_tcp @ Pose(estimate[:3], Pose.identity().quaternion)
        assert np.linalg.norm(cell.task.cube_pose().position - before.position) < 5e-4
        assert 0 < np.linalg.norm(seen.position[:2] - before.position[:2]) <= 0.004 * np.sqrt(2) + 0.002
        assert abs(abs(estimate[3]) - yaw) < np.deg2rad(5.0)
    assert cell.task.obstacle() is None
    put(cell, 0.5, 0.08)
    assert cell.task.obstacle() == "the cube lies in the bin into which it belongs"
    put(cell, 0.5, 0.2)
    assert cell.task.obstacle() == "the cube lies outside of the bins"


def test_a_saved_scene_goes_on_in_another_simulation_of_it(bins):
    (_, cell), (_, other) = bins, stage("relocate_back")
    put(cell, 0.51, 0.09, 0.2)
    other.scene.restore(cell.scene.save())
    assert np.allclose(other.scene.save(), cell.scene.save(), atol=1e-3)
    with pytest.raises(ConfigError, match="not of one scene"):
        other.scene.restore(np.zeros(3))
