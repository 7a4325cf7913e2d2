"""Recordings for a calibration: folders of pictures, and tables (CSV) with a header.

The first line of a table names its columns. Poses are `x y z` [m] and `qw qx qy qz`, of the tcp in the base frame;
times are `stamp` [ns]. Other columns are ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from calibration.arm.trajectory import Trajectory
from robot_rl.errors import DataError
from robot_rl.geometry import Pose
from robot_rl.system.atomic_file import writing

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")
POSE_COLUMNS = ("x", "y", "z", "qw", "qx", "qy", "qz")
_MAX_STAMP = 2**63 - 1
"""Largest stamp [ns]: stamps are 64-bit integers."""


def picture_files(paths: Iterable[Path]) -> list[Path]:
    """List the pictures among files and in folders; those of a folder are sorted by name.

    Raises:
        DataError: if there are none, or a path does not exist.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(file for file in path.iterdir() if file.suffix.lower() in PICTURES)
        elif path.is_file():
            files.append(path)
        else:
            raise DataError(f"{path}: no such file or folder")
    if not files:
        raise DataError(f"no pictures ({', '.join(PICTURES)}) in {', '.join(map(str, paths)) or 'the given paths'}")
    return files


def read_picture(path: Path) -> np.ndarray:
    """Read a picture as RGB, uint8, shape (height, width, 3).

    Raises:
        DataError: if it cannot be read.
    """
    try:
        content = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    picture = cv2.imdecode(content, cv2.IMREAD_COLOR) if len(content) else None
    if picture is None:
        raise DataError(f"{path}: is no picture, or damaged")
    return np.ascontiguousarray(picture[:, :, ::-1])


def read_table(
    path: Path, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with their line numbers; a row has those of the `optional` columns that the table has.

    Raises:
        DataError: if it cannot be read or lacks a column.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, skipinitialspace=True)
            if missing := [name for name in columns if name not in (rows.fieldnames or ())]:
                raise DataError(
                    f"{path}: lacks the columns {', '.join(missing)}; its first line must name at least "
                    f"{','.join(columns)}"
                )
            present = [*columns, *(name for name in optional if name in (rows.fieldnames or ()))]
            for row in rows:
                yield rows.line_num, {key: (row[key] or "").strip() for key in present}
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; it must have the columns {','.join(columns)}") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def read_poses(path: Path) -> dict[str, Pose]:
    """Read poses of the tcp by the name of the picture, from a table `image,x,y,z,qw,qx,qy,qz`.

    Raises:
        DataError: if a row is wrong, or a picture appears twice.
    """
    poses: dict[str, Pose] = {}
    for line, row in read_table(path, ("image", *POSE_COLUMNS)):
        name = row.pop("image")
        if name in poses:
            raise DataError(f"{path}, line {line}: {name} appears twice")
        numbers = np.array([_number(path, line, key, text) for key, text in row.items()])
        poses[name] = pose_of(numbers, f"{path}, line {line}")
    return poses


def read_pose_stamps(path: Path) -> dict[str, int]:
    """Read the stamps [ns] of the poses of `read_poses` by the name of the picture; empty without a column `stamp`.

    Raises:
        DataError: if a row is wrong, or two pictures have the same stamp.
    """
    stamps: dict[str, int] = {}
    for line, row in read_table(path, ("image",), ("stamp",)):
        if "stamp" not in row:
            return {}
        stamp = _stamp(path, line, row["stamp"])
        if stamp in stamps.values():
            raise DataError(f"{path}, line {line}: stamp {stamp} appears twice; pictures are taken one after the other")
        stamps[row["image"]] = stamp
    return stamps


def split_at(names: Sequence[str], first: str) -> list[list[str]]:
    """Divide pictures into those before one of them, and those from it on.

    Raises:
        DataError: if it is none of them, or the first.
    """
    if first not in names[1:]:
        raise DataError(
            f"--split is {first!r}, must be a picture of the recording and not the first; these are "
            f"{', '.join(names[:3])} ... {names[-1]}"
        )
    place = names.index(first)
    return [list(names[:place]), list(names[place:])]


