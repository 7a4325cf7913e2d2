"""ROS messages to our values and back. Nothing else knows that ROS writes quaternions as (x, y, z, w).

Functions called `..._message` make messages; the others read them, and raise `SpecError` where a message does not hold
what it should.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import (
    Point32,
    PolygonStamped,
    PoseStamped,
    Transform,
    TransformStamped,
    TwistStamped,
    WrenchStamped,
)
from geometry_msgs.msg import Pose as PoseMessage
from PIL import Image as Picture
from PIL import UnidentifiedImageError
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, JointState, Joy
from std_msgs.msg import Header
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from calibration.result import CameraIntrinsics
from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.state_assembler import Joints, Tool, checked_quaternion
from robot_rl.env.task import TaskSpec
from robot_rl.errors import SpecError
from robot_rl.geometry import Pose
from robot_rl.teleop.intervention import Intervention
from ros_nodes.interface.frames import BASE, CELL, TCP
from ros_nodes.interface.topics import below

GRIPPER = "gripper"
FORCE, TORQUE = "force", "torque"
CONTACT = "contact"

DEPTH_UNITS = {"16UC1": ("u2", 1e-3), "mono16": ("u2", 1e-3), "32FC1": ("f4", 1.0)}
"""Encodings of depth images (REP 118): type of a pixel, as numpy has it, and unit [m]."""
_AROUND = ((0, 0), (1, 0), (1, 1), (0, 1))
_ALONG_EDGES = (
    *((x, y, 0) for x, y in (*_AROUND, _AROUND[0])),
    *((x, y, z) for i in range(1, 4) for (x, y), z in ((_AROUND[i - 1], 1), (_AROUND[i], 1), (_AROUND[i], 0))),
    *((x, y, 1) for x, y in (_AROUND[3], _AROUND[0])),
)
"""Corners of a box, by the end of each side, in the order of a closed line along its edges."""
_CHANNELS = {"rgb8": (3, (0, 1, 2)), "bgr8": (3, (2, 1, 0)), "rgba8": (4, (0, 1, 2)), "bgra8": (4, (2, 1, 0))}


def time_message(stamp: int) -> Time:
    """Return a time [ns]."""
    seconds, nanoseconds = divmod(stamp, NS_PER_S)
    return Time(sec=seconds, nanosec=nanoseconds)


def stamp_of(time: Time) -> int:
    """Return a time [ns]."""
    return int(time.sec) * NS_PER_S + int(time.nanosec)


def header(stamp: int, frame: str) -> Header:
    """Stamp [ns] and frame."""
    return Header(stamp=time_message(stamp), frame_id=frame)


def pose_message(stamp: int, pose: Pose, frame: str = BASE) -> PoseStamped:
    """Return a pose in a frame."""
    message = PoseStamped(header=header(stamp, frame))
    _fill_pose(message.pose, pose)
    return message


def pose_of(message: PoseMessage) -> Pose:
    """Return a pose; its quaternion is of unit length."""
    p, q = message.position, message.orientation
    return Pose(np.array((p.x, p.y, p.z)), checked_quaternion(np.array((q.w, q.x, q.y, q.z))))


def transform_message(stamp: int, parent: str, child: str, T_parent_child: Pose) -> TransformStamped:
    """Return the pose of a frame in its parent, as TF has it."""
    return TransformStamped(header=header(stamp, parent), child_frame_id=child, transform=_transform(T_parent_child))


def transform_of(message: TransformStamped) -> Pose:
    """Return the pose of the child frame in its parent."""
    p, q = message.transform.translation, message.transform.rotation
    return Pose(np.array((p.x, p.y, p.z)), checked_quaternion(np.array((q.w, q.x, q.y, q.z))))


def box_message(stamp: int, low: Sequence[float], high: Sequence[float], frame: str = BASE) -> PolygonStamped:
    """Return a box between two corners (x, y, z) [m] as one closed line that runs along each of its edges."""
    message = PolygonStamped(header=header(stamp, frame))
    sides = tuple(zip(low, high, strict=True))
    for corner in _ALONG_EDGES:
        x, y, z = (side[which] for side, which in zip(sides, corner, strict=True))
        message.polygon.points.append(Point32(x=float(x), y=float(y), z=float(z)))
    return message


def twist_message(stamp: int, twist: np.ndarray, frame: str = BASE) -> TwistStamped:
    """Return a twist (linear, angular), shape (6,)."""
    message = TwistStamped(header=header(stamp, frame))
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = twist.tolist()
    return message


def twist_of(message: TwistStamped) -> np.ndarray:
    """(linear, angular), shape (6,)."""
    v, w = message.twist.linear, message.twist.angular
    return np.array((v.x, v.y, v.z, w.x, w.y, w.z))


def wrench_message(stamp: int, wrench: np.ndarray, frame: str = TCP) -> WrenchStamped:
    """Return a wrench (force, torque), shape (6,)."""
    message = WrenchStamped(header=header(stamp, frame))
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench.tolist()
    return message


def wrench_of(message: WrenchStamped) -> np.ndarray:
    """(force, torque), shape (6,)."""
    f, t = message.wrench.force, message.wrench.torque
    return np.array((f.x, f.y, f.z, t.x, t.y, t.z))


def joints_message(stamp: int, names: list[str], joints: Joints) -> JointState:
    """Positions and velocities of the arm's joints."""
    return JointState(
        header=header(stamp, ""), name=names, position=joints.position.tolist(), velocity=joints.velocity.tolist()
    )


