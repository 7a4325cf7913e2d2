"""The chain of the SO-101 as a URDF file, for drivers that read one."""

from robot_rl.arm.kinematics import so101


def urdf_of_so101():
    """The chain of the SO-101 as a URDF file."""
    lines = ['<robot name="r"><link name="l0"/>']
    for i, (name, xyz, rpy, (low, high)) in enumerate(so101.JOINTS, start=1):
        place = f'xyz="{" ".join(map(str, xyz))}" rpy="{" ".join(map(str, rpy))}"'
        lines.append(
            f'<link name="l{i}"/><joint name="{name}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/>'
            f'<origin {place}/><axis xyz="0 0 1"/><limit lower="{low}" upper="{high}"/></joint>'
        )
    xyz, rpy = (" ".join(map(str, three)) for three in so101.TOOL)
    lines.append(
        f'<link name="tip"/><joint name="tool" type="fixed"><parent link="l5"/><child link="tip"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/></joint></robot>'
    )
    return "".join(lines)
