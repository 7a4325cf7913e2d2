"""Cameras behind topics: `CameraFeed` over `Image` and `CameraInfo`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from calibration.result import CameraIntrinsics, HandEye, load_intrinsics, load_result
from robot_rl.camera.crop import Crop, make_crop
from robot_rl.camera.feed import CameraFeed, FeedLimits
from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import CameraNodeConfig
from robot_rl.errors import ConfigError
from robot_rl.run.directory.calibrations import read_record
from ros_nodes.drivers.topic_camera import camera_opener
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import CameraCalibration, to_message
from ros_nodes.node.parameters import declare, named_values, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run_with_threads


class CameraNode(RobotNode):
    """The node; its parameters are those of `CameraNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("camera_node", **options)
        self.config = config = declare(self, CameraNodeConfig)
        refuse_changes(self, CameraNodeConfig)
        sources = named_values("cameras", config.cameras)
        if not sources:
            raise ConfigError("no camera is named; e.g. -p cameras:=\"['wrist=realsense:', 'front=uvc:/dev/video0']\"")
        if len(config.depth_range) != 2 or not config.depth_range[0] < config.depth_range[1]:
            raise ConfigError(f"depth_range has to be two rising distances [m], got {list(config.depth_range)}")
        crops = named_values("crops", config.crops, sources)
        files = named_values("calibrations", config.calibrations, sources)
        self.cameras = [
            _Camera(self, name, source, crops.get(name), files.get(name)) for name, source in sources.items()
        ]
        mounts = {camera.name: camera.mount for camera in self.cameras if camera.mount is not None}
        self.transforms().cameras(mounts)
        for camera in self.cameras:
            camera.feed.start()

    def destroy_node(self) -> None:
        """Lets the cameras go first."""
        for camera in self.cameras:
            camera.feed.close()
        super().destroy_node()

    def health(self) -> tuple[bytes, str]:
        """Return what is wrong with the cameras, and the cure."""
        faults = [fault for camera in self.cameras if (fault := camera.feed.state().fault) is not None]
        if faults:
            return DiagnosticStatus.ERROR, "; ".join(faults)
        due = self.config.capture_rate
        rates = {camera.name: camera.feed.state().rate for camera in self.cameras}
        if slow := [f"{name} ({rate:.1f} of {due:g} Hz)" for name, rate in rates.items() if rate < 0.8 * due]:
            cure = "lower capture_rate or the captured size, give it more light or a USB port of its own"
            return DiagnosticStatus.WARN, f"too slow: camera {', '.join(slow)}; {cure}"
        return DiagnosticStatus.OK, "ok"

    def facts(self) -> Mapping[str, object]:
        """Rate, age, drops and delay of each camera."""
        return {f"{camera.name} {key}": value for camera in self.cameras for key, value in camera.facts().items()}


class _Camera:
    """One camera: its feed, its view, its lens, its topics."""

    def __init__(self, node: CameraNode, name: str, source: str, crop: str | None, file: str | None) -> None:
        config = node.config
        self.name, self._frame = name, topics.IMAGE.frame.format(camera=name)
        self._wall, self._size = node.wall, config.image_size
        self._crop = _crop_of(name, crop) if crop is not None else None
        self._file = Path(file).expanduser() if file is not None else None
        self._intrinsics = _lens_of(self._file, config.robot)
        self._image, self._info = (
            node.publisher(topics.IMAGE, camera=name),
            node.publisher(topics.CAMERA_INFO, camera=name),
        )
        self._calibration = node.publisher(topics.CALIBRATION, camera=name)
        record = read_record(f"{name}={self._file}") if self._file is not None else None
        posed = record if record is not None and record.kind == "hand_eye" else None
        self.mount = load_result(Path(posed.path), HandEye)[0].mount if posed is not None else None
        """Where it is fixed, if it is calibrated."""
        self._calibration.publish(to_message(CameraCalibration(record, self.mount)))
        self._captured: tuple[int, int] | None = None  # size of the frames that view and lens are for [px]
        self._view: Crop | None = None
        self._lens: CameraIntrinsics | None = None
        self._delay = 0.0
        wanted = CaptureFormat(config.capture_width, config.capture_height, config.capture_rate)
        limits = FeedLimits(config.capture_rate, config.frozen_after, config.silent_after, config.retry)
        low, high = config.depth_range
        make = camera_opener(node, source, wanted, (low, high))
        self.feed = CameraFeed(name, make, self._take, node.problem, limits, node.wall)
        if self._intrinsics is not None and not source.startswith("realsense:"):
            self._intrinsics.require(camera=name)  # the others have a serial number, which is known once they are open

    def facts(self) -> dict[str, object]:
        """Figures for the diagnostics."""
        state = self.feed.state()
        return {
            "rate_hz": state.rate,
            "age_s": state.age,
            "frames": state.frames,
            "dropped": state.dropped,
            "opened": state.opened,
            "capture_to_publish_ms": 1e3 * self._delay,
            "calibration": str(self._file) if self._file is not None else "none",
        }

    def _take(self, frame: Frame) -> None:
        view = self._view_of((frame.image.shape[1], frame.image.shape[0]))
        image = view.apply(frame.image)
        self._image.publish(convert.image_message(frame.stamp, image, self._frame))
        self._info.publish(convert.lens_message(frame.stamp, image.shape[:2], self._lens, self._frame))
        self._delay = (self._wall.now() - frame.stamp) / NS_PER_S

    def _view_of(self, captured: tuple[int, int]) -> Crop:
        """Return what is shown of frames of this size.

        Raises:
            ConfigError: if the crop is not inside them.
            CalibrationError: if the calibration is of another camera or resolution.
        """
        if self._view is None or captured != self._captured:
            view = make_crop(captured, self._size, self._crop)
            if self._intrinsics is not None:
                serial = self.feed.serial
                camera = serial if serial and self._intrinsics.camera == serial else self.name
                self._intrinsics.require(camera=camera, size=captured)
                self._lens = self._intrinsics.cropped(view.crop, view.size)
            self._view, self._captured = view, captured
        return self._view


def _lens_of(file: Path | None, robot: str) -> CameraIntrinsics | None:
    return load_intrinsics(file, robot=robot or None) if file is not None else None


def _crop_of(name: str, text: str) -> tuple[int, int, int, int]:
    if not re.fullmatch(r"\d+,\d+,\d+,\d+", text):
        raise ConfigError(f"crops: {name} has to be LEFT,TOP,WIDTH,HEIGHT in whole pixels, got {text!r}")
    left, top, width, height = map(int, text.split(","))
    return left, top, width, height


def main() -> int:
    """Run the node."""
    return run_with_threads(CameraNode)


if __name__ == "__main__":
    sys.exit(main())
