"""The node that calibrates a camera with the arm, live: `CameraSession` over topics.

It takes pictures where the arm rests, logs what to do next, with a person's consent drives the arm to poses inside the
safety box, and ends with files. All commands go through the safety node.
"""

from __future__ import annotations

import datetime
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rclpy.task import Future
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool

from calibration.guided.collect import CollectionPlan, PictureCollector, Station
from calibration.guided.session import CameraSession, SessionSetup
from robot_rl.config.nodes import CalibrateNodeConfig
from robot_rl.env.move_arm import Travel
from robot_rl.errors import CalibrationError, CommandRefusedError, ConfigError, GraphError, RobotLostError
from ros_nodes.bridge.lockstep_clock import LockstepClock
from ros_nodes.bridge.ros_robot_io import RosRobotIO, freshness_of
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_job
from ros_nodes.node.trigger_action import TriggerAction

DRIVE_POLL = 0.2
"""How often it looks whether the arm is still driven [s]."""


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
        self.session = CameraSession(
            SessionSetup.parse(
                config.board, config.camera, config.mounting, config.robot, config.model, config.intrinsics
            )
        )
        self._arrivals, self._consent = Arrivals(), threading.Event()
        if config.drive:
            self._consent.set()
        lockstep = config.lockstep
        self.lockstep = LockstepClock(self, self._arrivals) if lockstep else None
        """The clock of a simulated arm that waits for its readers; None on a real one."""
        self._clock = self.lockstep or self.wall
        freshness = freshness_of(max_age=config.max_age, max_skew=config.max_age, lockstep=lockstep)
        self._io = RosRobotIO(self, self._clock, self._arrivals, freshness=freshness, lockstep=lockstep)
        self._frames: deque[_Frame] = deque(maxlen=8)
        self._shown_image = np.empty((0, 0, 3), np.uint8)  # taken while the arm was last at rest
        self._stopped = ""  # why the arm may not move
        profile = qos.LOCKSTEP_READING if lockstep else qos.READING
        self.subscribe(topics.IMAGE, self._receive_image, profile, camera=config.camera)
        self.subscribe(topics.STOPPED, self._receive_stopped)
        self.create_service(SetBool, topics.DRIVE_SERVICE[0], self._on_drive)
        self._action = TriggerAction(
            self, topics.DRIVE_SERVICE[0], self._drive, doing=self._progress, cancel=self._withdraw
        )
        if self.lockstep is not None:
            self.lockstep.frames = False
            self.lockstep.last_command = lambda: self._io.last_stamp
            self.lockstep.measured += [self._io.parts.complete_at, self._frame_came]

    def facts(self) -> Mapping[str, object]:
        """Return the number of pictures, the consent, and the advice after the newest picture."""
        advice = self.session.advice
        facts: dict[str, object] = {"pictures that count": self.session.count, "may drive": self._consent.is_set()}
        return facts | ({"newest picture": advice.summary()} if advice is not None else {})

    def run(self) -> int:
        """Calibrate the camera and return the exit code."""
        self._wait_for_graph()
        out = Path(self.config.out or "calibration").expanduser()
        folder = out / f"{self.config.camera}_{datetime.datetime.now():%Y%m%d-%H%M%S.%f}"[:-4]
        collector = PictureCollector(self.session, folder, self._station(), self._plan())
        self._notify(f"pictures and poses are kept in {folder}")
        try:
            collector.run()
            lines, code = self.session.write_results(out)
        except (KeyboardInterrupt, CalibrationError, RobotLostError):
            if self.session.count:
                self._notify(
                    f"the {self.session.count} pictures in {folder} are kept: `robot-rl calibrate` reads them, too"
                )
            raise
        for line in lines:
            self._notify(line)
        return code

    def _plan(self) -> CollectionPlan:
        config = self.config
        return CollectionPlan(
            config.views, np.array(config.box_low), np.array(config.box_high), config.max_turn, config.seed
        )

    def _station(self) -> Station:
        return Station(
            Travel(self._io, self._clock, self.config.speed, self.config.turn_rate, self._check, self._shown),
            picture=lambda: self._shown_image,
            consent=self._consent,
            wait=lambda timeout: self._arrivals.wait_for(self._consent.is_set, timeout),
            invite=self._invite,
            notify=self._notify,
            problem=self.problem,
        )

    def _invite(self) -> str:
        service = self.resolve_service_name(topics.DRIVE_SERVICE[0])
        return f"or have it driven: ros2 service call {service} std_srvs/srv/SetBool '{{data: true}}'"

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
        """Raise `CommandRefusedError` where the arm may not be driven."""
        if self._stopped:
            self._consent.clear()  # whatever it was, a person shall look before it goes on
            raise CommandRefusedError(f"the safety node has stopped the arm: {self._stopped}")
        if not self._consent.is_set():
            raise CommandRefusedError("the consent was taken back")

    def _shown(self, since: int, until: int) -> bool:
        """Return whether a frame was taken in this time [ns]; in lockstep, request one."""
        frame = next((frame for frame in reversed(list(self._frames)) if since <= frame.stamp <= until), None)
        if self.lockstep is not None:
            self.lockstep.frames = frame is None
        if frame is not None:
            self._shown_image = frame.image
        return frame is not None

    def _frame_came(self, stamp: int) -> bool:
        requested = self.lockstep is not None and self.lockstep.frames
        return not requested or any(frame.stamp >= stamp for frame in list(self._frames))

    def _receive_image(self, message: Image) -> None:
        self._frames.append(_Frame(convert.stamp_of(message.header.stamp), convert.image_of(message)))
        self._arrivals.ring()

    def _receive_stopped(self, message: String) -> None:
        self._stopped = message.data

    def _on_drive(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data:
            self._permit()
        else:
            self._withdraw()
        response.success = True
        response.message = "the arm is driven from now on" if request.data else "the arm is driven no more"
        return response

    async def _drive(self) -> tuple[bool, str]:
        """Have the arm driven until the pictures are complete; return whether they are, and how many there are."""
        self._permit()
        ended: Future[None] = Future()
        timer = self.timer(DRIVE_POLL, lambda: None if self._drives() else ended.set_result(None))
        await ended
        self.destroy_timer(timer)
        return self.session.count >= self.config.views, self._progress()

    def _drives(self) -> bool:
        return self._consent.is_set() and self.session.count < self.config.views

    def _progress(self) -> str:
        return f"{self.session.count} of {self.config.views} pictures"

    def _permit(self) -> None:
        self._consent.set()
        self._arrivals.ring()

    def _withdraw(self) -> None:
        self._consent.clear()
        self._arrivals.ring()

    def _notify(self, text: str) -> None:
        self.get_logger().info(text)


def main() -> int:
    """Run the node."""
    return run_job(CalibrateNode, lambda node, _: node.run())


if __name__ == "__main__":
    sys.exit(main())
