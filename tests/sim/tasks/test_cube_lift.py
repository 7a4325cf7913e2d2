import mujoco
import numpy as np
import pytest
from play import always, at_random, play, stage, steps

from robot_rl.env.task import WorkcellOptions
from sim.tasks.cube import CUBE, CUBE_YAW_RANGE, ESTIMATE_ERROR
from sim.tasks.cube_lift import CUBE_RANGE, LIFT_HEIGHT, SPEC, START, make


@pytest.fixture(scope="module")
def cube():
    env, cell = stage("cube_lift")
    yield env, cell
    env.close()


def underside(data):
    """Height of the cube's lowest corner [m], from its geom alone."""
    body = data.body("cube")
    corners = np.array(np.meshgrid(*[[-CUBE, CUBE]] * 3)).reshape(3, 8)
    return (body.xmat.reshape(3, 3) @ corners)[2].min() + body.xpos[2]


def bodies_touching_the_cube(model, data):
    copy = mujoco.MjData(model)
    mujoco.mj_copyData(copy, model, data)
    mujoco.mj_forward(model, copy)
    cube, names = model.body("cube").id, set()
    for contact in copy.contact[: copy.ncon]:
        bodies = [model.geom_bodyid[contact.geom1], model.geom_bodyid[contact.geom2]]
        if cube in bodies:
            names |= {model.body(body).name for body in bodies if body != cube}
    return names


@pytest.mark.slow
def test_every_success_is_a_cube_held_in_the_air_by_both_fingers():
    env, cell = stage("cube_lift", interventions=True)
    successes = 0
    for seed in range(8):
        options = {"demonstrate": True} if seed < 4 else {}
        heights = []
        for info in steps(env, 50 + seed, at_random(env, seed), **options):
            heights.append(underside(cell.io.data))
            if info["step"].success:
                successes += 1
                assert bodies_touching_the_cube(cell.io.model, cell.io.data) == {"left_finger", "right_finger"}
                assert min(heights[-2:]) >= LIFT_HEIGHT - 0.003, "success has to be held for two steps"
    assert successes >= 4


@pytest.mark.slow
def test_the_operator_succeeds_and_its_demonstrations_differ(cube):
    env, _ = cube
    demos = [play(env, seed, demonstrate=True) for seed in range(10)]
    assert sum(demo.success for demo in demos) >= 9
    assert np.std([len(demo.steps) for demo in demos]) > 2
    gripper = np.concatenate([[step.action[-1] for step in demo.steps] for demo in demos])
    assert set(np.unique(gripper)) <= {-1.0, 0.0, 1.0}
    assert {-1.0, 1.0} <= set(np.unique(gripper))


def cheats(env):
    """Lifting without grasping, closing without lifting, and pushing."""
    close, keep = -1.0, 0.0
    yield "nothing", always(env)
    yield "close and lift here", always(env, 0.0, 0.0, -1.0, 0.0, close)
    yield "press down", always(env, 0.0, 0.0, 1.0, 0.0, keep)
    yield "press down and close", always(env, 0.0, 0.0, 1.0, 0.0, close)
    yield "push forward and down", always(env, 1.0, 0.0, 1.0, 0.0, keep)


@pytest.mark.slow
def test_what_does_not_lift_the_cube_scores_zero(cube):
    env, _ = cube
    for name, policy in cheats(env):
        for seed in range(2):
            played = play(env, seed, policy)
            assert not played.success, name
            assert not any(step.reward for step in played.steps)


def test_a_cube_that_only_flies_is_not_lifted(cube):
    """Held between the fingers is part of it: put into the air by hand, the cube does not count."""
    env, cell = cube
    env.reset(seed=0)
    data = cell.io.data
    for _ in range(3):
        data.qpos[-7:-4], data.qvel[:] = [0.5, 0.1, 0.15], 0.0
        mujoco.mj_forward(cell.io.model, data)
        outcome = cell.task.evaluate(cell.io.read())
    assert outcome.metrics["height"] > LIFT_HEIGHT + CUBE
    assert not outcome.success


def test_the_cube_lies_still_in_the_stated_range_and_the_estimate_is_as_good_as_stated():
    cell = make(WorkcellOptions())
    offsets, errors = [], []
    for seed in range(100):
        cell.task.reset(seed)
        truth, estimate = cell.task.cube_pose(), cell.task.T_base_estimate
        yaw = 2.0 * np.arctan2(truth.quaternion[3], truth.quaternion[0])
        offsets.append([*(truth.position[:2] - START[:2]), yaw])
        errors.append(np.linalg.norm((estimate.position - truth.position)[:2]))
        assert truth.position[2] == pytest.approx(CUBE, abs=5e-4)
        assert np.abs(cell.io.data.qvel).max() < 0.02
    limits = np.array([CUBE_RANGE, CUBE_RANGE, CUBE_YAW_RANGE])
    assert (np.abs(offsets).max(axis=0) <= limits * 1.01).all()
    assert (np.abs(offsets).max(axis=0) > 0.9 * limits).all()
    assert max(errors) <= ESTIMATE_ERROR + 1e-4
    assert max(errors) > 0.9 * ESTIMATE_ERROR


def test_the_cube_fits_between_the_fingers_everywhere():
    assert SPEC.gripper_open_width > 2 * CUBE + 2 * ESTIMATE_ERROR