def joints_of(message: JointState, names: Sequence[str] = (), without: str = "") -> Joints:
    """Positions and velocities.

    Args:
        message: The joint state.
        names: Which joints, in this order; none takes all in the message's order.
        without: A joint to leave out then.
    """
    position, velocity = np.array(message.position), np.array(message.velocity)
    if not len(message.name) == len(position) == len(velocity):
        raise SpecError(
            f"a joint state has {len(message.name)} names, {len(position)} positions and {len(velocity)} velocities; "
            "all three are needed"
        )
    there = list(message.name)
    if missing := set(names) - set(there):
        raise SpecError(f"no joint is called {', '.join(sorted(missing))}; there are {', '.join(there)}")
    if not names and without not in there:
        return Joints(position, velocity)
    chosen = [there.index(name) for name in names or there if name != without or names]
    return Joints(position[chosen], velocity[chosen])


def tool_message(stamp: int, tool: Tool) -> JointState:
    """Width between the fingers as a position, and the peak of the contact force as an effort."""
    return JointState(
        header=header(stamp, TCP),
        name=[GRIPPER, CONTACT],
        position=[tool.gripper_width, 0.0],
        effort=[0.0, tool.peak_force],
    )


def tool_of(message: JointState) -> Tool:
    """Width between the fingers and peak of the contact force."""
    try:
        width = message.position[message.name.index(GRIPPER)]
        return Tool(width, message.effort[message.name.index(CONTACT)])
    except (ValueError, IndexError) as error:
        raise SpecError(
            f"the state of the tool needs a position of {GRIPPER!r} and an effort of {CONTACT!r}; it names "
            f"{list(message.name)}"
        ) from error


def image_message(stamp: int, image: np.ndarray, frame: str) -> Image:
    """Return an RGB frame, uint8, shape (height, width, 3)."""
    height, width, channels = image.shape
    # array.array is the fast way to fill a sequence on every ROS distribution; numpy arrays take 1000 times as long.
    data = array("B", image.tobytes())
    return Image(
        header=header(stamp, frame), height=height, width=width, encoding="rgb8", step=width * channels, data=data
    )


def image_of(message: Image) -> np.ndarray:
    """Return an RGB frame, uint8, shape (height, width, 3); a view of the message where it is rgb8."""
    known = _CHANNELS.get(message.encoding)
    if known is None:
        raise SpecError(f"image encoding {message.encoding!r} is not known; valid: {', '.join(_CHANNELS)}")
    channels, order = known
    data = np.frombuffer(message.data, np.uint8)
    if message.step < message.width * channels or data.size != message.height * message.step:
        raise SpecError(
            f"an image of {message.width} x {message.height} px in {message.encoding} has {data.size} bytes in rows "
            f"of {message.step}"
        )
    rows = data.reshape(message.height, message.step)[:, : message.width * channels]
    pixels = rows.reshape(message.height, message.width, channels)
    return pixels if order == (0, 1, 2) and channels == 3 else pixels[:, :, list(order)]


