"""What the cameras of a policy show: crops with a name and a version, recorded with a run and compared later.

A policy that saw one part of a frame fails, silently, on another part. So a run keeps the crops of its cameras, and
whoever continues or evaluates it with other ones is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.yaml_file import read_yaml
from robot_rl.errors import ConfigError

OWN = ("name", "version")
"""Keys of a profile that are no cameras."""
EXAMPLE = "e.g. {name: plug, version: 1, wrist: [80, 0, 480, 480]}"


@dataclass(frozen=True)
class CropProfile:
    """Crops by camera.

    Attributes:
        name: What it is called; empty if it has no name.
        version: To be raised with every change.
        crops: Left, top, width, height [px] by camera.
    """

    name: str
    version: int
    crops: Mapping[str, tuple[int, ...]]

    def facts(self, frames: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
        """Return what a run records.

        Args:
            frames: Width and height of the captured frames [px], 0 where the camera decides, of every camera.
        """
        shown = {
            camera: {"frame": list(size), "crop": list(self.crops.get(camera, ()))} for camera, size in frames.items()
        }
        return {"name": self.name, "version": self.version, "cameras": shown}


NO_PROFILE = CropProfile("", 0, {})


def read_crop_profile(section: Any, path: Path) -> CropProfile:
    """Return the profile in the section `crops` of a robot file, or in the file that it names.

    Args:
        section: As it was read; None if there is none.
        path: The robot file.

    Raises:
        ConfigError: naming what is wrong with it.
    """
    if section is None:
        return NO_PROFILE
    where = f"{path}: crops"
    if isinstance(section, str):
        file = path.parent / Path(section).expanduser()
        section, where = read_yaml(file, "crop profile"), str(file)
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str) or not section["name"]:
        raise ConfigError(f"{where}: has to be a mapping with a name, {EXAMPLE}")
    version = section.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(f"{where}: version has to be a whole number from 1 on, got {version!r}; {EXAMPLE}")
    crops = {str(camera): crop for camera, crop in section.items() if camera not in OWN}
    for camera, crop in crops.items():
        whole = isinstance(crop, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in crop)
        if not whole or len(crop) != 4:
            raise ConfigError(f"{where}: {camera} has to be left, top, width, height in whole pixels, got {crop!r}")
    return CropProfile(section["name"], version, {camera: tuple(crop) for camera, crop in crops.items()})


def check_same_crops(
    recorded: Mapping[str, Any] | None, now: Mapping[str, Any] | None, cameras: Sequence[str], run: Path
) -> None:
    """Check that cameras show what they showed a run.

    Args:
        recorded: What the run recorded, as `CropProfile.facts` returns it; None for one from before, or simulated.
        now: The same of the robot that is there; None for a simulated one.
        cameras: Those of the policy.
        run: The directory of the run.

    Raises:
        ConfigError: if one shows another part of its frames.
    """
    if recorded is None or now is None:
        return
    for camera in cameras:
        then, here = recorded["cameras"].get(camera), now["cameras"].get(camera)
        if then is not None and then != here:
            same_name = recorded["name"] and (recorded["name"], recorded["version"]) == (now["name"], now["version"])
            why = "; the profile was changed without another version" if same_name else ""
            raise ConfigError(
                f"{run}: its policy saw camera {camera} {_shown(recorded, then)}, the robot file has "
                f"{_shown(now, here)}{why}; set the crop of the run, or begin a new run"
            )


def _shown(profile: Mapping[str, Any], camera: Mapping[str, Any] | None) -> str:
    if camera is None:
        return "not at all"
    of = f" of profile {profile['name']} version {profile['version']}" if profile["name"] else ""
    crop = ", ".join(map(str, camera["crop"])) or "the middle"
    return f"cropped to {crop}{of}, in frames of {camera['frame'][0]} x {camera['frame'][1]} px"
