"""The simulated arm as a URDF, for programs that show it or compute with its joints.

    python -m sim.arm.urdf > arm.urdf

Its root is `base`, its joints have the names of `joint_states`, and it ends at the flange: the tcp is measured.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import numpy as np

from robot_rl.arm.kinematics.fr3 import FLANGE_OFFSET, FLANGE_TURN
from sim.arm.fr3 import FR3, VISUAL_SHAPES
from sim.arm.shapes import DARK

NAME = "fr3"


def arm_urdf() -> str:
    """Return the arm as URDF (XML): links `base`, `link1` to `link7`, `flange`, and primitive shapes to look at."""
    robot = ET.Element("robot", name=NAME)
    base = ET.SubElement(robot, "link", name="base")
    _add_cylinder(base, np.array([-0.02, 0.0, 0.0]), np.array([-0.02, 0.0, 0.14]), 0.09, DARK)
    for number, (link, shapes) in enumerate(zip(FR3, VISUAL_SHAPES, strict=True), start=1):
        element = ET.SubElement(robot, "link", name=f"link{number}")
        for start, end, radius, rgba in shapes:
            _add_cylinder(element, np.array(start, float), np.array(end, float), radius, rgba)
        parent = f"link{number - 1}" if number > 1 else "base"
        joint = _add_joint(
            robot, f"joint{number}", "revolute", parent, f"link{number}", link.position, (link.roll, 0, 0)
        )
        ET.SubElement(joint, "axis", xyz="0 0 1")
        low, high = link.limits
        limits = {"lower": low, "upper": high, "effort": link.torque, "velocity": link.velocity}
        ET.SubElement(joint, "limit", {key: f"{value:.9g}" for key, value in limits.items()})
    ET.SubElement(robot, "link", name="flange")
    turn = (0.0, 0.0, FLANGE_TURN)
    _add_joint(robot, "flange", "fixed", f"link{len(FR3)}", "flange", (0.0, 0.0, FLANGE_OFFSET), turn)
    ET.indent(robot)
    return ET.tostring(robot, encoding="unicode")


def _add_joint(
    robot: ET.Element,
    name: str,
    kind: str,
    parent: str,
    child: str,
    xyz: tuple[float, float, float],
    rpy: tuple[float, float, float],
) -> ET.Element:
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    ET.SubElement(joint, "origin", xyz=_three(xyz), rpy=_three(rpy))
    return joint


def _add_cylinder(link: ET.Element, start: np.ndarray, end: np.ndarray, radius: float, rgba: tuple[float, ...]) -> None:
    """Add a cylinder from one point of the link to another [m]."""
    x, y, z = (end - start).tolist()
    visual = ET.SubElement(link, "visual")
    rpy = (0.0, math.atan2(math.hypot(x, y), z), math.atan2(y, x))  # turns z to the line between the points
    ET.SubElement(visual, "origin", xyz=_three((0.5 * (start + end)).tolist()), rpy=_three(rpy))
    shape = ET.SubElement(ET.SubElement(visual, "geometry"), "cylinder")
    shape.set("radius", f"{radius:.9g}")
    shape.set("length", f"{math.hypot(x, y, z):.9g}")
    material = ET.SubElement(visual, "material", name="_".join(f"{round(255 * value):02x}" for value in rgba[:3]))
    ET.SubElement(material, "color", rgba=" ".join(f"{value:g}" for value in rgba))


def _three(values: tuple[float, ...] | list[float]) -> str:
    return " ".join(f"{value:.12g}" for value in values)


if __name__ == "__main__":
    print(arm_urdf())