def compressed_image_of(message: CompressedImage) -> np.ndarray:
    """Return an RGB frame of a JPEG or PNG, uint8, shape (height, width, 3)."""
    try:
        with Picture.open(BytesIO(bytes(message.data))) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise SpecError(
            f"a compressed image ({message.format or 'of no format'}) is no JPEG or PNG: {error}"
        ) from error


def depth_of(message: Image) -> np.ndarray:
    """Return a depth image, distances along the optical axis [m], float32, shape (height, width)."""
    code, unit = DEPTH_UNITS[message.encoding]
    kind = np.dtype(code).newbyteorder(">" if message.is_bigendian else "<")
    data = np.frombuffer(message.data, np.uint8)
    if message.step < message.width * kind.itemsize or data.size != message.height * message.step:
        raise SpecError(
            f"a depth image of {message.width} x {message.height} px in {message.encoding} has {data.size} bytes in "
            f"rows of {message.step}"
        )
    rows = data.reshape(message.height, message.step)[:, : message.width * kind.itemsize]
    return np.ascontiguousarray(rows).view(kind).astype(np.float32) * np.float32(unit)


def camera_info_message(
    stamp: int,
    size: tuple[int, int],
    matrix: np.ndarray,
    frame: str,
    model: str = "plumb_bob",
    distortion: tuple[float, ...] = (0.0,) * 5,
) -> CameraInfo:
    """Height and width of an image [px], the camera matrix, shape (3, 3), and the distortion."""
    height, width = size
    projection = np.hstack((matrix, np.zeros((3, 1))))
    return CameraInfo(
        header=header(stamp, frame),
        height=height,
        width=width,
        distortion_model=model,
        d=list(distortion),
        k=matrix.ravel(),
        r=np.eye(3).ravel(),
        p=projection.ravel(),
    )


def lens_message(stamp: int, size: tuple[int, int], lens: CameraIntrinsics | None, frame: str) -> CameraInfo:
    """Return what is known of the lens behind an image of this height and width [px]; None: not calibrated."""
    if lens is None:
        return camera_info_message(stamp, size, np.zeros((3, 3)), frame, "", ())
    return camera_info_message(stamp, size, lens.matrix, frame, lens.model, lens.distortion)


def command_message(command: Command) -> MultiDOFJointTrajectory:
    """Return a command: where each tcp, and each gripper that is named, shall be, and for how long that counts.

    A feed-forward wrench is two further names, `force` and `torque`, whose translations are the vectors in the tcp
    frame [N, Nm]. Of several arms, the names begin with that of the arm, e.g. `left/tcp`, and its transform is in its
    own base frame.
    """
    point, names = MultiDOFJointTrajectoryPoint(time_from_start=_duration(command.ttl)), []
    for arm, one in command.set_points.items():
        point.transforms.append(_transform(one.T_base_target))
        names.append(below(arm, TCP))
        if one.gripper_width is not None:
            gripper = Transform()
            gripper.translation.x = one.gripper_width
            point.transforms.append(gripper)
            names.append(below(arm, GRIPPER))
        if one.wrench is not None:
            for name, vector in ((FORCE, one.wrench[:3]), (TORQUE, one.wrench[3:])):
                point.transforms.append(_transform(Pose(vector, Pose.identity().quaternion)))
                names.append(below(arm, name))
    frame = CELL if command.arms else BASE
    return MultiDOFJointTrajectory(header=header(command.stamp, frame), joint_names=names, points=[point])


def stop_message(stamp: int) -> MultiDOFJointTrajectory:
    """Return a stop: as in ROS's own controllers, a trajectory without points."""
    return MultiDOFJointTrajectory(header=header(stamp, BASE))


def command_of(message: MultiDOFJointTrajectory) -> Command | None:
    """Return the command; None for a stop."""
    if not message.points:
        return None
    names, point = list(message.joint_names), message.points[0]
    arms = list(dict.fromkeys(name.rpartition("/")[0] for name in names))
    wanted = [name for arm in arms for name in _names_of(arm, names)]
    if len(message.points) != 1 or not names or names != wanted or ("" in arms and len(arms) > 1):
        raise SpecError(
            f"a command has one point for tcp, then maybe gripper, then maybe force and torque, or for those of each "
            f"arm, e.g. left/tcp; got {len(message.points)} of {names}"
        )
    if len(point.transforms) != len(names):
        raise SpecError(f"a command for {names} has {len(point.transforms)} transforms")
    transforms = dict(zip(names, point.transforms, strict=True))
    points = {arm: _set_point(transforms, arm) for arm in arms}
    duration = point.time_from_start
    stamp, ttl = stamp_of(message.header.stamp), duration.sec + duration.nanosec / NS_PER_S
    if "" not in points:
        return Command.of_arms(stamp, ttl, points)
    alone = points[""]
    return Command(stamp, ttl, alone.T_base_target, alone.gripper_width, wrench=alone.wrench)


