"""Is `cable_clip` honest? Success has to be a cable behind the jaws, the jaws what holds it, and the cable a rod."""

import mujoco
import numpy as np
import pytest
from play import always, stage, steps

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command
from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import Pose, quat_rotate, yaw_pose
from sim.arm.fr3 import ARM_DOF
from sim.tasks.cable_clip import CABLE, CLIP, REACH, CableClipParameters, crossing, make
from sim.tasks.pose_estimate import seen_from_tcp

P = CableClipParameters()
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE


@pytest.fixture(scope="module")
def clip():
    env, cell = stage("cable_clip")
    yield env, cell
    env.close()


def deepest(data):
    return min(data.contact.dist[: data.ncon], default=0.0)


def assert_clipped(model, data):
    """Every piece of cable inside the clip is behind both noses and does not reach into them; from geoms alone."""
    body = data.body("clip")
    R = body.xmat.reshape(3, 3)
    noses = [
        R.T @ (data.geom_xpos[g] - body.xpos)
        for name in ("upper_jaw", "lower_jaw")
        for g in np.flatnonzero((model.geom_bodyid == model.body(name).id) & (model.geom_type == CAPSULE))
    ]
    pieces = [g for i in range(CABLE.segments) for g in np.flatnonzero(model.geom_bodyid == model.body(f"cable{i}").id)]
    inside = 0
    for piece in pieces:
        middle, axis = data.geom_xpos[piece], data.geom_xmat[piece].reshape(3, 3)[:, 2]
        for along in np.linspace(-0.5, 0.5, 10) * CABLE.segment:
            x, y, z = R.T @ (middle + along * axis - body.xpos)
            if abs(y) < CLIP.half_length - 0.001:
                inside += 1
                assert x < -0.0024
                assert all(np.hypot(x - n[0], z - n[2]) > CABLE.radius + CLIP.nose_radius - 0.0004 for n in noses)
    assert inside >= 8
    assert noses[0][2] - noses[1][2] - 2 * CLIP.nose_radius < 2 * CABLE.radius - 0.0012, "the mouth is open"


