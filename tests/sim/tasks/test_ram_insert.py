"""Is `ram_insert` honest? Success has to be a module between its latches, and the latches have to be what holds it."""

import mujoco
import numpy as np
import pytest
from play import always, play, stage, steps

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose, quat_multiply
from sim.arm.fr3 import ARM_DOF
from sim.arm.inverse_kinematics import solve_ik
from sim.scene import DOWNWARD
from sim.tasks.pose_estimate import seen_from_tcp
from sim.tasks.ram_insert import LATCH, MODULE, SOCKET_DEPTH, RamInsertParameters, make

P = RamInsertParameters()
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
LATCHES = ("far_latch", "near_latch")


@pytest.fixture(scope="module")
def ram():
    env, cell = stage("ram_insert")
    yield env, cell
    env.close()


def assert_latched(model, data):
    """The module's lower edge is at the bottom of the socket, and each nose is inside a notch; from bodies alone."""
    block, tip = data.body("block"), data.site("tcp")
    in_socket = block.xmat.reshape(3, 3).T @ (tip.xpos - block.xpos)
    assert in_socket[2] == pytest.approx(-SOCKET_DEPTH, abs=0.0007)
    assert np.abs(in_socket[:2]).max() < P.clearance + 0.0002
    axes = tip.xmat.reshape(3, 3)
    for name in LATCHES:
        (nose,) = np.flatnonzero((model.geom_bodyid == model.body(name).id) & (model.geom_type == CAPSULE))
        _, along, down = axes.T @ (data.geom_xpos[nose] - tip.xpos)
        low, high = MODULE.notch
        assert low < -down < high
        reach = abs(along) - LATCH.nose_radius
        assert MODULE.half_length - MODULE.notch_depth < reach < MODULE.half_length, "the nose is not in the notch"


@pytest.mark.slow
def test_every_success_is_a_module_between_its_latches_that_sinks_into_nothing(ram):
    env, cell = ram
    data, successes, bent = cell.io.data, 0, []
    for seed in range(110, 114):
        angles = []
        for info in steps(env, seed, always(env), demonstrate=True):
            angles.append(cell.task.latch_angles())
            if info["step"].success:
                successes += 1
                assert_latched(cell.io.model, data)
                assert min(data.contact.dist[: data.ncon], default=0.0) > -0.0001
        bent.append(np.max(angles, axis=0).min())
    assert successes >= 3
    assert min(bent) > 0.04, "the latches were out of the way"


def push(io, height):
    """Move the set-point up (or down) from where the module is for two seconds, by `height` [m] all the time."""
    for _ in range(20):
        pose = io.controller.pose()
        goal = Pose(np.array([*pose.position[:2], pose.position[2] + height]), pose.quaternion)
        io.command(Command(stamp=io.now(), ttl=0.3, T_base_target=goal))
        io.sleep_until(io.now() + NS_PER_S // 10)


def test_the_latches_hold_the_module_against_all_of_the_arms_strength(ram):
    env, cell = ram
    assert play(env, 111, demonstrate=True).success
    push(cell.io, 0.01)
    assert cell.task.insertion()[0] > SOCKET_DEPTH - 0.001


def test_a_module_that_is_pushed_straight_down_does_not_go_in(ram):
    """With no error at all: it has to be pressed in at one end first."""
    _, cell = ram
    cell.task.reset(0)
    hole = cell.task.T_base_hole
    above = hole.position + np.array([0.0, 0.0, 0.001])
    arm = solve_ik(cell.io.model, "tcp", above, quat_multiply(hole.quaternion, DOWNWARD))
    cell.io.reset(np.append(arm, np.zeros(2)), 0)
    push(cell.io, -0.01)
    depth, *_ = cell.task.insertion()
    assert 0.002 < depth < 0.007


def test_pushing_down_scores_zero(ram):
    env, _ = ram
    assert not any(play(env, seed, always(env, 0.0, 0.0, 1.0)).success for seed in (110, 111))


def test_a_latch_that_is_let_go_swings_back_and_gains_no_energy(ram):
    _, cell = ram
    cell.task.reset(0)
    model, data = cell.io.model, cell.io.data
    place, inertia = ARM_DOF, model.dof_armature[ARM_DOF] + model.body("far_latch").inertia[0]
    data.qpos[place] = 0.12
    energies = []
    for _ in range(100):
        mujoco.mj_step(model, data)
        angle, speed = data.qpos[place], data.qvel[ARM_DOF]
        energies.append(0.5 * inertia * speed**2 + 0.5 * LATCH.stiffness * (angle + LATCH.preload) ** 2)
    assert (np.diff(energies[:5]) < 0.0).all() and max(energies) == energies[0]
    assert max(energies[50:]) < 1.01 * 0.5 * LATCH.stiffness * LATCH.preload**2
    assert abs(data.qpos[place]) < 0.005 and abs(data.qvel[ARM_DOF]) < 0.05


def test_the_scene_is_at_rest_at_reset_and_the_estimate_is_as_wrong_as_stated():
    cell = make(WorkcellOptions())
    lateral, yaw = [], []
    for seed in range(60):
        cell.task.reset(seed)
        assert np.abs(cell.io.data.qvel).max() < 1e-3
        assert cell.io.data.ncon == 0
        state = cell.io.read()
        error = cell.task.observe(state, Pose.identity())["state/hole_estimate"] - seen_from_tcp(
            state, cell.task.T_base_hole
        )
        lateral.append(np.hypot(*error[:2]))
        yaw.append(abs(error[3]))
    for drawn, largest in ((lateral, P.estimate_error), (yaw, P.estimate_error_yaw)):
        assert 0.85 * largest < max(drawn) <= 1.001 * largest