def joy_message(stamp: int, axes: np.ndarray, buttons: tuple[int, ...]) -> Joy:
    """Axes and buttons of a device."""
    return Joy(header=header(stamp, TCP), axes=array("f", np.asarray(axes, np.float32)), buttons=list(buttons))


def intervention_message(intervention: Intervention) -> Joy:
    """Return an intervention: x, y, z, roll, pitch, yaw as axes; take over, close, open as buttons.

    A seventh axis is how fast the gripper is closed or opened where that is not at full speed, and six more a
    feed-forward wrench where there is one.
    """
    gripper, wrench = intervention.gripper, intervention.wrench
    buttons = (int(intervention.active), int(gripper < 0), int(gripper > 0))
    share = [] if gripper in (-1.0, 0.0, 1.0) else [gripper]
    more = np.append(gripper, wrench) if wrench.any() else share
    return joy_message(intervention.stamp, np.append(intervention.motion, more), buttons)


def operator_message(stamp: int, action: np.ndarray | None, spec: TaskSpec) -> Joy:
    """Return the intervention of an operator's action in the policy's action space; None: not in control."""
    return intervention_message(Intervention.of_action(stamp, action, spec))


def intervention_of(message: Joy) -> Intervention:
    """Return an intervention."""
    if len(message.axes) not in (6, 7, 13) or len(message.buttons) != 3:
        raise SpecError(
            f"an intervention has 6 axes, 7 or 13, and 3 buttons, this one {len(message.axes)} and "
            f"{len(message.buttons)}"
        )
    active, close, opened = message.buttons
    motion = np.array(message.axes, np.float32)
    gripper = float(motion[6]) if len(motion) > 6 else float(bool(opened)) - float(bool(close))
    wrench = motion[7:] if len(motion) > 7 else np.zeros(6, np.float32)
    return Intervention(stamp_of(message.header.stamp), bool(active), motion[:6], gripper, wrench)


def _names_of(arm: str, given: Sequence[str]) -> list[str]:
    """Return what a command names of an arm, in order, where it names these; force and torque come together."""
    tcp, gripper, *wrench = (below(arm, part) for part in (TCP, GRIPPER, FORCE, TORQUE))
    return [tcp, *([gripper] if gripper in given else []), *(wrench if set(wrench) & set(given) else [])]


def _set_point(transforms: Mapping[str, Transform], arm: str) -> SetPoint:
    """Return the set-point of an arm in a command, from its transforms by name."""
    p, q = transforms[below(arm, TCP)].translation, transforms[below(arm, TCP)].rotation
    gripper = transforms.get(below(arm, GRIPPER))
    target = Pose(np.array((p.x, p.y, p.z)), np.array((q.w, q.x, q.y, q.z)))
    pushed = [transforms[name].translation for part in (FORCE, TORQUE) if (name := below(arm, part)) in transforms]
    wrench = np.array([value for v in pushed for value in (v.x, v.y, v.z)]) if pushed else None
    return SetPoint(target, None if gripper is None else float(gripper.translation.x), wrench)


def _fill_pose(message: PoseMessage, pose: Pose) -> None:
    p, q = message.position, message.orientation
    p.x, p.y, p.z = pose.position.tolist()
    q.w, q.x, q.y, q.z = pose.quaternion.tolist()


def _transform(pose: Pose) -> Transform:
    transform = Transform()
    p, q = transform.translation, transform.rotation
    p.x, p.y, p.z = pose.position.tolist()
    q.w, q.x, q.y, q.z = pose.quaternion.tolist()
    return transform


def _duration(seconds: float) -> Duration:
    whole, nanoseconds = divmod(round(seconds * NS_PER_S), NS_PER_S)
    return Duration(sec=whole, nanosec=nanoseconds)