class SightingRecorder:
    """Writer of a folder that `robot-rl calibrate hand-eye` reads: pictures, and `poses.csv`.

    Args:
        folder: New folder to create.

    Raises:
        RunDirectoryError: if the folder exists or cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        """Number of pictures in the folder."""
        with writing(folder):
            folder.mkdir(parents=True)
            self._write("x", ("image", *POSE_COLUMNS))

    def add(self, image: np.ndarray, name: str, T_base_tcp: Pose) -> None:
        """Write a picture and its pose of the arm.

        Args:
            image: RGB, uint8, shape (height, width, 3).
            name: Name of the picture file.
            T_base_tcp: Pose of the resting arm when the picture was taken.
        """
        with writing(self.folder):
            (self.folder / name).write_bytes(cv2.imencode(".png", image[:, :, ::-1])[1].tobytes())
            self._write("a", (name, *T_base_tcp.position.tolist(), *T_base_tcp.quaternion.tolist()))
        self.count += 1

    def _write(self, mode: str, row: Sequence[object]) -> None:
        with open(self.folder / "poses.csv", mode, newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(row)


def read_frames(path: Path) -> dict[str, int]:
    """Read the stamps [ns] of pictures by name, from a table `image,stamp`.

    Raises:
        DataError: if a row is wrong, or a picture appears twice.
    """
    frames: dict[str, int] = {}
    for line, row in read_table(path, ("image", "stamp")):
        if row["image"] in frames:
            raise DataError(f"{path}, line {line}: {row['image']} appears twice")
        frames[row["image"]] = _stamp(path, line, row["stamp"])
    return frames


def read_trajectory(path: Path) -> Trajectory:
    """Read a trajectory from a table `stamp,x,y,z,qw,qx,qy,qz` in order of time.

    Raises:
        DataError: if a row is wrong.
        CalibrationError: if the stamps do not rise.
    """
    stamps, poses = [], []
    for line, row in read_table(path, ("stamp", *POSE_COLUMNS)):
        stamps.append(_stamp(path, line, row.pop("stamp")))
        numbers = np.array([_number(path, line, key, text) for key, text in row.items()])
        poses.append(pose_of(numbers, f"{path}, line {line}"))
    return Trajectory(np.array(stamps, np.int64), poses)


def read_wrenches(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read orientations of a wrench sensor in the base frame, shape (n, 3, 3), and its readings [N, Nm], shape (n, 6).

    Raises:
        DataError: if a row is wrong.
    """
    rotations, wrenches = [], []
    for line, row in read_table(path, ("qw", "qx", "qy", "qz", "fx", "fy", "fz", "tx", "ty", "tz")):
        numbers = np.array([_number(path, line, key, text) for key, text in row.items()])
        pose = pose_of(np.concatenate((np.zeros(3), numbers[:4])), f"{path}, line {line}")
        rotations.append(pose.matrix)
        wrenches.append(numbers[4:])
    return np.array(rotations).reshape(-1, 3, 3), np.array(wrenches).reshape(-1, 6)


def pose_of(numbers: np.ndarray, where: str) -> Pose:
    """Make the pose from (x, y, z, qw, qx, qy, qz).

    Raises:
        DataError: if the length of the quaternion differs from 1 by more than 0.001.
    """
    length = float(np.linalg.norm(numbers[3:]))
    if abs(length - 1.0) > 1e-3:
        raise DataError(f"{where}: the quaternion (qw, qx, qy, qz) has length {length:.4f}, must be 1")
    return Pose(numbers[:3], numbers[3:] / length)


def _stamp(path: Path, line: int, text: str) -> int:
    if not text.removeprefix("-").isdecimal() or abs(int(text)) > _MAX_STAMP:
        raise DataError(f"{path}, line {line}: stamp is {text!r}, must be whole nanoseconds in 64 bits")
    return int(text)


def _number(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise DataError(f"{path}, line {line}: {name} is {text!r}, must be a finite number")
    return value
