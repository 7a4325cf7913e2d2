"""Every topic and service, in one table: nodes take names from it, and `docs/ros2.md` shows it.

Names are relative, so that a namespace or a remapping moves them. Each of several arms has those in `EACH_ARM` below
its own name, e.g. `left/current_pose`; commands are one message for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PolygonStamped, PoseStamped, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, JointState, Joy, JoyFeedback
from std_msgs.msg import Bool, Header, String, UInt8MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from ros_nodes.interface import qos
from ros_nodes.interface.frames import CELL, of_arm


def below(arm: str, name: str) -> str:
    """Return the name of what one of several arms has for itself, e.g. `left/wrench`; a single arm has no name."""
    return f"{arm}/{name}" if arm else name


class Topic(NamedTuple):
    """A topic.

    Attributes:
        name: Relative to the namespace; `{camera}` stands for a camera's name.
        type: Of its messages.
        qos: Of its publisher.
        rate: How often, in words.
        frame: Of its header.
        about: What it carries.
    """

    name: str
    type: type[Any]
    qos: QoSProfile
    rate: str
    frame: str
    about: str

    def of_arm(self, arm: str) -> Topic:
        """Return the topic as one of several arms has it; a single arm, without a name, has this one."""
        return self._replace(name=below(arm, self.name), frame=of_arm(self.frame, arm))

    def of_arms(self, arms: Collection[str]) -> Topic:
        """Return the topic as these arms have it together, in the frame of their cell; without names, as it is."""
        return self._replace(frame=CELL) if arms else self


POSE = Topic("current_pose", PoseStamped, qos.MEASUREMENT, "100 Hz", "base", "measured pose of the tcp")
TWIST = Topic("current_twist", TwistStamped, qos.MEASUREMENT, "100 Hz", "base", "measured twist of the tcp")
WRENCH = Topic("wrench", WrenchStamped, qos.MEASUREMENT, "100 Hz", "tcp", "wrench on the tool, tared and filtered")
JOINTS = Topic("joint_states", JointState, qos.MEASUREMENT, "100 Hz", "", "position and velocity of the arm's joints")
TOOL = Topic(
    "tool_state",
    JointState,
    qos.MEASUREMENT,
    "100 Hz",
    "tcp",
    "gripper width; peak of the force since the last message",
)
MEASURES = Topic(
    "robot/measures", String, qos.LATCHED, "once", "", "what the arm measures, in words with spaces between them"
)
ROBOT_DESCRIPTION = Topic(
    "robot_description", String, qos.LATCHED, "once", "", "the simulated arm's links and joints (URDF)"
)
IMAGE = Topic("camera/{camera}/image_raw", Image, qos.MEASUREMENT, "30 Hz", "{camera}_optical_frame", "RGB frames")
CAMERA_INFO = Topic(
    "camera/{camera}/camera_info", CameraInfo, qos.MEASUREMENT, "30 Hz", "{camera}_optical_frame", "camera matrix"
)
CALIBRATION = Topic(
    "camera/{camera}/calibration",
    String,
    qos.LATCHED,
    "once",
    "",
    "its calibration and where it is (JSON); runs record it",
)
COMMAND = Topic(
    "command",
    MultiDOFJointTrajectory,
    qos.COMMAND,
    "10 Hz",
    "base",
    "set-point of tcp and gripper, and feed-forward wrench, from the actor; `time_from_start` is how long it counts, "
    "no points means stop",
)
SAFE_COMMAND = Topic(
    "safe_command", MultiDOFJointTrajectory, qos.COMMAND, "10 Hz", "base", "the same within all limits, for the arm"
)
JOY = Topic("joy", Joy, qos.EVENT, "by the device", "", "raw readings of the operator's device")
JOY_FEEDBACK = Topic(
    "joy/set_feedback", JoyFeedback, qos.EVENT, "with a call", "", "`joy_node` has the operator's gamepad rumble"
)
TELEOP_TWIST = Topic(
    "teleop/twist", TwistStamped, qos.EVENT, "by the device", "", "raw readings of the operator's device, as a twist"
)
INTERVENTION = Topic(
    "intervention",
    Joy,
    qos.EVENT,
    "as the device",
    "tcp",
    "the operator's action, after the device map; axes: x y z roll pitch yaw, how fast the gripper opens where that is "
    "not at full speed, and a wrench where there is one; buttons: in control, close, open",
)
HEAD = Topic("task/head", String, qos.LATCHED, "once", "", "the task's facts (JSON)")
ESTIMATES = Topic("task/estimates", String, qos.EVENT, "100 Hz", "", "the task's part of the observation (JSON)")
VERDICT = Topic("task/verdict", String, qos.EVENT, "once a step", "", "success, failure, reward (JSON)")
JUDGEMENT = Topic(
    "operator/judgement", String, qos.EVENT, "by hand", "", "a person on the running episode, or a recorded one (JSON)"
)
QUESTION = Topic(
    "operator/question", String, qos.LATCHED, "on change", "", "what the actor asks the person; empty: nothing"
)
CALL = Topic(
    "operator/call", String, qos.LATCHED, "on change", "", "why the policy needs a person's help; empty: it does not"
)
HEARTBEAT = Topic(
    "heartbeat/{node}",
    Header,
    qos.HEARTBEAT,
    "10 Hz each",
    "",
    "callbacks are served, the process lives (DDS); `frame_id`: the node, or why it passes nothing on",
)
ESTOP = Topic("estop", Bool, qos.EVENT, "by hand", "", "true latches the emergency stop")
STOPPED = Topic("safety/stopped", String, qos.LATCHED, "on change", "", "why the arm holds; empty while it may move")
SET_POINT = Topic(
    "safety/set_point", PoseStamped, qos.EVENT, "10 Hz", "base", "the tcp's part of `safe_command`, for views"
)
BOX = Topic("safety/box", PolygonStamped, qos.LATCHED, "once", "base", "edges of the safety box, for views")
DIAGNOSTICS = Topic("/diagnostics", DiagnosticArray, qos.EVENT, "1 Hz each", "", "rates, ages, skew, drops, refusals")
TO_LEARNER = Topic("link/to_learner", UInt8MultiArray, qos.STREAM, "every step", "", "steps; checked, acknowledged")
TO_ACTOR = Topic("link/to_actor", UInt8MultiArray, qos.STREAM, "every step", "", "parameters and progress")
CLOCK = Topic("/clock", Clock, qos.EVENT, "lockstep only", "", "simulated time")
ADVANCE = Topic("lockstep/advance", String, qos.EVENT, "lockstep only", "", "time shall go on until then (JSON)")
ADVANCED = Topic("lockstep/advanced", String, qos.LATCHED, "lockstep only", "", "time stands there now (JSON)")

TOPICS = tuple(value for value in globals().values() if isinstance(value, Topic))
MEASURED = (POSE, TWIST, WRENCH, JOINTS)
"""What every arm publishes that measures forces."""
EACH_ARM = (*MEASURED, TOOL, MEASURES, ROBOT_DESCRIPTION, INTERVENTION, SET_POINT, BOX)
"""Topics that each of several arms has for itself."""

RESET = ("task/reset", Trigger)
"""Starts the episode of the parameter `episode_seed`; answers when the arm is at its start pose."""
GO_ON = ("task/go_on", Trigger)
"""In a practice: starts the episode of the parameter `episode_seed` in the scene as it is, at the arm's start pose."""
TIDY = ("task/tidy", Trigger)
"""In a practice: moves what a failed episode has left out of reach; answers with the stamp [ns] of its end."""
SCENE = ("task/scene", Trigger)
"""In a practice: the answer has the scene, and why each task cannot begin in it (JSON)."""
READY_SERVICE = ("task/ready", Trigger)
"""On a real robot: the scene is ready, the episode may begin."""
SUCCESS_SERVICE, FAILURE_SERVICE = ("task/success", Trigger), ("task/failure", Trigger)
"""On a real robot: a person's judgement of the running episode."""
OPERATOR_RESET = ("operator/reset", SetBool)
"""Tells the operator of a new episode; true: demonstrate it."""
TARE_SERVICE = ("robot/tare", Trigger)
"""Takes off what the wrench sensor says now: the tool must touch nothing."""
RECOVER_SERVICE = ("robot/recover", Trigger)
"""A person's consent that a stopped arm recovers, e.g. after a reflex; it then holds, and follows commands again."""
ARM_FAULT = "the arm would not obey: "
"""Beginning of `safety/stopped` while the arm itself has a fault; the service above ends it, where the driver can."""


def fault_of(arm: str) -> str:
    """Return that beginning for one of several arms; a single one, without a name, has the shorter one."""
    return f"{ARM_FAULT}arm {arm}: " if arm else ARM_FAULT


def recover_service(stopped: str) -> str:
    """Return the service that ends the fault of which `safety/stopped` tells: that of the arm that it names."""
    named = re.match(rf"{ARM_FAULT}arm (\w+): ", stopped)
    return below(named[1] if named else "", RECOVER_SERVICE[0])


DRIVE_SERVICE = ("calibrate/drive", SetBool)
"""A person's consent that the arm is driven to the poses of a calibration; false takes it back, and the arm holds."""
RECORD_SERVICE = ("recorder/record", SetBool)
"""True begins a bag of all topics, false completes it; the answer names the file."""
STOP_SERVICE = ("safety/estop", Trigger)
"""Latches the emergency stop."""
RELEASE_SERVICE = ("safety/release", Trigger)
"""Releases it, once its cause is gone."""
MAY_MOVE_SERVICE = ("safety/may_move", Trigger)
"""Whether commands pass now; else the answer has the reason. It changes nothing."""
