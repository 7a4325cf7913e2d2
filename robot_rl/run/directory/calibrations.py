"""The calibrations that a run was made with: read, checked against the run and each other, and kept the same.

It knows the head of a calibration file, not what is in it; `calibration.result` reads and writes the rest.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from robot_rl.config.components import TrainConfig
from robot_rl.errors import CalibrationError
from robot_rl.system.atomic_file import write_atomically, writing

logger = logging.getLogger(__name__)

FORMAT, VERSION = "robot_rl calibration", 2
"""Of the files of `robot-rl calibrate`."""
CAMERA_INFO = "camera_info"
"""Kind of a file of ROS's."""
FOLDER = "calibrations"
"""Of the copies, in a run or a store."""


@dataclass(frozen=True)
class CalibrationRecord:
    """A calibration file, as a run records it.

    Attributes:
        name: The run's name of the camera that it belongs to; empty if none.
        path: Path of the original file.
        kind: `intrinsics`, `hand_eye`, `time_offset`, `wrench`, `sim` or `camera_info`.
        camera: The camera in the file, by name or serial number; empty if none.
        size: Width and height of that camera's images [px]; empty if the file has none.
        robot: The arm and tool that it belongs to; empty if none.
        sha256: SHA-256 of the file.
        text: Content of the file.
    """

    name: str
    path: str
    kind: str
    camera: str
    size: tuple[int, ...]
    robot: str
    sha256: str
    text: str = field(repr=False)

    @property
    def subject(self) -> str:
        """Kind and owner; a run has one of each."""
        return f"{self.kind} of {self.name or self.robot}"

    def facts(self) -> dict[str, Any]:
        """Return what a run records of it beside the copy, as JSON values."""
        return {
            "path": self.path,
            "kind": self.kind,
            "camera": self.camera,
            "size": list(self.size),
            "robot": self.robot,
            "sha256": self.sha256,
        }


def read_content(path: Path) -> tuple[dict[str, Any], bytes]:
    """Read the mapping in a YAML file, and the bytes of the file.

    Raises:
        CalibrationError: if there is none.
    """
    try:
        data = path.read_bytes()
        content = yaml.safe_load(data.decode("utf-8"))
    except RecursionError as error:
        raise CalibrationError(f"{path}: is nested too deeply to be a calibration result; check the path") from error
    except FileNotFoundError as error:
        raise CalibrationError(f"{path}: no such file; `robot-rl calibrate` makes it") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CalibrationError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise CalibrationError(f"{path}: holds no YAML mapping; check the path")
    return content, data


def check_head(path: Path, content: Mapping[str, Any]) -> None:
    """Check that this is a result of `robot-rl calibrate` that this program reads.

    Raises:
        CalibrationError: if it is not.
    """
    if content.get("format") != FORMAT:
        raise CalibrationError(f"{path}: is no calibration result (it lacks `format: {FORMAT}`); check the path")
    if content.get("version") != VERSION:
        raise CalibrationError(
            f"{path}: is of version {content.get('version')!r}, this program reads {VERSION}; calibrate again"
        )


def whole_path(entry: str) -> str:
    """Return an entry `FILE` or `NAME=FILE` with an absolute path."""
    name, path = _parts(entry)
    return f"{name}={path.resolve()}" if name else str(path.resolve())


def read_record(entry: str | Path) -> CalibrationRecord:
    """Read a calibration file as a run records it.

    Args:
        entry: The file, or `NAME=FILE`: which of the run's cameras it is of, if it has that by its serial number.

    Raises:
        CalibrationError: if it is none.
    """
    name, path = _parts(str(entry))
    content, data = read_content(path)
    if "camera_matrix" in content:
        kind, owner = CAMERA_INFO, content
        camera, size = owner.get("camera_name"), (owner.get("image_width"), owner.get("image_height"))
        robot = ""
    else:
        check_head(path, content)
        kind, result = str(content.get("kind")), content.get("result")
        if not isinstance(result, dict):
            raise CalibrationError(f"{path}: is damaged: it holds no result; calibrate again")
        lens = result.get("intrinsics", result)  # a hand-eye result has the lens in it
        camera, size = lens.get("camera"), (lens.get("width"), lens.get("height"))
        robot = str(result.get("robot", ""))
    known = tuple(int(number) for number in size if isinstance(number, int))
    digest = hashlib.sha256(data).hexdigest()
    camera = str(camera or "")
    if name and not camera:
        raise CalibrationError(f"{path}: is of no camera, so {name}=... has no meaning; leave that out")
    return CalibrationRecord(name or camera, str(path), kind, camera, known, robot, digest, data.decode("utf-8"))


