"""Calibrates a camera with the arm, live: `CameraSession` over topics.

It takes pictures where the arm rests, says what to do next, with a person's consent drives the arm to poses inside the
safety box, and ends with files. All commands go through the safety node.
"""

from __future__ import annotations

import datetime
import math
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool

from calibration.camera.board import Board
from calibration.guided.recording import SightingRecorder
from calibration.guided.session import CameraSession, SessionSetup
from calibration.hand_eye.planner import SafetyBox
from calibration.result import load_intrinsics
from calibration.result.lens import LENS_MODELS
from robot_rl.config.nodes import CalibrateNodeConfig
from robot_rl.env.move_arm import Rest, Travel
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import CalibrationError, CommandRefusedError, ConfigError, GraphError, RobotLostError
from robot_rl.geometry import Pose
from ros_nodes.bridge.lockstep_clock import LockstepClock
from ros_nodes.bridge.ros_robot_io import RosRobotIO
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_job

ROUNDS = 4
"""How often poses are proposed before it concludes with what there is."""
MOST_LOST = 3
"""After how many poses in a row to which the arm did not come it gives up."""
LOOK = 0.5
"""Time between two looks at an arm that somebody else moves [s], also where time would pass faster."""
_FAR_POSITION, _FAR_TURN = 0.03, 0.2
"""From the pose that was proposed, which is said; the picture counts where the arm is [m, rad]."""


class _Frame(NamedTuple):
    stamp: int
    image: np.ndarray


