"""Chains from URDF files, and what is refused there."""

import numpy as np
import pytest

from robot_rl.arm.kinematics.urdf import chain_from_urdf, longest_chain
from robot_rl.errors import ConfigError, UnknownNameError

URDF = """<?xml version="1.0"?>
<robot name="r">
  <link name="base"/> <link name="one"/> <link name="two"/> <link name="flange"/> <link name="tip"/>
  <joint name="lift" type="revolute">
    <parent link="one"/> <child link="two"/>
    <origin xyz="0.3 0 0" rpy="1.5707963267948966 0 0"/> <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1.5" effort="1" velocity="1"/>
  </joint>
  <joint name="pan" type="continuous">
    <parent link="base"/> <child link="one"/> <origin xyz="0 0 0.1"/> <axis xyz="0 0 1"/>
  </joint>
  <joint name="mount" type="fixed"> <parent link="two"/> <child link="flange"/> <origin xyz="0.2 0 0"/> </joint>
  <joint name="tool" type="fixed"> <parent link="flange"/> <child link="tip"/> <origin xyz="0 0 0.05"/> </joint>
</robot>
"""


@pytest.fixture
def file(tmp_path):
    def write(old="", new=""):
        assert old in URDF
        path = tmp_path / "arm.urdf"
        path.write_text(URDF.replace(old, new) if old else URDF)
        return path

    return write


def test_joints_are_in_order_and_fixed_ones_are_joined(file):
    chain = chain_from_urdf(file(), "tip", ["pan", "lift"])
    assert chain.names == ("pan", "lift")
    assert chain.low == pytest.approx([-np.pi, -1])
    assert chain.high == pytest.approx([np.pi, 1.5])
    # by hand: 0.1 up; then 0.3 out; there x stays x, y is up, z is -y; then 0.2 along x and 0.05 along z
    assert chain.pose(np.zeros(2)).position == pytest.approx([0.5, -0.05, 0.1])
    assert chain.pose(np.array([np.pi / 2, np.pi / 2])).position == pytest.approx([0.05, 0.3, 0.3])


def test_a_chain_may_end_at_a_link_in_between(file):
    assert chain_from_urdf(file(), "one").names == ("pan",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('type="revolute"', 'type="planar"', "joint lift is planar; valid: fixed, revolute"),
        ('<limit lower="-1" upper="1.5" effort="1" velocity="1"/>', "", "joint lift has no limits"),
        ('lower="-1"', 'lower="a"', "joint lift has no limits"),
        ('xyz="0.3 0 0"', 'xyz="0.3 0"', "xyz of joint lift is not three numbers: '0.3 0'"),
        ('<axis xyz="0 0 1"/>\n    <limit', '<axis xyz="0 0 0"/>\n    <limit', "axis of joint lift is zero"),
        ('<child link="two"/>', "", "joint lift names no child link"),
        ("</robot>", "", "is no XML file"),
        ("robot", "sdf", "its root is <sdf>"),
        ('<axis xyz="0 0 1"/>\n    <limit', '<mimic joint="pan"/> <limit', "mimics another one"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(file, old, new, message):
    with pytest.raises(ConfigError, match=message):
        chain_from_urdf(file(old, new), "tip")


def test_other_joints_an_unknown_tip_and_a_missing_file_are_named(file, tmp_path):
    with pytest.raises(ConfigError, match="from base to tip the joints are pan, lift; the arm has a, b"):
        chain_from_urdf(file(), "tip", ["a", "b"])
    with pytest.raises(UnknownNameError, match=r"unknown link of .* 'tipp'; valid: base, .* did you mean 'tip'"):
        chain_from_urdf(file(), "tipp")
    with pytest.raises(ConfigError, match="no joint moves the link base"):
        chain_from_urdf(file(), "base")
    with pytest.raises(ConfigError, match="No such file"):
        chain_from_urdf(tmp_path / "no.urdf", "tip")


def test_the_longest_chain_is_found_by_the_names_of_the_joints():
    text = URDF.replace('name="tool" type="fixed"', 'name="finger" type="prismatic"').replace(
        '<origin xyz="0 0 0.05"/>', '<origin xyz="0 0 0.05"/> <limit lower="0" upper="0.04"/>'
    )
    assert longest_chain(text, ["lift", "gripper", "pan"]).names == ("pan", "lift")
    assert longest_chain(text, ["finger", "lift", "pan"]).names == ("pan", "lift", "finger")
    assert longest_chain(text, ["pan"]).names == ("pan",)
    mimic = text.replace('<limit lower="0"', '<mimic joint="lift"/> <limit lower="0"')
    assert longest_chain(mimic, ["finger", "lift", "pan"]).names == ("pan", "lift")


@pytest.mark.parametrize(
    ("text", "joints", "message"),
    [
        (URDF, ["shoulder"], "has the joints lift, pan, mount, tool; the arm reports shoulder"),
        ("<mujoco/>", ["pan"], "the robot's description is no URDF: its root is <mujoco>, not <robot>"),
        ("no xml", ["pan"], "the robot's description is no XML"),
        ('<robot name="r"/>', [], "has the joints none; the arm reports none"),
    ],
)
def test_a_description_of_another_arm_is_refused(text, joints, message):
    with pytest.raises(ConfigError, match=message):
        longest_chain(text, joints)


def test_a_description_whose_links_go_in_a_circle_ends():
    circle = URDF.replace('<parent link="base"/>', '<parent link="tip"/>')
    assert longest_chain(circle, ["lift", "pan"]).size > 0
