"""`peg_hard` is `peg_insert` with other numbers: they are as stated, and nothing cheap scores."""

from dataclasses import replace

import numpy as np
import pytest
from play import always, play, stage

from robot_rl.clock import NS_PER_S
from robot_rl.config.operator_profile import InterventionConfig
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose, swing_twist_z
from sim.sensing import Sensing
from sim.tasks.peg_insert import HARD, HARD_SPEC, PegInsertParameters, make, make_hard
from sim.tasks.pose_estimate import seen_from_tcp


@pytest.fixture(scope="module")
def hard():
    env, cell = stage("peg_hard")
    yield env, cell
    env.close()


def test_the_operator_inserts_and_the_peg_does_not_sink_into_the_walls(hard):
    env, cell = hard
    touching = successes = 0
    for seed in range(110, 120):
        successes += play(env, seed, demonstrate=True).success
        data = cell.io.data
        touching += data.ncon > 0
        assert min(data.contact.dist[: data.ncon], default=0.0) > -0.0001
    assert successes >= 9
    assert touching, "some inserted peg touches the hole"


def test_the_searching_operator_finds_the_hole_and_is_not_told_where_it_is():
    options = WorkcellOptions(intervention=InterventionConfig(profile="searching"))
    cell = make_hard(options)
    env = RobotEnv(cell, options=options)
    assert sum(play(env, seed, demonstrate=True).success for seed in range(110, 114)) >= 3
    env.reset(seed=110, options={"demonstrate": True})
    state, reset = cell.io.read(), Pose.identity()
    actions = []
    for place in ("T_base_hole", "T_base_hole", "T_base_estimate"):
        cell.operator.reset(110, True)
        actions.append(cell.operator.act(state, reset))
        setattr(cell.task, place, Pose(np.array([0.7, 0.1, 0.05]), getattr(cell.task, place).quaternion))
    assert np.array_equal(actions[0], actions[1])
    cell.operator.reset(110, True)
    assert not np.allclose(cell.operator.act(state, reset), actions[0])
    env.close()


@pytest.mark.slow
def test_nothing_and_pushing_down_score_zero(hard):
    env, _ = hard
    for policy in (always(env), always(env, 0.0, 0.0, 1.0)):
        assert not any(play(env, seed, policy).success for seed in (100, 101))


def test_hole_board_friction_and_stiffness_vary_by_episode_as_stated():
    cell = make_hard(WorkcellOptions())
    task, io, gains = cell.task, cell.io, []
    io.controller.set_gains = gains.append
    usual = io.model.geom_friction[:, 0].copy()
    lateral, yaw, tilt, friction = ([] for _ in range(4))
    for seed in range(60):
        task.reset(seed)
        seen = task.observe(io.read(), Pose.identity())["state/hole_estimate"]
        lateral.append(np.hypot(*(seen - seen_from_tcp(io.read(), task.T_base_hole))[:2]))
        yaw.append(abs(seen[3] - seen_from_tcp(io.read(), task.T_base_hole)[3]))
        tilt.append(swing_twist_z(task.T_base_hole.quaternion)[1])
        friction.append((io.model.geom_friction[:, 0] / usual).mean())
    for drawn, largest in ((lateral, 0.003), (yaw, np.deg2rad(5.0)), (tilt, np.deg2rad(2.0))):
        assert 0.8 * largest < max(drawn) < 1.15 * largest  # the measured pose has noise, the hole leans
        assert min(drawn) < 0.3 * largest
    stiffness = [one.translation / io.gains.translation for one in gains]
    for drawn, width in ((friction, 0.4), (stiffness, 0.3)):
        assert 1.0 - width <= min(drawn) < 1.0 - 0.7 * width
        assert 1.0 + 0.7 * width < max(drawn) <= 1.0 + width


def test_the_force_is_off_from_the_start_and_drifts_in_another_direction():
    flawed, exact = (
        make(WorkcellOptions(), replace(HARD, sensing=one), HARD_SPEC) for one in (HARD.sensing, Sensing())
    )
    starts = []
    for seed in range(3):
        errors = []
        for cell in (flawed, exact):
            cell.task.reset(seed)
        for _ in range(2):
            errors.append(flawed.io.read().wrench - exact.io.read().wrench)
            for cell in (flawed, exact):
                cell.io.sleep_until(cell.io.now() + 10 * NS_PER_S)
        first, later = (error[:3] for error in errors)
        assert np.linalg.norm(first) == pytest.approx(1.0, abs=0.01)
        assert np.linalg.norm(later - first) == pytest.approx(1.0, abs=0.01)
        starts.append(tuple(first.round(3)))
    assert len(set(starts)) == 3


def test_peg_insert_has_none_of_it():
    easy = PegInsertParameters()
    assert easy.tilt_range == easy.sensing.wrench_bias == easy.sensing.wrench_drift == 0.0
    assert not any(vars(easy.dynamics).values())
