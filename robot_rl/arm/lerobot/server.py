"""The program that serves a robot of LeRobot from LeRobot's own interpreter.

`lerobot_arm.py` starts this one file there, so it needs LeRobot alone, and imports nothing of ours. Requests and
answers are JSON, one a line: a request is `{"call": NAME, ...}`, an answer `{"value": ...}` or `{"error": TEXT}`.

    make     {"robot": TYPE, "settings": {...}}     names of its joints, in the order of its motors
    connect                                         connects it, without a dialogue
    observe                                         positions of its joints by their names, in LeRobot's units
    act      {"goals": {NAME: POSITION}}            commands positions

The robot is disconnected when the requests end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SUFFIX = ".pos"
PREFERRED = {"use_degrees": True, "disable_torque_on_disconnect": False}
"""Settings that a robot gets if it has them and nobody has set them: angles, and an arm that holds at the end."""


class ServedRobot:
    """A robot of LeRobot and what is asked of it."""

    def __init__(self) -> None:
        self._robot: Any = None

    def make(self, robot: str, settings: dict[str, Any]) -> list[str]:
        """Make the robot; nothing is connected yet."""
        import_robots()
        from lerobot.robots.config import RobotConfig
        from lerobot.robots.utils import make_robot_from_config

        known = sorted(RobotConfig.get_known_choices())
        if robot not in known:
            near = difflib.get_close_matches(robot, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ValueError(f"LeRobot has no robot {robot}; it has {', '.join(known)}{hint}")
        kind = RobotConfig.get_choice_class(robot)
        fields = {field.name for field in dataclasses.fields(kind)}
        if unknown := sorted(set(settings) - fields):
            raise ValueError(f"{robot} has no setting {', '.join(unknown)}; it has {', '.join(sorted(fields))}")
        settings = {key: value for key, value in PREFERRED.items() if key in fields} | settings
        if settings.get("calibration_dir"):
            settings["calibration_dir"] = Path(settings["calibration_dir"]).expanduser()
        self._robot = make_robot_from_config(kind(**settings))
        names = [key for key, kind in self._robot.action_features.items() if key.endswith(SUFFIX) and kind is float]
        return [name.removesuffix(SUFFIX) for name in names]

    def connect(self) -> None:
        """Connect the robot."""
        if self._robot.is_connected:
            return
        self._robot.connect(calibrate=False)
        if not self._robot.is_calibrated:
            self._robot.disconnect()
            raise ValueError("the robot is not calibrated, or its motors have another calibration: `lerobot-calibrate`")

    def observe(self) -> dict[str, float]:
        """Return the positions of the joints."""
        found = self._robot.get_observation()
        return {key.removesuffix(SUFFIX): float(value) for key, value in found.items() if key.endswith(SUFFIX)}

    def act(self, goals: dict[str, float]) -> None:
        """Command positions."""
        self._robot.send_action({f"{name}{SUFFIX}": value for name, value in goals.items()})

    def close(self) -> None:
        """Disconnect the robot."""
        if self._robot is not None and self._robot.is_connected:
            self._robot.disconnect()


def import_robots() -> None:
    """Import LeRobot's robots and those of plug-ins, so that they register; some need packages that are not here."""
    import lerobot.robots

    for module in pkgutil.iter_modules(lerobot.robots.__path__):
        if module.ispkg:
            with contextlib.suppress(ImportError):
                importlib.import_module(f"lerobot.robots.{module.name}")
    try:
        from lerobot.utils.import_utils import register_third_party_plugins
    except ImportError:  # of an older LeRobot
        return
    register_third_party_plugins()


def serve(requests: Any, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer requests until they end."""
    served = ServedRobot()
    calls: dict[str, Callable[..., Any]] = {
        "make": served.make,
        "connect": served.connect,
        "observe": served.observe,
        "act": served.act,
    }
    try:
        for line in requests:
            try:
                request = json.loads(line)
                answer({"value": calls[request.pop("call")](**request)})
            except Exception as error:  # noqa: BLE001  (whatever it is, the other side has to know)
                answer({"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"})
    finally:
        served.close()


def main() -> None:
    """Serve one robot on standard input and output."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what LeRobot prints is no answer

    def answer(tree: dict[str, Any]) -> None:
        channel.write(json.dumps(tree) + "\n")
        channel.flush()

    serve(sys.stdin, answer)


if __name__ == "__main__":
    main()