def own_copies(recorded: Mapping[str, Any], path: Path) -> dict[str, Path]:
    """Return the copies of a run, or of a store, by the paths of their originals.

    Args:
        recorded: What `Calibrations.facts` gave when they were made.
        path: Of the run or store.
    """
    return {facts["path"]: path / FOLDER / _copy_name(subject) for subject, facts in recorded.items()}


class Calibrations:
    """The calibrations of one run.

    Args:
        records: Of their files.
        robot: Which arm and tool they have to be of; empty: any, but all of one.
        cameras: Which cameras the run sees; empty: any.

    Raises:
        CalibrationError: if one is of another robot, of a camera that the run does not see, of another resolution than
            another one of the same camera, or there twice.
    """

    def __init__(self, records: Sequence[CalibrationRecord], robot: str = "", cameras: Sequence[str] = ()) -> None:
        self._records: dict[str, CalibrationRecord] = {}
        self._cameras = tuple(cameras)
        for record in records:
            for other in self._records.values():
                _check_pair(record, other)
            if robot and record.robot and record.robot != robot:
                raise CalibrationError(
                    f"{record.path} is of robot {record.robot!r}, the run of {robot!r}; take a calibration of that "
                    "one, or set `robot`"
                )
            if cameras and record.name and record.name not in cameras:
                raise CalibrationError(
                    f"{record.path} is of camera {record.name!r}, the run sees {', '.join(cameras)}; take calibrations "
                    "of those, or name the camera with that serial number: NAME=FILE"
                )
            self._records[record.subject] = record

    @classmethod
    def of(
        cls,
        config: TrainConfig,
        reported: Sequence[CalibrationRecord] = (),
        copies: Mapping[str, Path] = MappingProxyType({}),
    ) -> Calibrations:
        """Collect those that a configuration names and those that cameras report.

        Args:
            config: The configuration.
            reported: Those of the cameras.
            copies: Of a run that goes on, see `own_copies`: they count where an original is gone.

        Raises:
            CalibrationError: if a file cannot be read, or they do not go with the run or with each other.
        """
        records = [_read_here(entry, copies) for entry in config.calibrations]
        for record in records:
            _check_simulation(record, config)
        named = {record.subject: record for record in records}
        for record in reported:
            mine = named.get(record.subject)
            if mine is None:
                records.append(record)
            elif mine.sha256 != record.sha256:
                raise CalibrationError(
                    f"the run names {_description(mine.facts())} as the {mine.subject}, but the camera has "
                    f"{_description(record.facts())}; give both the same file"
                )
        return cls(records, config.robot, config.encoder.cameras if config.observations == "pixels" else ())

    def facts(self) -> dict[str, Any]:
        """Return what is recorded, by subject, as JSON values."""
        return {subject: record.facts() for subject, record in self._records.items()}

    def write(self, folder: Path) -> None:
        """Copy them into the folder `calibrations` of a run or a store.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        if not self._records:
            return
        target = folder / FOLDER
        with writing(target):
            target.mkdir(exist_ok=True)
        for subject, record in self._records.items():
            write_atomically(target / _copy_name(subject), record.text)

    def check_same(self, recorded: Mapping[str, Any], path: Path) -> None:
        """Check that these are the recorded ones.

        Args:
            recorded: What `facts` gave then.
            path: Of the run or store, for the message.

        Raises:
            CalibrationError: naming both sides of the first that differs.
        """
        both = {**dict.fromkeys(self._records), **recorded}
        self._compare(both, path, "started", "go on with that, or start a new one")

    def check_demonstrations(self, recorded: Mapping[str, Any], path: Path) -> None:
        """Check that this run may learn from demonstrations that were recorded with other calibrations.

        What was not recorded may be anything, and where a camera is that the run does not see does not matter.

        Args:
            recorded: What `facts` gave when they were recorded.
            path: Of their store, for the message.

        Raises:
            CalibrationError: naming both sides of the first that differs.
        """
        seen = {subject: facts for subject, facts in recorded.items() if self._matters(subject, facts)}
        self._compare(seen, path, "recorded", "give the run that (--calibration), or record demonstrations again")

    def _matters(self, subject: str, facts: Mapping[str, Any]) -> bool:
        return subject in self._records or not facts["camera"] or subject.split(" of ", 1)[1] in self._cameras

    def _compare(self, recorded: Mapping[str, Any], path: Path, done: str, cure: str) -> None:
        """Raise CalibrationError if one of these, None where there was none, is another now."""
        now = self.facts()
        for subject in sorted(recorded):
            before, after = recorded[subject], now.get(subject)
            if before is not None and after is not None and before["sha256"] == after["sha256"]:
                continue
            was, is_now = (_description(facts) if facts is not None else "none" for facts in (before, after))
            raise CalibrationError(
                f"{path} was {done} with another calibration ({subject}): with {was}; now it is {is_now}. Its copy "
                f"is in {path / FOLDER}; {cure}"
            )


def _check_simulation(record: CalibrationRecord, config: TrainConfig) -> None:
    """Check that the file of a simulated arm has the settings of the configuration."""
    if record.kind != "sim":
        return
    recorded, configured = yaml.safe_load(record.text)["result"].get("settings"), asdict(config.simulation)
    if recorded != configured:
        raise CalibrationError(
            f"{record.path} describes an arm with {recorded}, the run's `simulation` is {configured}; have "
            "`robot-rl calibrate sim --train-config FILE` write it, and give that as --config FILE"
        )


def _copy_name(subject: str) -> str:
    return f"{re.sub('[^A-Za-z0-9_.-]+', '_', subject)}.yaml"


def _read_here(entry: str, copies: Mapping[str, Path]) -> CalibrationRecord:
    """Read the file of an entry, or the copy of it where it is gone."""
    name, path = _parts(entry)
    copy = copies.get(str(path))
    if copy is None or path.exists() or not copy.is_file():
        return read_record(entry)
    logger.info("%s is gone; the run goes on with its own copy, %s", path, copy)
    return read_record(f"{name}={copy}" if name else copy)


def _parts(entry: str) -> tuple[str, Path]:
    """Return the name, or an empty text, and the file of an entry."""
    name, equals, file = entry.partition("=")
    if not equals or not re.fullmatch(r"\w+", name):
        name, file = "", entry
    return name, Path(file).expanduser()


def _check_pair(a: CalibrationRecord, b: CalibrationRecord) -> None:
    if a.subject == b.subject:
        raise CalibrationError(f"{a.path} and {b.path} are both the {a.subject}; leave one out")
    if a.robot and b.robot and a.robot != b.robot:
        raise CalibrationError(f"{a.path} is of robot {a.robot!r}, {b.path} of {b.robot!r}; a run has one robot")
    if a.name and a.name == b.name and a.size and b.size and a.size != b.size:
        sizes = [" x ".join(map(str, record.size)) for record in (a, b)]
        raise CalibrationError(
            f"{a.path} is of camera {a.name!r} at {sizes[0]} px, {b.path} at {sizes[1]} px; a run has one resolution"
        )


def _description(facts: Mapping[str, Any]) -> str:
    of = [f"camera {facts['camera']}"] if facts["camera"] else []
    of += [" x ".join(map(str, facts["size"])) + " px"] if facts["size"] else []
    of += [f"robot {facts['robot']}"] if facts["robot"] else []
    return f"{facts['path']} ({', '.join([*of, 'sha256 ' + facts['sha256'][:12]])})"
