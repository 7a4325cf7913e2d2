"""An arm of a file stands in the tasks of ours: what it says counts, and what cannot stand there is named."""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from ur5e import UR5E

from robot_rl.arm.kinematics.fr3 import FLANGE_TURN, JOINTS
from robot_rl.config.randomization import WorldConfig
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.geometry import Pose
from sim.arm.fr3 import DYNAMICS, HOME
from sim.arm.link_points import LinkPoints
from sim.arm.mount import add_arm
from sim.arm.place import ArmPlace


@pytest.fixture
def ur5e(tmp_path):
    file = tmp_path / "ur5e.xml"
    file.write_text(UR5E)
    return file


def fr3_urdf():
    """The Franka Research 3 as a manufacturer's file, with inertias."""
    links = ["<link name='base'/>"]
    for number, ((position, roll, limits), (torque, velocity, mass, center, inertia)) in enumerate(
        zip(JOINTS, DYNAMICS, strict=True), start=1
    ):
        names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        moments = " ".join(f'{name}="{value!r}"' for name, value in zip(names, inertia, strict=True))
        parent = f"part{number - 1}" if number > 1 else "base"
        links += [
            f'<link name="part{number}"><inertial><origin xyz="{text(center)}"/><mass value="{mass}"/>'
            f"<inertia {moments}/></inertial></link>",
            f'<joint name="j{number}" type="revolute"><parent link="{parent}"/><child link="part{number}"/>'
            f'<origin xyz="{text(position)}" rpy="{roll!r} 0 0"/><axis xyz="0 0 1"/>'
            f'<limit lower="{limits[0]}" upper="{limits[1]}" effort="{torque}" velocity="{velocity}"/></joint>',
        ]
    options = '<mujoco><compiler fusestatic="false" balanceinertia="true"/></mujoco>'
    flange = (
        '<link name="tool0"/><joint name="end" type="fixed"><parent link="part7"/><child link="tool0"/>'
        f'<origin xyz="0 0 0.107" rpy="0 0 {FLANGE_TURN!r}"/></joint>'
    )
    return f'<robot name="fr3">{options}{"".join(links)}{flange}</robot>'


def text(values):
    return " ".join(repr(float(value)) for value in values)


def compiled(file=None):
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    flange = add_arm(spec, None if file is None else str(file))
    flange.add_body(name="tool").add_site(name="tcp", pos=(0, 0, 0.1))
    return spec.compile()


def demonstrated(task, file, seeds=(0, 1)):
    """How many demonstrations of a task succeed with the arm of a file."""
    options = WorkcellOptions(world=WorldConfig(arm=str(file)))
    env, successes = RobotEnv(make_workcell(task, options), options=options), 0
    for seed in seeds:
        env.reset(seed=seed, options={"demonstrate": True})
        ended = False
        while not ended:
            _, _, terminated, truncated, info = env.step(np.zeros(env.action_space.shape, np.float32))
            ended = terminated or truncated
        successes += info["step"].success
    env.close()
    return successes


@pytest.mark.parametrize("task", ["peg_insert", "cube_lift", "ram_insert"])
def test_a_ur5e_does_the_tasks_of_the_franka(ur5e, task):
    assert demonstrated(task, ur5e) == 2


@pytest.mark.parametrize("task", ["handover", "belt"])
def test_two_of_them_do_the_tasks_of_two_arms(ur5e, task):
    assert demonstrated(task, ur5e, seeds=(0,)) == 1


def test_the_same_arm_from_a_file_moves_as_ours(tmp_path):
    """The URDF has no armature, and gets that of ours; its damping is none."""
    (tmp_path / "fr3.urdf").write_text(fr3_urdf())
    file = tmp_path / "fr3.yaml"
    file.write_text(f"model: fr3.urdf\nflange: tool0\nready: {HOME.tolist()}\n")
    ours, read = compiled(), compiled(file)
    ours.dof_damping[:] = 0.0
    states = []
    for model in (ours, read):
        data = mujoco.MjData(model)
        data.qpos[:] = HOME + 0.1
        for step in range(200):
            data.ctrl[:] = 5.0 * np.sin(0.05 * step + np.arange(7))
            mujoco.mj_step(model, data)
        states.append(np.concatenate((data.qpos, data.qvel, data.site("tcp").xpos, data.site("tcp").xmat)))
    np.testing.assert_allclose(*states, atol=1e-5)
    places = [ArmPlace.of(model) for model in (ours, read)]
    assert places[1].ready == pytest.approx(HOME)
    assert (places[0].small == places[1].small).all()


