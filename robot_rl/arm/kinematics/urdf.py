"""The chain of an arm from a URDF file: the joints between two links; meshes, masses and all the rest are ignored."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robot_rl.arm.kinematics.chain import Chain, Joint, quat_from_rpy
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.geometry import Pose

MOVABLE = ("revolute", "continuous", "prismatic")


def chain_from_urdf(path: Path, tip: str, joints: Sequence[str] = ()) -> Chain:
    """Read the chain from the root of a URDF file to a link.

    Args:
        path: The file.
        tip: The link whose frame is the tcp's.
        joints: Names of the joints in the order of the arm's driver, to check that they are these; none does not check.

    Raises:
        ConfigError: if the file cannot be read, is no URDF, or has other joints between the two links.
        UnknownNameError: if there is no such link.
    """
    robot = _read(path)
    links = [link.get("name", "") for link in robot.findall("link")]
    if tip not in links:
        raise UnknownNameError(f"link of {path}", tip, links)
    parents = {_child(joint, path): joint for joint in robot.findall("joint")}
    found: list[ET.Element] = []
    link = tip
    while link in parents:
        joint = parents.pop(link)  # taken out, so that a loop ends
        found.insert(0, joint)
        link = _link(joint, "parent", path)
    chain = _chain(found, path, tip)
    if joints and chain.names != tuple(joints):
        raise ConfigError(
            f"{path}: from {link} to {tip} the joints are {', '.join(chain.names)}; the arm has {', '.join(joints)} in "
            "this order. Rename the joints of the file, or name another tip"
        )
    return chain


def _chain(elements: Sequence[ET.Element], path: Path, tip: str) -> Chain:
    """Join fixed joints to the movable ones behind them; those behind the last are the tool."""
    joints, before = [], Pose.identity()
    for element in elements:
        name, kind = element.get("name", ""), element.get("type", "")
        before = before @ _origin(element, path)
        if kind == "fixed":
            continue
        if kind not in MOVABLE:
            raise ConfigError(f"{path}: joint {name} is {kind or 'of no type'}; valid: fixed, {', '.join(MOVABLE)}")
        if element.find("mimic") is not None:
            raise ConfigError(f"{path}: joint {name} mimics another one; a chain to the tcp must not go through it")
        low, high = _limits(element, kind, path)
        joints.append(Joint(name, before, _axis(element, path), low, high, slides=kind == "prismatic"))
        before = Pose.identity()
    if not joints:
        raise ConfigError(f"{path}: no joint moves the link {tip}; name the link of the tool as tip")
    return Chain(joints, before)


def _read(path: Path) -> ET.Element:
    try:
        robot = ET.parse(path.expanduser()).getroot()
    except OSError as error:
        raise ConfigError(f"cannot read the URDF file {path}: {error.strerror}") from error
    except ET.ParseError as error:
        cure = "; convert it first: `xacro FILE.xacro > FILE.urdf`" if path.suffix == ".xacro" else ""
        raise ConfigError(f"{path} is no XML file: {error}{cure}") from error
    if robot.tag != "robot":
        raise ConfigError(f"{path} is no URDF file: its root is <{robot.tag}>, not <robot>")
    return robot


def _child(joint: ET.Element, path: Path) -> str:
    return _link(joint, "child", path)


def _link(joint: ET.Element, which: str, path: Path) -> str:
    element = joint.find(which)
    link = element.get("link") if element is not None else None
    if not link:
        raise ConfigError(f"{path}: joint {joint.get('name')} names no {which} link")
    return link


def _origin(joint: ET.Element, path: Path) -> Pose:
    origin = joint.find("origin")
    if origin is None:
        return Pose.identity()
    xyz, rpy = (_three(origin.get(key, "0 0 0"), joint, key, path) for key in ("xyz", "rpy"))
    return Pose(xyz, quat_from_rpy(*rpy.tolist()))


def _axis(joint: ET.Element, path: Path) -> np.ndarray:
    element = joint.find("axis")
    axis = _three(element.get("xyz", "1 0 0") if element is not None else "1 0 0", joint, "axis", path)
    if not np.linalg.norm(axis) > 0.0:
        raise ConfigError(f"{path}: the axis of joint {joint.get('name')} is zero")
    return axis


def _limits(joint: ET.Element, kind: str, path: Path) -> tuple[float, float]:
    if kind == "continuous":
        return -math.pi, math.pi
    limit = joint.find("limit")
    try:
        if limit is None:
            raise KeyError
        low, high = float(limit.attrib["lower"]), float(limit.attrib["upper"])
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{path}: joint {joint.get('name')} has no limits (lower, upper)") from error
    return low, high


def _three(text: str, joint: ET.Element, what: str, path: Path) -> np.ndarray:
    try:
        values = np.array([float(number) for number in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ConfigError(f"{path}: the {what} of joint {joint.get('name')} is not three numbers: {text!r}")
    return values
