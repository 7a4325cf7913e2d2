"""Is `usb_pick_insert` honest? Success has to be the shell in the port, whichever way the plug lay in its tray."""

import mujoco
import numpy as np
import pytest
from play import always, play, stage, steps

from robot_rl.env.task import WorkcellOptions
from robot_rl.geometry import swing_twist_z
from sim.tasks.usb_pick_insert import PLUG, PLUG_ERROR, PLUG_ERROR_YAW, SPEC, TOP, UsbInsertParameters, half_turn, make

P = UsbInsertParameters()


@pytest.fixture(scope="module")
def usb():
    env, cell = stage("usb_pick_insert")
    yield env, cell
    env.close()


def assert_in_port(data):
    """All corners of the shell are inside the port, its end near the bottom; from the geom and the block alone."""
    block, shell = data.body("block"), data.geom("shell")
    half = np.array([*PLUG.shell, PLUG.shell_length / 2])
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8) * half[:, None]
    in_port = block.xmat.reshape(3, 3).T @ (shell.xmat.reshape(3, 3) @ corners + (shell.xpos - block.xpos)[:, None])
    slack = P.clearance + 0.0001
    assert (np.abs(in_port[:2]).max(axis=1) < np.array(PLUG.shell) + slack).all()
    assert in_port[2].min() < -(PLUG.shell_length - 0.001)


@pytest.mark.slow
def test_every_success_is_a_plug_in_the_port_that_sinks_into_nothing(usb):
    env, cell = usb
    data, successes, yaws = cell.io.data, 0, []
    for seed in (111, 113, 117):
        lifted = False
        for info in steps(env, seed, always(env), demonstrate=True):
            now = info["step"].metrics["is_lifted"] > 0
            assert now or not lifted, "in the port, too"
            lifted = now
            if info["step"].success:
                successes += 1
                assert_in_port(data)
                mujoco.mj_forward(cell.io.model, data)
                shell = cell.io.model.geom("shell").id
                assert min((c.dist for c in data.contact[: data.ncon] if shell in c.geom), default=0.0) > -0.0001
        yaws.append(abs(swing_twist_z(cell.task.T_base_plug_estimate.quaternion)[0]))
    assert successes >= 2
    assert max(yaws) > 1.0


def test_pushing_down_with_closed_fingers_scores_zero(usb):
    env, _ = usb
    played = play(env, 110, always(env, 0.0, 0.0, 1.0, 0.0, -1.0))
    assert not played.success
    assert not any(step.reward for step in played.steps)


def test_a_plug_that_has_fallen_over_ends_the_episode(usb):
    env, cell = usb
    env.reset(seed=0)
    cell.io.data.qpos[-7:] = [0.45, 0.0, 0.02, np.cos(np.pi / 4), np.sin(np.pi / 4), 0.0, 0.0]
    *_, terminated, truncated, info = env.step(np.zeros(SPEC.action_size, np.float32))
    assert terminated and not truncated
    assert info["step"].failure == "the plug has fallen over"


def test_the_plug_stands_still_at_any_yaw_and_is_where_it_is_said_to_be():
    cell = make(WorkcellOptions())
    lateral, turns, yaws = [], [], []
    for seed in range(60):
        cell.task.reset(seed)
        data, truth, estimate = cell.io.data, cell.task.grasp_pose(), cell.task.T_base_plug_estimate
        assert np.abs(data.qvel).max() < 1e-3
        assert min(data.contact.dist[: data.ncon]) > -0.0001
        assert truth.position[2] == pytest.approx(TOP + PLUG.body_length / 2, abs=1e-4)
        yaw, told = (swing_twist_z(pose.quaternion)[0] for pose in (truth, estimate))
        lateral.append(np.hypot(*(estimate.position - truth.position)[:2]))
        turns.append(abs(half_turn(told - yaw)))
        yaws.append(yaw)
    for drawn, largest in ((lateral, PLUG_ERROR), (turns, PLUG_ERROR_YAW)):
        assert 0.85 * largest < max(drawn) < 1.05 * largest
    assert max(yaws) > 1.4 and min(yaws) < -1.4
    assert np.histogram(yaws, 4, (-np.pi / 2, np.pi / 2))[0].min() > 5
