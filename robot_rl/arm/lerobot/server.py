"""The program that serves a robot of LeRobot from LeRobot's own interpreter.

`lerobot_arm.py` starts this one file there, so it needs LeRobot alone, and imports nothing of ours. Requests and
answers are JSON, one a line: a request is `{"call": NAME, ...}`, an answer `{"value": ...}` or `{"error": TEXT}`.

    make     {"robot": TYPE, "settings": {...}}     names of its joints, in the order of its motors
    connect                                         connects it, without a dialogue
    observe                                         positions of its joints by their names, in LeRobot's units, and
                                                    when reading them began and ended
    act      {"goals": {NAME: POSITION}}            commands positions

Times are those of the monotonic clock, which all processes of a machine share [ns]. The robot is disconnected when the
requests end.
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
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SUFFIX = ".pos"
PREFERRED = {"use_degrees": True, "disable_torque_on_disconnect": False}
"""Settings that a robot gets if it has them and nobody has set them: angles, and an arm that holds at the end."""
WAIT = 0.001
"""How long a read of a serial port waits at most [s]. The libraries of the motors read without waiting, again and
again; at real-time priority that would keep the kernel's threads, which bring the answer, from running."""
PRIORITY = 40
"""Real-time priority while a robot is connected, if this process may have one; as our threads of control."""


class ServedRobot:
    """A robot of LeRobot and what is asked of it."""

    def __init__(self) -> None:
        self._robot: Any = None
        self._ports: list[Any] = []  # serial ports of its motors

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
        self._ports = list(serial_ports(self._robot))
        for port in self._ports:
            if port.timeout == 0.0:
                port.timeout = WAIT
        take_priority()

    def observe(self) -> dict[str, Any]:
        """Return the positions of the joints, and when they were read.

        What is left of an answer that came too late is dropped first. The libraries of the motors would take it for the
        answer to the next request, and be one measurement behind from then on, two after the next such answer.
        """
        for port in self._ports:
            if port.in_waiting:
                port.reset_input_buffer()
        began = time.monotonic_ns()
        found = self._robot.get_observation()
        ended = time.monotonic_ns()
        positions = {key.removesuffix(SUFFIX): float(value) for key, value in found.items() if key.endswith(SUFFIX)}
        return {"positions": positions, "began": began, "ended": ended}

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


def serial_ports(robot: Any, depth: int = 2) -> Iterator[Any]:
    """Find the open serial ports (pyserial) of a robot's motors, and of the arms that it is made of."""
    for part in list(getattr(robot, "__dict__", {}).values()):
        port = getattr(getattr(part, "port_handler", None), "ser", None)
        if port is not None and hasattr(port, "reset_input_buffer"):
            yield port
        elif depth > 1:
            yield from serial_ports(part, depth - 1)


def take_priority() -> None:
    """Give this thread real-time priority where the machine allows it; threads that it starts do not inherit it."""
    if hasattr(os, "sched_setscheduler"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))


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