def test_limits_and_strength_are_those_of_the_file(ur5e):
    model = compiled(ur5e)
    place = ArmPlace.of(model)
    assert model.actuator_ctrlrange[place.motors, 1] == pytest.approx([150, 150, 150, 28, 28, 28])
    assert place.small.tolist() == [False] * 3 + [True] * 3
    assert model.jnt_range[place.joints, 1] == pytest.approx(np.deg2rad([360, 360, 180, 360, 360, 360]))
    assert place.ready == pytest.approx([-1.5708, -1.5708, 1.5708, -1.5708, -1.5708, 0])
    assert (model.dof_damping[place.dof] == 1.0).all()
    assert (model.dof_armature[place.dof] == 0.1).all()
    assert model.nlight == 0
    assert not (model.geom_contype | model.geom_conaffinity).any()


def test_physics_options_of_the_file_do_not_count_and_nothing_warns(ur5e, capfd, recwarn):
    ur5e.write_text(
        UR5E.replace("<worldbody>", '<option timestep="0.02" integrator="RK4" gravity="0 0 0"/><worldbody>', 1)
    )
    with_options = make_workcell("handover", WorkcellOptions(world=WorldConfig(arm=str(ur5e))))
    assert with_options.io.model.opt.timestep == 0.002
    assert with_options.io.model.opt.gravity[2] == pytest.approx(-9.81)
    with_options.close()
    assert not recwarn.list
    assert "conflict" not in capfd.readouterr().err


def test_it_stands_where_its_file_says(tmp_path, ur5e):
    file = tmp_path / "moved.yaml"
    file.write_text("model: ur5e.xml\nposition: [0.1, -0.2, 0.05]\nturn: 0.5\n")
    poses = []
    for one in (ur5e, file):
        data = mujoco.MjData(model := compiled(one))
        data.qpos[:] = ArmPlace.of(model).ready
        mujoco.mj_kinematics(model, data)
        poses.append(Pose(data.body("flange").xpos.copy(), data.body("flange").xquat.copy()))
    moved = Pose.from_rotvec(np.array([0.1, -0.2, 0.05]), np.array([0.0, 0.0, 0.5])) @ poses[0]
    assert poses[1].position == pytest.approx(moved.position)
    assert abs(poses[1].quaternion @ moved.quaternion) == pytest.approx(1.0)


def test_meshes_beside_the_model_are_found(tmp_path, ur5e):
    (tmp_path / "assets").mkdir()
    corners = [(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]
    faces = ((1, 3, 2), (1, 2, 4), (1, 4, 3), (2, 3, 4))
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces]
    (tmp_path / "assets" / "shell.obj").write_text("\n".join(lines))
    shown = UR5E.replace('<compiler angle="degree"', '<compiler meshdir="assets" angle="degree"')
    shown = shown.replace("<worldbody>", '<asset><mesh name="shell" file="shell.obj"/></asset><worldbody>', 1)
    shown = shown.replace(
        '<joint name="pan" axis="0 0 1"/>', '<joint name="pan" axis="0 0 1"/><geom type="mesh" mesh="shell"/>'
    )
    ur5e.write_text(shown)
    assert compiled(ur5e).nmesh == 1
    options = WorkcellOptions(world=WorldConfig(arm=str(ur5e)))
    make_workcell("handover", options).close()


