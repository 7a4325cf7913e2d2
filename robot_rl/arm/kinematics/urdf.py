"""The chain of an arm from a URDF: the joints between two links; meshes, masses and all the rest are ignored."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
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
    link, found = _way_to(tip, _parents(robot, path), path)
    chain = _chain(found, path, tip)
    if joints and chain.names != tuple(joints):
        raise ConfigError(
            f"{path}: from {link} to {tip} the joints are {', '.join(chain.names)}; the arm has {', '.join(joints)} in "
            "this order. Rename the joints of the file, or name another tip"
        )
    return chain


def longest_chain(text: str, joints: Sequence[str]) -> Chain:
    """Read the longest chain from the root of a URDF whose joints are all among those of some names.

    Args:
        text: The URDF (XML), e.g. of the topic `robot_description`.
        joints: The names, in any order, with or without those of a gripper.

    Raises:
        ConfigError: if it is no URDF, or none of its joints is there.
    """
    where = "the robot's description"
    try:
        robot = _root(ET.fromstring(text), where)
    except ET.ParseError as error:
        raise ConfigError(f"{where} is no XML: {error}") from error
    parents = _parents(robot, where)
    ways = {link: _way_to(link, parents, where)[1] for link in parents}
    found = {link: [joint for joint in way if joint.get("type") in MOVABLE] for link, way in ways.items()}
    whole = [link for link, moved in found.items() if all(_follows(joint, joints) for joint in moved)]
    tip = max(whole, key=lambda link: (len(found[link]), -len(ways[link])), default=None)
    if tip is None or not found[tip]:
        there = ", ".join(joint.get("name", "") for joint in parents.values())
        raise ConfigError(f"{where} has the joints {there or 'none'}; the arm reports {', '.join(joints) or 'none'}")
    return _chain(ways[tip], where, tip)


def _follows(joint: ET.Element, names: Sequence[str]) -> bool:
    return joint.get("name") in names and joint.find("mimic") is None


def _parents(robot: ET.Element, where: Path | str) -> dict[str, ET.Element]:
    """Return the joint above each link."""
    return {_child(joint, where): joint for joint in robot.findall("joint")}


def _way_to(tip: str, parents: Mapping[str, ET.Element], where: Path | str) -> tuple[str, list[ET.Element]]:
    """Return the root and the joints from there to a link."""
    found: list[ET.Element] = []
    link = tip
    while link in parents and len(found) < len(parents):  # a loop ends, too
        found.insert(0, parents[link])
        link = _link(parents[link], "parent", where)
    return link, found


def _chain(elements: Sequence[ET.Element], where: Path | str, tip: str) -> Chain:
    """Join fixed joints to the movable ones behind them; those behind the last are the tool."""
    joints, before = [], Pose.identity()
    for element in elements:
        name, kind = element.get("name", ""), element.get("type", "")
        before = before @ _origin(element, where)
        if kind == "fixed":
            continue
        if kind not in MOVABLE:
            raise ConfigError(f"{where}: joint {name} is {kind or 'of no type'}; valid: fixed, {', '.join(MOVABLE)}")
        if element.find("mimic") is not None:
            raise ConfigError(f"{where}: joint {name} mimics another one; a chain to the tcp must not go through it")
        low, high = _limits(element, kind, where)
        joints.append(Joint(name, before, _axis(element, where), low, high, slides=kind == "prismatic"))
        before = Pose.identity()
    if not joints:
        raise ConfigError(f"{where}: no joint moves the link {tip}; name the link of the tool as tip")
    return Chain(joints, before)


def _read(path: Path) -> ET.Element:
    try:
        robot = ET.parse(path.expanduser()).getroot()
    except OSError as error:
        raise ConfigError(f"cannot read the URDF file {path}: {error.strerror}") from error
    except ET.ParseError as error:
        cure = "; convert it first: `xacro FILE.xacro > FILE.urdf`" if path.suffix == ".xacro" else ""
        raise ConfigError(f"{path} is no XML file: {error}{cure}") from error
    return _root(robot, path)


def _root(robot: ET.Element, where: Path | str) -> ET.Element:
    if robot.tag != "robot":
        raise ConfigError(f"{where} is no URDF: its root is <{robot.tag}>, not <robot>")
    return robot


def _child(joint: ET.Element, where: Path | str) -> str:
    return _link(joint, "child", where)


def _link(joint: ET.Element, which: str, where: Path | str) -> str:
    element = joint.find(which)
    link = element.get("link") if element is not None else None
    if not link:
        raise ConfigError(f"{where}: joint {joint.get('name')} names no {which} link")
    return link


def _origin(joint: ET.Element, where: Path | str) -> Pose:
    origin = joint.find("origin")
    if origin is None:
        return Pose.identity()
    xyz, rpy = (_three(origin.get(key, "0 0 0"), joint, key, where) for key in ("xyz", "rpy"))
    return Pose(xyz, quat_from_rpy(*rpy.tolist()))


def _axis(joint: ET.Element, where: Path | str) -> np.ndarray:
    element = joint.find("axis")
    axis = _three(element.get("xyz", "1 0 0") if element is not None else "1 0 0", joint, "axis", where)
    if not np.linalg.norm(axis) > 0.0:
        raise ConfigError(f"{where}: the axis of joint {joint.get('name')} is zero")
    return axis


def _limits(joint: ET.Element, kind: str, where: Path | str) -> tuple[float, float]:
    if kind == "continuous":
        return -math.pi, math.pi
    limit = joint.find("limit")
    try:
        if limit is None:
            raise KeyError
        low, high = float(limit.attrib["lower"]), float(limit.attrib["upper"])
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{where}: joint {joint.get('name')} has no limits (lower, upper)") from error
    return low, high


def _three(text: str, joint: ET.Element, what: str, where: Path | str) -> np.ndarray:
    try:
        values = np.array([float(number) for number in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ConfigError(f"{where}: the {what} of joint {joint.get('name')} is not three numbers: {text!r}")
    return values