class CalibrateNode(RobotNode):
    """The node; its parameters are those of `CalibrateNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("calibrate_node", **options)
        self.config = config = declare(self, CalibrateNodeConfig)
        refuse_changes(self, CalibrateNodeConfig)
        if not (len(config.box_low) == len(config.box_high) == 3 and np.less(config.box_low, config.box_high).all()):
            raise ConfigError(
                f"box_low {list(config.box_low)} and box_high {list(config.box_high)} have to be three numbers each, "
                "every one of the first below that of the second"
            )
        lens = (
            load_intrinsics(Path(config.intrinsics).expanduser(), camera=config.camera) if config.intrinsics else None
        )
        model = LENS_MODELS[config.model]
        self.session = CameraSession(
            SessionSetup(Board.parse(config.board), config.camera, config.mounting, config.robot, model, lens)
        )
        self._arrivals, self._consent = Arrivals(), threading.Event()
        if config.drive:
            self._consent.set()
        lockstep = bool(self.get_parameter("use_sim_time").value)
        self.lockstep = LockstepClock(self, self._arrivals) if lockstep else None
        """The clock of a simulated arm that waits for its readers; None on a real one."""
        self._clock = self.lockstep or self.wall
        ahead = math.inf if lockstep else Freshness.max_ahead
        freshness = Freshness(config.max_age, max_skew=config.max_age, max_ahead=ahead)
        self._io = RosRobotIO(self, self._clock, self._arrivals, freshness=freshness, lockstep=lockstep)
        self._frames: deque[_Frame] = deque(maxlen=8)
        self._shown_image = np.empty((0, 0, 3), np.uint8)  # taken while the arm was last at rest
        self._stopped = ""  # why the arm may not move
        profile = qos.LOCKSTEP_READING if lockstep else qos.READING
        self.subscribe(topics.IMAGE, self._take_image, profile, camera=config.camera)
        self.subscribe(topics.STOPPED, self._take_stopped)
        self.create_service(SetBool, topics.DRIVE_SERVICE[0], self._on_drive)
        if self.lockstep is not None:
            self.lockstep.frames = False
            self.lockstep.last_command = lambda: self._io.last_stamp
            self.lockstep.measured += [self._io.parts.complete_at, self._frame_came]

    def facts(self) -> Mapping[str, object]:
        """How far it is."""
        advice = self.session.advice
        facts: dict[str, object] = {"pictures that count": self.session.count, "may drive": self._consent.is_set()}
        return facts | ({"newest picture": advice.summary()} if advice is not None else {})

    def run(self) -> int:
        """Does it all; returns the exit code."""
        self._wait_for_graph()
        out = Path(self.config.out or "calibration")
        folder = out / f"{self.config.camera}_{datetime.datetime.now():%Y%m%d-%H%M%S.%f}"[:-4]
        recorder = SightingRecorder(folder)
        self._say(f"pictures and poses are kept in {folder}")
        try:
            self._collect(recorder)
            lines, code = self.session.write_results(out)
        except (KeyboardInterrupt, CalibrationError, RobotLostError):
            if self.session.count:
                self._say(
                    f"the {self.session.count} pictures in {folder} are kept: `robot-rl calibrate` reads them, too"
                )
            raise
        for line in lines:
            self._say(line)
        return code

    # ------------------------------------------------------------- collecting

    def _collect(self, recorder: SightingRecorder) -> None:
        config, session = self.config, self.session
        travel = Travel(self._io, self._clock, config.speed, config.turn_rate, self._check, self._shown)
        start = travel.rest()
        self._picture(recorder, start)
        box = SafetyBox(
            np.array(config.box_low), np.array(config.box_high), start.T_base_tcp.quaternion, config.max_turn
        )
        rounds = 0
        while rounds < ROUNDS and not session.complete(config.views):
            if not (self._consent.is_set() and session.count):
                self._by_hand(recorder, travel)
                continue
            poses = session.propose(box, max(4, config.views - session.count), seed=config.seed + rounds)
            self._say(f"{len(poses)} poses inside the safety box are proposed; the arm drives to them")
            rounds += self._drive(recorder, travel, poses)

    def _drive(self, recorder: SightingRecorder, travel: Travel, poses: list[Pose]) -> bool:
        """To each of the poses; False if the consent has ended before."""
        lost = 0
        for number, pose in enumerate(poses, 1):
            try:
                rest = travel.go(pose)
            except CommandRefusedError as error:
                self._say(f"{error}; the arm holds")
                return False
            except RobotLostError as error:
                lost += 1
                self.problem(f"pose {number} of {len(poses)}: {error}")
                if lost == MOST_LOST:
                    raise
                continue
            lost = 0
            off = (pose.inverse() @ rest.T_base_tcp).vector()
            if np.linalg.norm(off[:3]) > _FAR_POSITION or np.linalg.norm(off[3:]) > _FAR_TURN:
                self._say(f"pose {number} of {len(poses)} was not reached; the picture counts where the arm is")
            self._picture(recorder, rest)
        return True

    def _by_hand(self, recorder: SightingRecorder, travel: Travel) -> None:
        """Takes a picture wherever somebody else brings the arm to rest, until there is consent, or enough of them."""
        self._say("bring the arm by hand to where the camera sees the board, and hold it still")
        if not self._consent.is_set():
            service = self.resolve_service_name(topics.DRIVE_SERVICE[0])
            self._say(f"or have it driven: ros2 service call {service} std_srvs/srv/SetBool '{{data: true}}'")
        while not (self._consent.is_set() and self.session.count) and not self.session.complete(self.config.views):
            try:
                rest = travel.rest()
            except GraphError:
                raise
            except RobotLostError:
                continue  # it is being moved
            if self.session.is_new(rest.T_base_tcp):
                self._picture(recorder, rest)
            else:
                self._arrivals.wait_for(self._consent.is_set, LOOK)

    def _picture(self, recorder: SightingRecorder, rest: Rest) -> None:
        name = f"view_{recorder.count:03d}.png"
        recorder.add(self._shown_image, name, rest.T_base_tcp)
        self._say(f"{name}: {self.session.add(self._shown_image, name, rest.T_base_tcp).summary()}")

    # ---------------------------------------------------------------- topics

    def _wait_for_graph(self) -> None:
        node, camera = self, self.config.camera
        image = node.resolve_topic_name(topics.IMAGE.name.format(camera=camera))
        pose = node.resolve_topic_name(topics.POSE.name)

        def wrong() -> list[str]:
            reasons = [f"nobody publishes {name}" for name in (image, pose) if not node.count_publishers(name)]
            if not self._io.listeners():
                reasons.append("nobody listens to commands; is safety_node running?")
            if self.lockstep is not None and not self.lockstep.now():
                reasons.append("nobody says what time it is; is sim_node running in lockstep?")
            if self.lockstep is None and not self._frames:
                reasons.append(f"no frame has come on {image}")
            return reasons

        if not self._arrivals.wait_for(lambda: not wrong(), self.config.graph_timeout):
            raise GraphError(f"after {self.config.graph_timeout:g} s: {'; '.join(wrong())}")

    def _check(self) -> None:
        """Raises `CommandRefusedError` where the arm may not be driven."""
        if self._stopped:
            self._consent.clear()  # whatever it was, a person shall look before it goes on
            raise CommandRefusedError(f"the safety node has stopped the arm: {self._stopped}")
        if not self._consent.is_set():
            raise CommandRefusedError("the consent was taken back")

    def _shown(self, since: int, until: int) -> bool:
        """Whether a frame was taken in this time [ns]. Where time waits for us, one is asked for."""
        frame = next((frame for frame in reversed(list(self._frames)) if since <= frame.stamp <= until), None)
        if self.lockstep is not None:
            self.lockstep.frames = frame is None
        if frame is not None:
            self._shown_image = frame.image
        return frame is not None

    def _frame_came(self, stamp: int) -> bool:
        asked = self.lockstep is not None and self.lockstep.frames
        return not asked or any(frame.stamp >= stamp for frame in list(self._frames))

    def _take_image(self, message: Image) -> None:
        self._frames.append(_Frame(convert.stamp_of(message.header.stamp), convert.image_of(message)))
        self._arrivals.ring()

    def _take_stopped(self, message: String) -> None:
        self._stopped = message.data

    def _on_drive(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data:
            self._consent.set()
        else:
            self._consent.clear()
        self._arrivals.ring()
        response.success = True
        response.message = "the arm is driven from now on" if request.data else "the arm is driven no more"
        return response

    def _say(self, text: str) -> None:
        self.get_logger().info(text)


def main() -> int:
    """Runs the node."""
    return run_job(CalibrateNode, lambda node, _: node.run())


if __name__ == "__main__":
    sys.exit(main())
