"""Result files: YAML with a format version, written atomically and validated when read."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from calibration.result.camera import CameraIntrinsics
from calibration.result.camera_info import read_camera_info
from calibration.result.covariance import Matrix, is_covariance
from calibration.result.kinds import (
    Calibration,
    HandEye,
    Quality,
    SimulatedArm,
    TimeOffset,
    ToolWrench,
)
from robot_rl import __version__
from robot_rl.errors import CalibrationError
from robot_rl.run.directory.calibrations import FORMAT, VERSION, check_head, read_content
from robot_rl.system.atomic_file import write_result

KINDS: dict[str, type[Calibration]] = {
    "intrinsics": CameraIntrinsics,
    "hand_eye": HandEye,
    "time_offset": TimeOffset,
    "wrench": ToolWrench,
    "sim": SimulatedArm,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_T = TypeVar("_T", CameraIntrinsics, HandEye, TimeOffset, ToolWrench, SimulatedArm)


def save_result(result: Calibration, quality: Quality, path: Path) -> None:
    """Write a result and its quality.

    Raises:
        CalibrationError: if the result is not good enough to be used; no such file is written.
        RunDirectoryError: if the file cannot be written; an old one stays unchanged.
    """
    if not quality.good:
        raise CalibrationError(f"not good enough to be used, so {path} was not written: {quality.verdict}")
    content = {
        "format": FORMAT,
        "version": VERSION,
        "kind": _NAMES[type(result)],
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "made_by": f"robot_rl {__version__}",
        "quality": _plain(dataclasses.asdict(quality)),
        "result": _plain(dataclasses.asdict(result)),
    }
    write_result(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120))


def load_result(path: Path, kind: type[_T]) -> tuple[_T, Quality]:
    """Read a result of a known kind.

    Args:
        path: The file.
        kind: Class of the result, e.g. `HandEye`.

    Raises:
        CalibrationError: if the file is missing, damaged, not a result of this kind and version, or of a result that
            is not good enough to be used.
    """
    content = _read(path)
    name = _NAMES[kind]
    if content.get("kind") != name:
        raise CalibrationError(
            f"{path}: is a calibration of kind {content.get('kind')!r}, required is {name!r}; "
            f"make one: robot-rl calibrate {name.replace('_', '-')}"
        )
    try:
        result = TypeAdapter(kind).validate_python(content.get("result"))
        quality = TypeAdapter(Quality).validate_python(content.get("quality"))
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, d['loc'])) or 'result'}: {d['msg']}" for d in error.errors()]
        raise CalibrationError(f"{path}: is damaged: {'; '.join(lines)}; calibrate again") from error
    if wrong := [name for name, matrix in _covariances(result) if not is_covariance(matrix)]:
        raise CalibrationError(
            f"{path}: is damaged: {', '.join(wrong)}: must be symmetric, without negative eigenvalues; calibrate again"
        )
    if not quality.good:
        raise CalibrationError(f"{path}: is not good enough to be used: {quality.verdict}; calibrate again")
    return result, quality


def load_intrinsics(path: Path, *, camera: str | None = None, robot: str | None = None) -> CameraIntrinsics:
    """Read intrinsics from a result of intrinsics, from a hand-eye result, or from a `camera_info` file.

    Args:
        path: The file.
        camera: Name of the camera that is required; None accepts any.
        robot: Name of the arm and tool that a hand-eye result must have; None accepts any.

    Raises:
        CalibrationError: if the file is none of them, or is of another camera or robot.
    """
    content, _ = read_content(path)
    if "camera_matrix" in content:
        intrinsics = read_camera_info(path)
    elif content.get("kind") == _NAMES[HandEye]:
        hand_eye, _ = load_result(path, HandEye)
        hand_eye.require(robot=robot)
        intrinsics = hand_eye.intrinsics
    else:
        intrinsics, _ = load_result(path, CameraIntrinsics)
    intrinsics.require(camera=camera)
    return intrinsics


def _covariances(result: Calibration) -> Iterator[tuple[str, Matrix]]:
    """Yield the names and covariances of a result; those that are not known are left out."""
    if isinstance(result, HandEye):
        yield from ((f"intrinsics.{name}", matrix) for name, matrix in _covariances(result.intrinsics))
    if not isinstance(result, TimeOffset) and result.covariance:
        yield "covariance", result.covariance


def _read(path: Path) -> dict[str, Any]:
    content, _ = read_content(path)
    check_head(path, content)
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value
