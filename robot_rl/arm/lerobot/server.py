"""The program that serves a robot of LeRobot from LeRobot's own interpreter.

`lerobot_arm.py` starts this one file there, so it needs LeRobot alone, and imports nothing of ours. Requests and
answers are JSON, one a line: a request is `{"call": NAME, ...}`, an answer `{"value": ...}` or `{"error": TEXT}`.

    make     {"robot": TYPE, "settings": {...}}     names of its joints, in the order of its motors
    connect                                         connects it, without a dialogue; one that is connected goes on:
                                                    motors without torque hold where they are, a lost port is opened
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
import math
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
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
QUIET = 0.1
"""How long late answers are waited for before another register is read [s]. The protocols do not number requests: an
answer that comes too late would be taken for that of the other register, and a torque of 1 for a position."""
DIP = 0.3
"""How long measurements are missed until motors that answer again are asked whether they still have torque [s]: less
than a motor needs to start."""
_RESTART = ", then switch its power off and on: it obeys no earlier"
STATUS = {
    "Status": {  # of Feetech's motors
        0x01: "its supply voltage is out of range; check the power supply and the plugs",
        0x02: "its angle sensor fails; replace it",
        0x04: "it is too hot; let it cool down",
        0x08: "its current is too large; free the joint",
        0x20: "it is overloaded; take the load off the joint",
    },
    "Hardware_Error_Status": {  # of Dynamixel's
        0x01: f"its supply voltage is out of range; check the power supply and the plugs{_RESTART}",
        0x04: f"it is too hot; let it cool down{_RESTART}",
        0x08: "its encoder fails; replace it",
        0x10: f"its circuit has an electrical fault, or too little power; check the power supply{_RESTART}",
        0x20: f"it is overloaded; take the load off the joint{_RESTART}",
    },
}
"""Registers, as LeRobot calls them, in which motors say what is wrong with them: texts by bits."""
TORQUE = "Torque_Enable"
NO_TORQUE = (
    "no torque: the power failed, or somebody switched it off. Support the arm, check its power supply, and consent to "
    "go on"
)


class ServedRobot:
    """A robot of LeRobot and what is asked of it.

    Args:
        make: Makes the robot, if it is not to be one of LeRobot's types.
    """

    def __init__(self, make: Callable[[], Any] = lambda: None) -> None:
        self._make = make
        self._robot: Any = make()
        self._buses: list[Any] = []  # of its motors
        self._missed_since = math.inf  # by the monotonic clock [s]

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
        self._make = lambda: make_robot_from_config(kind(**settings))
        self._robot = self._make()
        names = [key for key, kind in self._robot.action_features.items() if key.endswith(SUFFIX) and kind is float]
        return [name.removesuffix(SUFFIX) for name in names]

    def connect(self) -> None:
        """Connect the robot, or let it go on."""
        if self._robot.is_connected and self._goes_on():
            return
        self._missed_since = math.inf
        self._robot.connect(calibrate=False)
        if not self._robot.is_calibrated:
            self._robot.disconnect()
            raise ValueError("the robot is not calibrated, or its motors have another calibration: `lerobot-calibrate`")
        self._buses = list(motor_buses(self._robot))
        for bus in self._buses:
            if bus.port_handler.ser.timeout == 0.0:
                bus.port_handler.ser.timeout = WAIT
        take_priority()

    def _goes_on(self) -> bool:
        """Let the motors without torque, and those in a fault, hold where they are; return whether they answer.

        A robot that does not answer is made anew, as LeRobot never opens a port again that it takes for open.
        """
        try:
            stopped = [(bus, sorted(wrong)) for bus, wrong in self._wrong_motors() if wrong]
            self._missed_since = math.inf
            if stopped:
                self.act(self.observe()["positions"])  # before the torque, or they would jump to where they were to go
            for bus, motors in stopped:
                bus.disable_torque(motors, num_retry=1)  # which ends an overload
                bus.enable_torque(motors, num_retry=1)
            left = self._faults() if stopped else ""
        except Exception:  # noqa: BLE001  (of LeRobot, its libraries, the system: a cable that was out)
            with contextlib.suppress(Exception):
                self._robot.disconnect()
            self._robot = self._make()
            return False
        if left:
            self._missed_since = -math.inf
            raise RuntimeError(left)
        return True

    def _faults(self) -> str:
        """Return what is wrong with motors; empty if nothing is."""
        by_text: dict[str, list[str]] = {}
        for _, wrong in self._wrong_motors():
            for name, text in wrong.items():
                by_text.setdefault(text, []).append(name)
        return "; ".join(f"{', '.join(names)}: {text}" for text, names in by_text.items())

    def _wrong_motors(self) -> Iterator[tuple[Any, dict[str, str]]]:
        """Return what is wrong with motors, by their names, for each bus that can tell."""
        for bus in self._buses:
            tables = [bus.model_ctrl_table[motor.model] for motor in getattr(bus, "motors", {}).values()]
            known = set.intersection(*map(set, tables)) if tables else set()
            if TORQUE in known:
                found, again = (self._wrong_of(bus, STATUS.keys() & known) for _ in range(2))
                yield bus, {name: text for name, text in found.items() if again.get(name) == text}
        self._drop_late_answers(QUIET)

    def _wrong_of(self, bus: Any, registers: Iterable[str]) -> dict[str, str]:
        wrong = {name: NO_TORQUE for name, on in self._registers(bus, TORQUE).items() if not on}
        for register in registers:
            for name, bits in self._registers(bus, register).items():
                if texts := [text for bit, text in STATUS[register].items() if bits & bit]:
                    wrong[name] = "; ".join(texts)
        return wrong

    def _registers(self, bus: Any, register: str) -> dict[str, int]:
        """Read a register of all motors of a bus."""
        self._drop_late_answers(QUIET)
        return {name: int(value) for name, value in bus.sync_read(register, normalize=False, num_retry=2).items()}

    def _drop_late_answers(self, wait: float = 0.0) -> None:
        """Drop what is left of answers; in place of the next one, it would be taken for that."""
        time.sleep(wait)
        for bus in self._buses:
            if bus.port_handler.ser.in_waiting:
                bus.port_handler.ser.reset_input_buffer()

    def observe(self) -> dict[str, Any]:
        """Return the positions of the joints, and when they were read.

        What is left of an answer that came too late is dropped first: else all measurements would be one behind from
        then on, and two after the next such answer. Motors that answer again are asked whether they still have torque.
        """
        if time.monotonic() - self._missed_since > DIP and (text := self._faults()):
            raise RuntimeError(text)
        self._missed_since = min(self._missed_since, time.monotonic())  # unless it succeeds
        self._drop_late_answers()
        began = time.monotonic_ns()
        found = self._robot.get_observation()
        ended = time.monotonic_ns()
        self._missed_since = math.inf
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


def motor_buses(robot: Any, depth: int = 2) -> Iterator[Any]:
    """Find the buses with serial ports (pyserial) of a robot's motors, and of the arms that it is made of."""
    for part in list(getattr(robot, "__dict__", {}).values()):
        port = getattr(getattr(part, "port_handler", None), "ser", None)
        if port is not None and hasattr(port, "reset_input_buffer"):
            yield part
        elif depth > 1:
            yield from motor_buses(part, depth - 1)


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
