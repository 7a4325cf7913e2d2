"""Two arms and an elastic belt: honest rubber, which is on the pulleys only where it truly lies in the grooves."""

from itertools import islice

import numpy as np
import pytest
from play import always, play, stage, steps

from robot_rl.clock import NS_PER_S
from robot_rl.env.choice import join_grippers
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import RenderError
from sim.tasks.two_arms.belt import SPEC, crossed, make
from sim.tasks.two_arms.belt_drive import BELT, PULLEY
from sim.tasks.two_arms.facing_arms import LEFT, RIGHT, SIDES

SEAT = PULLEY.hub + BELT.radius
CLOSED, OPENED = join_grippers([-1.0, -1.0]), join_grippers([1.0, 1.0])


@pytest.fixture(scope="module")
def drive():
    env, cell = stage("belt")
    yield env, cell
    env.close()


def action(left=(0.0, 0.0, 0.0), right=(0.0, 0.0, 0.0), grippers=CLOSED):
    return np.array([*left, *right, grippers], np.float32)


def penetration(cell):
    data = cell.io.data
    return -min(data.contact.dist[: data.ncon], default=0.0)


def speed_of_belt(cell):
    return np.linalg.norm(cell.io.data.qvel[-3 * BELT.pieces :].reshape(-1, 3), axis=1).max()


def test_the_operator_puts_it_on_and_every_success_is_geometrically_true(drive):
    env, cell = drive
    for seed in (200, 201):
        for info in steps(env, seed, always(env), demonstrate=True):
            assert info["step"].force_peak < 40.0
            assert cell.task.stretch() < cell.task.parameters.tear
        assert info["step"].success
        belt = cell.task.belt()
        for side in SIDES.values():
            outer = belt[side * belt[:, 1] > PULLEY.apart / 2 + 0.004]
            assert len(outer) > 8
            radius = np.linalg.norm(outer[:, :2] - [0.0, side * PULLEY.apart / 2], axis=1)
            assert radius == pytest.approx(SEAT, abs=cell.task.parameters.off_radius)
            assert outer[:, 2] == pytest.approx(0.0, abs=cell.task.parameters.off_height)
        assert not any(cell.task.holds(arm) for arm in SIDES)


def test_what_pulls_nothing_over_the_pulleys_scores_zero(drive):
    env, _ = drive
    pressing = always(env, *action((0, 0, 1), (0, 0, 1)))
    for info in islice(steps(env, 200, pressing), 30):  # down there after 7
        assert not info["step"].success
        assert not info["step"].recorded.reward

    def straight(seen):
        """Both tools straight to beside the estimated pulleys and down, then open."""
        ways = [seen[f"state/{arm}_pulley_estimate"] - [0.044, 0.0, -0.006] for arm in (LEFT, RIGHT)]
        there = max(np.linalg.norm(way) for way in ways) < 0.008
        return action(*np.clip(np.array(ways) / 0.015, -1.0, 1.0), OPENED if there else CLOSED)

    played = play(env, 200, straight)
    assert (played.success, played.failure) == (False, "the belt is lost")


def test_a_belt_that_is_let_go_of_is_lost_and_one_that_is_pulled_too_far_tears(drive):
    env, _ = drive
    lost = play(env, 200, always(env, *action((-1, 0, 0), (-1, 0, 0), OPENED)))
    assert (lost.success, lost.failure) == (False, "the belt is lost")
    torn = play(env, 200, always(env, *action((-1, 0, 0), (-1, 0, 0))))
    assert (torn.success, torn.failure) == (False, "the belt tore")
    assert torn.force > 15.0, "the wrists feel what the belt pulls with"


def test_at_rest_nothing_is_in_anything_else_and_a_taut_belt_lies_still(drive):
    env, cell = drive
    env.start(201, "e", demonstrate=True)
    assert penetration(cell) < 1e-4
    while not any(cell.task.caught(arm) for arm in SIDES):
        env.advance(np.zeros(7, np.float32))
        assert not cell.io.data.warning.number.any()
    cell.io.stop()
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S // 2)
    assert cell.task.stretch() > 0.1
    assert speed_of_belt(cell) < 0.6, "strands as taut as these shake by themselves if their points are too light"
    assert play(env, 201, demonstrate=True).success
    cell.clock.sleep_until(cell.clock.now() + NS_PER_S)
    assert penetration(cell) < 1e-4
    assert speed_of_belt(cell) < 0.008


def test_success_is_held_in_both_grooves_and_in_no_jaw():
    cell = make(WorkcellOptions())
    task, hold = cell.task, cell.task.parameters.hold_steps
    task.reset(200)

    def judged(seated=(LEFT, RIGHT), holding=()):
        task.seated, task.holds = (lambda arm: arm in seated), (lambda arm: arm in holding)
        return [task.evaluate(None).success for _ in range(hold)]

    assert judged() == [False] * (hold - 1) + [True]
    assert not any(judged(seated=(LEFT,), holding=(RIGHT,)) + judged(holding=(RIGHT,)))


def test_a_closed_line_is_found_where_it_crosses_each_direction_once():
    angles = np.linspace(0.0, 2.0 * np.pi, 720, endpoint=False)
    circle = np.column_stack((0.03 * np.cos(angles), 0.03 * np.sin(angles), 0.001 * np.sin(angles)))
    directions = np.deg2rad([-75.0, -15.0, 40.0, 90.0])
    radius, height = crossed(circle, directions)
    assert radius == pytest.approx(0.03, abs=1e-5)
    assert height == pytest.approx(0.001 * np.cos(directions), abs=1e-5)
    twice = np.concatenate((circle, 1.2 * circle))
    assert np.isnan(crossed(twice, directions)[0]).all()
    assert np.isnan(crossed(circle + np.array([0.0, 0.1, 0.0]), directions[-1:])[0]).all()


def test_all_three_cameras_see_the_belt():
    options = WorkcellOptions(cameras=SPEC.cameras, image_size=(64, 64), estimates=False)
    try:
        cell = make(options)
    except RenderError as error:
        pytest.skip(f"cannot render: {error}")
    env = RobotEnv(cell, options=options)
    seen = env.start(200, "e").observation
    for camera in SPEC.cameras:
        frame = seen[f"images/{camera}"].astype(int)
        assert (frame[..., 0] - frame[..., 2] > 60).sum() > 20, f"nothing orange before {camera}"
    env.close()