def move(io, offset, seconds):
    """Move the set-point by `offset` from where the hand is [m], base frame, and wait."""
    pose = io.controller.pose()
    goal = Pose(pose.position + offset, pose.quaternion)
    for _ in range(round(10 * seconds)):
        io.command(Command(stamp=io.now(), ttl=0.3, T_base_target=goal))
        io.sleep_until(io.now() + NS_PER_S // 10)


@pytest.mark.slow
def test_every_success_is_a_cable_behind_the_jaws_which_hold_it(clip):
    env, cell = clip
    io, successes = cell.io, 0
    for seed in range(110, 114):
        for info in steps(env, seed, always(env), demonstrate=True):
            if info["step"].success:
                successes += 1
                assert_clipped(io.model, io.data)
                move(io, np.zeros(3), 0.5)
                assert deepest(io.data) > -0.0001
                out = quat_rotate(cell.task.T_base_hole.quaternion, np.array([0.006, 0.0, 0.0]))
                move(io, out, 0.5)  # enough to lift a cable that nothing holds
                assert_clipped(io.model, io.data)
    assert successes >= 3


def test_a_cable_from_above_does_not_go_in(clip):
    """Taut and right over the clip, with no error at all."""
    env, cell = clip
    env.reset(seed=110)
    over = quat_rotate(cell.task.T_base_hole.quaternion, np.array([-CLIP.seat, REACH, 0.0]))
    for height in (0.03, 0.02, 0.012, 0.006, 0.0, -0.006, -0.012):
        goal = cell.task.T_base_hole.position + over + [0.0, 0.0, height]
        move(cell.io, goal - cell.io.controller.pose().position, 0.5)
    assert cell.io.controller.pose().position[2] < cell.task.T_base_hole.position[2] - 0.005
    x, z = crossing(cell.task.T_base_hole, cell.task.cable(), 0.0)
    assert z > CLIP.gap / 2 + CABLE.radius or x > CABLE.radius


def test_the_cable_bends_as_a_rod_of_its_stiffness(clip):
    """The deflection of a cantilever, F L^3 / (3 EI); a chain bends at the near end of each piece, so a little more."""
    _, cell = clip
    model = cell.io.model
    data, force = mujoco.MjData(model), np.array([0.0, 0.0, 2e-3])
    data.qpos[:ARM_DOF] = cell.task.q_start[:ARM_DOF]
    data.eq_active[:], gravity = 0, model.opt.gravity.copy()
    model.opt.gravity[:] = 0.0
    tip = model.body(f"cable{CABLE.segments}").id
    mujoco.mj_forward(model, data)
    straight = data.xpos[tip].copy()
    for _ in range(1500):
        data.qfrc_applied[:] = 0.0
        mujoco.mj_applyFT(model, data, force, np.zeros(3), data.xpos[tip], tip, data.qfrc_applied)
        mujoco.mj_step(model, data)
        data.qpos[:ARM_DOF], data.qvel[:ARM_DOF] = cell.task.q_start[:ARM_DOF], 0.0
    model.opt.gravity[:] = gravity
    # In units of a piece: the sum of i^2 for i = 1 to 12 is 650, the integral of x^2 up to 12 is 576.
    exact = force[2] * CABLE.length**3 / (3.0 * CABLE.bending)
    assert data.xpos[tip, 2] - straight[2] == pytest.approx(1.128 * exact, rel=0.01)


def test_a_cable_that_is_let_go_gains_no_energy(clip):
    """Its end falls from the anchor, while the arm stands; springs and gravity count."""
    _, cell = clip
    cell.task.reset(110)
    model, data = cell.io.model, cell.io.data
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    damping = model.dof_damping.copy()
    model.dof_damping[:ARM_DOF] = 1e5
    data.ctrl[:], data.eq_active[:] = 0.0, 0
    energies = []
    for _ in range(150):
        mujoco.mj_step(model, data)
        energies.append(data.energy.sum())
    model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    model.dof_damping[:], data.eq_active[:] = damping, 1
    assert np.ptp(energies) > 0.01
    assert np.diff(energies).max() < 0.0


def test_the_scene_is_at_rest_at_reset_and_the_estimate_is_as_wrong_as_stated():
    cell = make(WorkcellOptions())
    lateral, vertical, yaw = [], [], []
    for seed in range(40):
        cell.task.reset(seed)
        data, cable = cell.io.data, cell.task.cable()
        assert np.abs(data.qvel[:ARM_DOF]).max() < 0.02 and np.abs(data.qvel[ARM_DOF:]).max() < 0.2
        assert deepest(data) > -0.0001
        assert np.linalg.norm(cable[-1] - data.body("anchor").xpos) < 0.0001
        assert np.linalg.norm(np.diff(cable, axis=0), axis=1) == pytest.approx(CABLE.segment, rel=1e-6)
        assert crossing(cell.task.T_base_hole, cable, 0.0)[1] > 0.01, "the cable is not above the clip"
        state = cell.io.read()
        truth = seen_from_tcp(state, cell.task.T_base_hole)
        error = cell.task.observe(state, Pose.identity())["state/clip_estimate"] - truth
        lateral.append(np.hypot(*error[:2]))
        vertical.append(abs(error[2]))
        yaw.append(abs(error[3]))
    for drawn, largest in (
        (lateral, P.estimate_error),
        (vertical, P.estimate_error_z),
        (yaw, P.estimate_error_yaw),
    ):
        assert 0.85 * largest < max(drawn) <= 1.05 * largest


def test_the_same_seed_gives_the_same_cable(clip):
    _, cell = clip
    cables = []
    for seed in (110, 111, 110):
        cell.task.reset(seed)
        cables.append(cell.task.cable())
    assert (cables[0] == cables[2]).all() and np.abs(cables[0] - cables[1]).max() > 0.001


def test_where_a_cable_crosses_the_clip():
    pose = yaw_pose(0.5, 0.0, 0.1, np.pi / 2)  # its y is the base frame's -x, its x the base frame's y
    cable = np.array([[0.49, 0.02, 0.11], [0.51, 0.04, 0.13], [0.52, 0.04, 0.13]])
    assert crossing(pose, cable, 0.0) == pytest.approx((0.03, 0.02))
    assert crossing(pose, cable, 0.005) == pytest.approx((0.025, 0.015))
    assert crossing(pose, cable, 0.5) == pytest.approx((0.02, 0.01)), "the nearest end, where none crosses"
