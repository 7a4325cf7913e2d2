"""Is `pan_flip` honest? Success has to be an egg that turned over in the air after a toss, and lies in the pan."""

import mujoco
import numpy as np
import pytest
from play import always, at_random, guarded_demonstration, play, stage, steps

from robot_rl.cell.step_limits import step_limits
from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.config.randomization import WorldConfig
from robot_rl.data.schema import Source
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose, quat_from_rotvec
from sim.arm.fr3 import ARM_DOF, FR3
from sim.tasks.pan_flip import EGG, FOLLOWED, PAN, RIM, SPEC, START, TOSS, PanFlipParameters, make, toss_motion, turned

P = PanFlipParameters()
LIMITS = CommandLimits(**step_limits(SPEC).limits)
"""Those with which the safety node lets tosses through, as `docs/tasks.md` has them."""
EDGE = EGG.radius * np.array([[np.cos(a), np.sin(a), 0.0] for a in np.linspace(0.0, 2.0 * np.pi, 24)])
OVER = np.array([0.0, 1.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def pan():
    env, cell = stage("pan_flip")
    yield env, cell
    env.close()


def deepest(data):
    return min(data.contact.dist[: data.ncon], default=0.0)


def wait(io, seconds):
    io.sleep_until(io.now() + round(seconds * NS_PER_S))


def in_pan(data, points):
    """Points of the egg's frame in that of the pan's body, z up from its floor; from bodies alone. Shape (n, 3)."""
    egg, body = data.body("egg"), data.body("pan")
    return (egg.xpos + points @ egg.xmat.reshape(3, 3).T - body.xpos) @ body.xmat.reshape(3, 3)


def assert_it_lies_with_its_white_side_up(data):
    edge, (white, orange) = in_pan(data, EDGE), in_pan(data, np.array([[0, 0, -EGG.edge], [0, 0, EGG.edge]]))
    assert np.hypot(*edge[:, :2].T).max() < RIM[0] + 0.005
    assert 0.0 < edge[:, 2].min() < edge[:, 2].max() < RIM[1] + EGG.edge
    assert white[2] - orange[2] > 2 * EGG.edge * np.cos(P.tilt)


def test_every_success_is_an_egg_that_turned_in_the_air_and_stays_in_the_pan(pan):
    env, cell = pan
    data, speeds, successes, deep = cell.io.data, np.zeros(ARM_DOF), 0, 0.0
    for seed in range(100, 116):
        flew = []
        for info in steps(env, seed, always(env), demonstrate=True):
            assert info["step"].recorded.source == Source.SCRIPT
            if not cell.task.touching() and in_pan(data, EDGE)[:, 2].min() > RIM[1]:
                flew.append(np.degrees(turned(cell.task.egg())))
            speeds, deep = np.maximum(speeds, np.abs(data.qvel[:ARM_DOF])), min(deep, deepest(data))
        if info["step"].success:
            successes += 1
            assert any(30 < angle < 150 for angle in flew), "nobody saw it turn in the air"
            assert_it_lies_with_its_white_side_up(data)
            assert deepest(data) > -0.0001
            wait(cell.io, 0.5)
            assert_it_lies_with_its_white_side_up(data)
    assert successes >= 15
    assert (speeds < [link.velocity for link in FR3]).all(), "faster than the joints of the arm can turn"
    assert deep > -0.004, "in a blow, for milliseconds"


def test_nothing_straight_and_random_motions_do_not_turn_it_over(pan):
    env, _ = pan
    assert not any(play(env, seed).success for seed in (100, 101))
    for axis in range(3):
        for sign in (-1.0, 1.0):
            action = [0.0] * axis + [sign]
            assert not play(env, 100, always(env, *action)).success
    assert not any(play(env, seed, at_random(env, seed)).success for seed in range(100, 103))


@pytest.mark.parametrize("period", [2, 3, 4, 6])
@pytest.mark.parametrize("action", [(-1.0, -0.5, 0.5), (1.0, 1.0, 0.0), (0.0, -1.0, 1.0)])
def test_shaking_the_pan_does_not_turn_it_over(pan, period, action):
    env, _ = pan
    count = 0

    def policy(observation):
        nonlocal count
        del observation
        count += 1
        return np.array(action, np.float32) * (1 if count // period % 2 else -1)

    assert not play(env, 100, policy).success


@pytest.mark.parametrize("speed", [0.3, 0.6, 1.0])
def test_pushing_it_against_the_wall_lifts_its_edge_and_no_more(pan, speed):
    """To and fro against back and front wall, level: what a toss is without its lift and its lean."""
    env, cell = pan
    for seed in (100, 101, 102):
        count, most = 0, 0.0

        def policy(observation):
            nonlocal count, most
            del observation
            count, most = count + 1, max(most, turned(cell.task.egg()) if cell.task.egg().position[2] > 0.0 else 0.0)
            x = cell.io.read().T_base_tcp.position[0] - START.position[0]
            return np.array(
                [np.clip((0.1 * (1 if count // 12 % 2 else -1) - x) / 0.1, -speed, speed), 0.0, 0.0], np.float32
            )

        assert not play(env, seed, policy).success
        assert most > np.radians(3.0), "it did not reach the wall"


def placed(cell, pose, tossed=True):
    """Judge the egg at rest at a pose in the pan; how often the verdict was asked for until success, or None."""
    task = cell.task
    task.reset(100)
    task.egg, task.tossed, task.touching = lambda: pose, tossed, lambda: True
    try:
        for count in range(1, 10):
            if task.evaluate(None).success:
                return count
        return None
    finally:
        del task.egg, task.touching


def test_success_is_the_other_side_up_inside_and_after_a_toss(pan):
    _, cell = pan

    def tilted(angle, x=0.0):
        return Pose.from_rotvec(np.array([x, 0.0, 0.01]), np.array([0.0, np.pi - angle, 0.0]))

    assert placed(cell, tilted(0.0)) in (P.hold_steps, P.hold_steps + 1)
    assert placed(cell, tilted(P.tilt - 0.01))
    assert placed(cell, tilted(P.tilt + 0.01)) is None
    assert placed(cell, tilted(np.pi)) is None
    assert placed(cell, tilted(0.0, x=P.inside + 0.001)) is None
    assert placed(cell, Pose(np.array([0.0, 0.0, RIM[1] + 0.001]), OVER)) is None
    assert placed(cell, tilted(0.0), tossed=False) is None


def test_an_egg_that_was_put_in_the_pan_the_other_way_round_is_no_success(pan):
    env, cell = pan
    env.reset(seed=100)
    joint = cell.io.data.joint("egg")
    joint.qpos[3:] = quat_from_rotvec(np.array([0.0, np.pi, 0.0]))
    mujoco.mj_forward(cell.io.model, cell.io.data)
    for _ in range(20):
        *_, terminated, truncated, info = env.step(np.zeros(3, np.float32))
        assert not (terminated or truncated)
    assert info["step"].metrics["turned"] > 3.0


def alone(cell, seed=100):
    """A copy of the scene at reset whose arm stands like a rock, and energy is computed; call the second to end."""
    cell.task.reset(seed)
    model, data = cell.io.model, mujoco.MjData(cell.io.model)
    data.qpos[:] = cell.io.data.qpos
    damping, flags = model.dof_damping.copy(), model.opt.enableflags
    model.dof_damping[:ARM_DOF] = 1e6
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    mujoco.mj_forward(model, data)

    def end():
        model.dof_damping[:], model.opt.enableflags = damping, flags

    return model, data, end


@pytest.mark.parametrize("velocity", [(-1.2, 0.0, 0.0), (1.0, 0.3, 0.0), (0.0, 0.0, 1.2), (0.0, 0.0, -1.0)])
def test_an_egg_that_meets_the_pan_gains_no_energy(pan, velocity):
    """It slides into the back wall, or obliquely into the front one, comes down after a flight, or is pressed down."""
    _, cell = pan
    model, data, end = alone(cell)
    data.joint("egg").qvel[:3] = velocity
    energies, deep = [], 0.0
    for _ in range(800):
        mujoco.mj_step(model, data)
        energies.append(data.energy.sum())
        deep = min(deep, deepest(data))
    end()
    assert deep > -0.0025, "it gives way for some milliseconds"
    assert max(energies) <= energies[0] + 2e-5
    assert energies[0] - energies[-1] > 0.3 * 0.5 * EGG.mass * np.dot(velocity, velocity)


def test_an_egg_in_the_air_turns_and_falls_as_a_free_body(pan):
    _, cell = pan
    model, data, end = alone(cell)
    joint = data.joint("egg")
    joint.qpos[2] += 0.5
    joint.qvel[:] = [0.0, 0.0, 1.0, 0.0, 9.0, 0.0]
    mujoco.mj_forward(model, data)
    height, energy = joint.qpos[2], data.energy.sum()
    for _ in range(200):
        mujoco.mj_step(model, data)
    end()
    assert joint.qpos[2] - height == pytest.approx(1.0 * 0.2 - 0.5 * 9.81 * 0.04, abs=0.002)
    assert joint.qvel[4] == pytest.approx(9.0, rel=0.001)
    assert data.energy.sum() == pytest.approx(energy, abs=1e-3)  # the arm's is counted, too


def test_the_wall_is_a_bend_without_gaps(pan):
    """Radially outwards from the middle, the floor and the wall are met from above, and never step down."""
    _, cell = pan
    cell.task.reset(100)
    model, data = cell.io.model, cell.io.data
    body, geom = data.body("pan"), np.zeros(1, np.int32)
    only = np.array([0, 0, 0, 0, 0, 0], np.uint8)
    only[model.geom_group[model.body("pan").geomadr[0]]] = 1
    for angle in np.linspace(0.0, 2.0 * np.pi, 50):
        heights = []
        for radius in np.linspace(0.04, RIM[0] - 0.002, 40):
            point = body.xpos + body.xmat.reshape(3, 3) @ [radius * np.cos(angle), radius * np.sin(angle), 0.2]
            way = mujoco.mj_ray(model, data, point, -body.xmat.reshape(3, 3)[:, 2], only, 1, model.body("egg").id, geom)
            assert model.geom_bodyid[geom[0]] == body.id
            heights.append(0.2 - way)
        assert heights[0] == pytest.approx(0.0, abs=1e-6)
        assert min(np.diff(heights)) > -1e-4
        assert heights[-1] == pytest.approx(RIM[1], abs=0.01)
    assert pytest.approx((PAN.floor + PAN.bend * np.sin(PAN.steepest), PAN.bend * (1 - np.cos(PAN.steepest)))) == RIM


def seen(cell):
    return cell.task.observe(cell.io.read(), Pose.identity())["state/egg_estimate"]


def test_the_egg_rests_at_reset_and_the_estimate_is_as_wrong_as_stated():
    cell = make(WorkcellOptions())
    lateral, vertical, tilts, away, friction = [], [], [], [], []
    for seed in range(60):
        cell.task.reset(seed)
        data, egg = cell.io.data, cell.task.egg()
        assert np.abs(data.qvel).max() < 0.02
        assert deepest(data) > -0.0001
        assert egg.position[2] == pytest.approx(EGG.edge, abs=0.0001)
        assert turned(egg) < 0.01
        away.append(np.hypot(*egg.position[:2]))
        if seed < 5:
            wait(cell.io, 1.0)
            assert np.abs(cell.task.egg().position - egg.position).max() < 0.0002
        # The pan's frame is the tcp's, turned about x.
        readings = []
        for _ in range(10):
            wait(cell.io, 0.05)
            readings.append(seen(cell))
        error = np.mean(readings, axis=0)[:3] - egg.position * [1, -1, -1]
        lateral.append(np.hypot(*error[:2]))
        vertical.append(abs(error[2]))
        ups = np.array(readings)[:, 3:]
        assert np.linalg.norm(ups, axis=1) == pytest.approx(1.0)
        tilts.append(np.arccos(-np.mean(ups, axis=0)[2]))
        friction.append(float(cell.io.model.geom_friction[-1, 0]))
    for drawn, largest, rest in (
        (lateral, P.estimate_error, P.jitter),
        (vertical, P.estimate_error_z, P.jitter),
        (tilts, P.estimate_error_tilt, P.jitter_tilt),
    ):
        assert 0.8 * largest < max(drawn) <= largest + rest
    assert 0.9 * P.range < max(away) <= P.range + 0.001
    assert max(friction) > 1.15 * np.mean(friction) > 1.3 * min(friction)
    cell = make(WorkcellOptions(world=WorldConfig(estimate_error=0.0)))
    cell.task.reset(0)
    assert seen(cell) == pytest.approx([*(cell.task.egg().position * [1, -1, -1]), 0.0, 0.0, -1.0], abs=0.001)


def test_the_same_seed_gives_the_same_scene_and_the_same_readings(pan):
    _, cell = pan
    eggs, readings = [], []
    for seed in (110, 111, 110):
        cell.task.reset(seed)
        eggs.append(cell.task.egg().position)
        wait(cell.io, 0.05)
        readings.append(seen(cell))
    assert (eggs[0] == eggs[2]).all()
    assert (readings[0] == readings[2]).all()
    assert np.abs(eggs[0] - eggs[1]).max() > 0.001


def test_the_estimate_is_as_late_as_the_pictures_and_follows_for_its_way(pan):
    _, cell = pan
    io = cell.io
    for way, followed in ((0.1, 0.1), (2.0, FOLLOWED)):
        cell.task.reset(110)
        wait(io, 0.05)
        before = seen(cell)
        io.data.joint("egg").qpos[2] += way
        mujoco.mj_forward(io.model, io.data)
        wait(io, io.sensing.camera_delay - 0.01)
        assert seen(cell)[:3] == pytest.approx(before[:3], abs=0.006)
        wait(io, 0.02)
        assert np.linalg.norm(seen(cell)[:3]) == pytest.approx(followed, abs=0.02)
        assert seen(cell)[2] < -0.9 * followed + 0.01  # the tcp's z points down


def test_an_egg_on_the_table_is_lost(pan):
    env, cell = pan
    env.reset(seed=100)
    cell.io.data.joint("egg").qpos[0] += 0.3
    mujoco.mj_forward(cell.io.model, cell.io.data)
    for _ in range(20):
        *_, terminated, _, info = env.step(np.zeros(3, np.float32))
        if terminated:
            break
    assert info["step"].failure == "the egg is lost"


def test_the_pan_stays_off_the_table_in_the_whole_workspace():
    """Even where it leans forward as far as it may, as low as it may."""
    reach = 0.22 + RIM[0]
    lowest = START.position[2] + SPEC.workspace.low[2] - reach * np.sin(SPEC.workspace.tilt) - RIM[1]
    assert lowest > 0.0, "its rim would be pressed into the table"


def test_the_safety_filter_lets_tosses_through_with_the_stated_limits_and_bounds_them_with_its_own(pan, monkeypatch):
    env, cell = pan
    with monkeypatch.context() as patch:
        infos, changed = guarded_demonstration(env, cell, 111, patch, CommandGuard(LIMITS))
        assert infos[-1]["step"].success
        assert not changed
    with monkeypatch.context() as patch:
        infos, changed = guarded_demonstration(env, cell, 111, patch, CommandGuard(CommandLimits()))
        assert {"speed", "turn rate"} <= changed
        assert not infos[-1]["step"].success


def test_the_operator_tosses_again_where_it_failed_and_takes_over_from_who_does_nothing():
    env, _ = stage("pan_flip", interventions=True)
    sources, helped = set(), 0
    for seed in range(100, 104):
        for info in steps(env, seed, always(env)):
            sources.add(info["step"].recorded.source)
        helped += info["step"].success
    assert sources == {Source.POLICY, Source.SCRIPT}
    assert helped >= 3
    env.close()


def test_a_toss_is_a_pull_a_drive_and_a_catch_below_the_egg():
    egg = np.array([TOSS.under + 0.05, 0.0, 0.1])
    x, z, turn = toss_motion(0, START, egg)
    assert x < 0 and z < 0 < turn, "back, up, the front up"
    x, *_ = toss_motion(TOSS.steps[0], START, egg)
    assert x > 0.9 * SPEC.action_translation
    x, z, turn = toss_motion(sum(TOSS.steps), START, egg)
    assert (x, z, turn) == pytest.approx((TOSS.follow * 0.05, TOSS.give, TOSS.meet))
    x, z, turn = toss_motion(sum(TOSS.steps), START, np.array([0.05, 0.0, EGG.edge]))
    assert (x, z, turn) == pytest.approx((0.0, TOSS.give, 0.0))