KEYFRAME = '<keyframe><key name="home" qpos="-1.5708 -1.5708 1.5708 -1.5708 -1.5708 0"/></keyframe>'
MESH = '<asset><mesh name="shell" file="gone.obj"/></asset>'
JAW = '<body name="jaw"><joint name="grip"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<joint name="wrist3"/>', "", "has 5 joints up to its flange, a tool is brought to a pose by at least 6"),
        ('<joint name="wrist3"/>', '<joint name="wrist3" type="slide"/>', "wrist3 are no hinges"),
        ('<joint name="wrist3"/>', "<joint/>", "a joint has no name"),
        ('<motor joint="wrist2" ctrlrange="-28 28"/>', "", "nothing says how strong wrist2 is"),
        ('<site name="att', f'{JAW}<site name="att', "grip move beside the flange; take the model without a gripper"),
        ("<mujoco model", "<mujoco modle", "MuJoCo cannot read it"),
        (
            "<worldbody>",
            f"{MESH}<worldbody>",
            r"no model of it: Error opening file 'gone.obj'; meshes have to lie where",
        ),
        ('<inertial mass="0.1889"', '<inertial mass="0"', "no model of it: mass and inertia of moving bodies must be"),
    ],
)
def test_what_cannot_stand_there_is_named(ur5e, old, new, words):
    broken = UR5E.replace(KEYFRAME, "").replace(old, new)
    if "wrist3" in old:
        broken = broken.replace('<motor joint="wrist3" ctrlrange="-14 14" gear="2"/>', "")
    ur5e.write_text(broken)
    with pytest.raises(ConfigError, match=words) as refused:
        compiled(ur5e)
    assert "\n" not in str(refused.value)


def test_targets_and_contacts_of_the_file_do_not_count(ur5e):
    beside = '<body name="target" mocap="true"><geom name="ball" type="sphere" size="0.02"/></body></worldbody>'
    touching = '<contact><pair geom1="ball" geom2="upper"/></contact>'
    shown = UR5E.replace("</worldbody>", beside + touching).replace("<geom fromto", '<geom name="upper" fromto', 1)
    ur5e.write_text(shown)
    model = compiled(ur5e)
    assert (model.nmocap, model.npair) == (0, 0)


def test_a_ready_pose_beyond_the_limits_is_named(ur5e):
    ur5e.write_text(UR5E.replace("-1.5708 0", "-1.5708 9"))
    with pytest.raises(ConfigError, match=r"the ready pose .* is outside"):
        compiled(ur5e)


def test_an_unknown_flange_lists_what_there_is(tmp_path, ur5e):
    file = tmp_path / "arm.yaml"
    file.write_text("model: ur5e.xml\nflange: tool0\n")
    with pytest.raises(UnknownNameError, match=r"'tool0'; valid: .*attachment_site.*wrist3"):
        compiled(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("model: nowhere.xml\n", "its model .*nowhere.xml is not there"),
        ("model: ur5e.xml\nturned: 1\n", "turned.*valid.*turn"),
        ("turn: 1\n", "model is missing"),
        ("model: ~/nowhere.xml\n", f"its model {Path.home()}/nowhere.xml is not there"),
        ("model: ur5e.xml\nready: [0, 0, 0, 0, 0, 0, 0]\n", "ready has 7 angles, there are 6 joints"),
    ],
)
def test_a_file_that_says_something_else_is_named(tmp_path, ur5e, content, words):
    file = tmp_path / "arm.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=words):
        compiled(file)


def test_an_arm_that_does_not_reach_where_a_task_begins_is_named(tmp_path, ur5e):
    file = tmp_path / "far.yaml"
    file.write_text("model: ur5e.xml\nposition: [-0.6, 0, 0]\n")
    with pytest.raises(ConfigError, match=r"no joint angles bring tcp to .* m, .* nearer by `position` and `turn`"):
        make_workcell("peg_insert", WorkcellOptions(world=WorldConfig(arm=str(file))))


def test_points_along_the_arm_are_where_its_joints_are(ur5e):
    model = compiled(ur5e)
    points = LinkPoints(model)(ArmPlace.of(model).ready)
    assert points[[0, 1, -1]] == pytest.approx(np.array([[0, 0, 0], [0, 0, 0.163], [-0.134, 0.492, 0.488]]), abs=1e-3)
    assert len(points) == 8


def test_without_a_file_one_line_says_so():
    with pytest.raises(ConfigError, match="there is no such file; give an MJCF or URDF model"):
        compiled(Path("missing.xml"))


def test_of_a_folder_the_models_in_it_are_named(ur5e):
    (ur5e.parent / "README.md").write_text("An arm")
    with pytest.raises(ConfigError, match=r"is a folder; name a model in it; there: ur5e.xml$"):
        compiled(ur5e.parent)


def test_a_path_in_the_home_folder_may_begin_with_a_tilde():
    assert WorldConfig(arm="~/arms/ur5e.xml").arm == str(Path.home() / "arms" / "ur5e.xml")
