"""Files of intrinsics in the `camera_info` YAML format of ROS (`camera_calibration_parsers`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from calibration.result.camera import CameraIntrinsics
from calibration.result.lens import COEFFICIENTS
from robot_rl.errors import CalibrationError
from robot_rl.run.directory.calibrations import read_content
from robot_rl.system.atomic_file import write_result

_MODELS = {**{name: name for name in COEFFICIENTS}, "fisheye": "equidistant"}


def write_camera_info(intrinsics: CameraIntrinsics, path: Path) -> None:
    """Write a file that ROS's camera drivers load.

    Raises:
        RunDirectoryError: if the file cannot be written.
    """
    K = intrinsics.matrix
    content = {
        "image_width": intrinsics.width,
        "image_height": intrinsics.height,
        "camera_name": intrinsics.camera,
        "camera_matrix": _matrix(K),
        "distortion_model": intrinsics.model,
        "distortion_coefficients": _matrix(np.array([intrinsics.distortion])),
        "rectification_matrix": _matrix(np.eye(3)),
        "projection_matrix": _matrix(np.column_stack((K, np.zeros(3)))),
    }
    write_result(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None))


def read_camera_info(path: Path, *, camera: str | None = None) -> CameraIntrinsics:
    """Read a `camera_info` file; the uncertainty of its parameters is not known.

    Args:
        path: The file.
        camera: Name of the camera; None uses the name in the file.

    Raises:
        CalibrationError: if the file cannot be read, or `CameraIntrinsics` does not support its model.
    """
    content, _ = read_content(path)
    try:
        matrix = np.array(content["camera_matrix"]["data"], dtype=float).reshape(3, 3)
        model = str(content["distortion_model"])
        if model not in _MODELS:
            raise CalibrationError(f"{path}: distortion_model is {model!r}; valid: {', '.join(_MODELS)}")
        coefficients = [float(x) for x in content["distortion_coefficients"]["data"]]
        if model == "plumb_bob" and len(coefficients) == 4:
            coefficients.append(0.0)  # OpenCV leaves k3 out where it is 0
        if matrix[0, 1] != 0.0:
            raise CalibrationError(f"{path}: camera_matrix has a skew of {matrix[0, 1]}; only 0 is supported")
        return CameraIntrinsics(
            camera=camera or str(content["camera_name"]),
            width=content["image_width"],
            height=content["image_height"],
            model=_MODELS[model],
            fx=matrix[0, 0],
            fy=matrix[1, 1],
            cx=matrix[0, 2],
            cy=matrix[1, 2],
            distortion=tuple(coefficients),
        )
    except ValidationError as error:
        raise CalibrationError(f"{path}: {'; '.join(d['msg'] for d in error.errors())}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise CalibrationError(f"{path}: is no camera_info file: {type(error).__name__}: {error}") from error


def _matrix(values: np.ndarray) -> dict[str, Any]:
    rows, cols = values.shape
    return {"rows": rows, "cols": cols, "data": [float(x) for x in values.ravel()]}
