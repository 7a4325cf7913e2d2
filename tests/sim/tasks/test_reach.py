import numpy as np
import pytest
from play import always, at_random, play, stage, steps

from sim.tasks.reach import SPEC, START, TARGET_RANGE, TOLERANCE


@pytest.fixture(scope="module")
def reach():
    env, cell = stage("reach")
    yield env, cell
    env.close()


def test_every_success_is_the_tip_at_the_target_for_two_steps():
    env, cell = stage("reach", interventions=True)
    successes = 0
    for seed in range(20):
        options = {"demonstrate": True} if seed < 10 else {}
        distances = []
        for info in steps(env, seed, at_random(env, seed), **options):
            data = cell.io.data
            distances.append(np.linalg.norm(data.site("tcp").xpos - data.body("target").xpos))
            if info["step"].success:
                successes += 1
                assert max(distances[-2:]) <= TOLERANCE + 1e-4
    assert successes >= 10


def test_the_operator_succeeds(reach):
    env, _ = reach
    assert sum(play(env, seed, demonstrate=True).success for seed in range(20)) >= 18


@pytest.mark.slow
def test_doing_nothing_and_running_into_a_corner_seldom_succeed(reach):
    env, _ = reach
    for policy in (always(env), always(env, 1.0, 1.0, 1.0)):
        assert sum(play(env, seed, policy).success for seed in range(20)) <= 1


def test_targets_fill_their_range_and_lie_in_the_workspace(reach):
    _, cell = reach
    offsets = []
    for seed in range(100):
        cell.task.reset(seed)
        offsets.append(cell.task.target - START)
    assert np.abs(offsets).max() <= TARGET_RANGE
    assert (np.max(offsets, axis=0) > 0.9 * TARGET_RANGE).all()
    assert (np.min(offsets, axis=0) < -0.9 * TARGET_RANGE).all()
    assert (np.array(SPEC.workspace.high) > TARGET_RANGE).all()
    assert (np.array(SPEC.workspace.low) < -TARGET_RANGE).all()


def test_the_observation_points_at_the_target(reach):
    env, cell = reach
    observation, _ = env.reset(seed=3)
    tcp = cell.io.controller.pose()
    assert tcp.position + tcp.matrix @ observation["state/target"] == pytest.approx(cell.task.target, abs=5e-4)
