"""Latency of teleoperation: the time from a change of an input to the first command that follows it.

    PYTHONPATH=.:tests/support python benchmarks/teleop_latency.py [TRIALS]

The simulated arm runs in real time with a control period of 0.1 s; the hand moves at random times. Devices are virtual
at the interface of the operating system; everything else is what runs on a robot. An input waits for the next control
step, half a period on average and a whole one at most, which is part of the figure. Two further figures are printed:
the change of the commanded velocity where control changes hands, from a policy that moves across, and the time from
the last heartbeat of the console's page until the arm is held.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import sys
import threading
import time
from collections.abc import Callable

import aiohttp
import numpy as np
from virtual_devices import VirtualHid, VirtualPad

from robot_rl.console.access.address import Address
from robot_rl.console.job_state import JobState
from robot_rl.console.server import Console
from robot_rl.data.schema import Source
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command
from robot_rl.env.supervision import Supervision
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.teleop.device import Device
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.gamepad import Gamepad
from robot_rl.teleop.keyboard import TerminalKeyboard
from robot_rl.teleop.mapping import default_map
from robot_rl.teleop.spacemouse import SpaceMouse


class Rig:
    """Simulated arm in real time whose operator has one device."""

    def __init__(self, cell: Workcell, supervision: Supervision, device: Device) -> None:
        self.supervision, self.commanded = supervision, threading.Event()
        operator = DeviceOperator([(device, default_map(device.kind))], cell.task.spec, supervision)
        self._operator, self._send = operator, cell.io.command
        cell.io.command = self._command  # type: ignore[method-assign]
        supervised = supervision.workcell(operator, max_steps=10**9)
        self._env = RobotEnv(supervised, interventions=True, handover=HandoverLimits())
        self.steps: dict[str, list[float]] = {"take-over": [], "hand-back": []}
        """Change of the commanded velocity where control changed hands [m/s^2]."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._control)
        self._thread.start()

    def _command(self, command: Command) -> None:
        self._send(command)
        self.at = time.monotonic()
        if self._operator.leading is not None:
            self.commanded.set()
        else:
            self.commanded.clear()

    def _control(self) -> None:
        spec = self._env.spec_task
        action = np.zeros(spec.action_size, np.float32)
        action[1] = 0.7
        over, seed, before = True, 0, None
        while not self._end.is_set():
            if not self.supervision.wait():
                over = True
                continue  # held until an operator releases it
            if over:
                self._env.reset(seed=seed)
                seed, before = seed + 1, None
            _, _, terminated, truncated, info = self._env.step(action)
            over, step = terminated or truncated, info["step"].recorded
            if before is not None and (step.source == Source.POLICY) != (before.source == Source.POLICY):
                change = float(np.linalg.norm((step.action - before.action)[:3]))  # of `reach`: x, y, z
                name = "hand-back" if step.source == Source.POLICY else "take-over"
                self.steps[name].append(change * spec.action_translation / spec.control_period**2)
            before = step

    def close(self) -> None:
        """End the control loop."""
        self._end.set()
        self._thread.join()


def steps(rig: Rig, name: str) -> None:
    """Print the largest changes of the commanded velocity."""
    largest = {what: f"{max(values):.4f} m/s^2 ({len(values)})" for what, values in rig.steps.items()}
    print(f"{name}: largest step, limit {HandoverLimits().linear:g}: {largest}", flush=True)


def measure(rig: Rig, move: Callable[[bool], None], trials: int) -> list[float]:
    """Measure the times from the hand's movement to the command [ms]."""
    times = []
    for _ in range(trials):
        move(False)
        while rig.commanded.is_set():
            time.sleep(0.01)
        time.sleep(0.15 + 0.1 * random.random())
        start = time.monotonic()
        move(True)
        rig.commanded.wait()
        times.append(1e3 * (rig.at - start))
    return times


class PageInAThread:
    """Page of the console, as a program that sends its inputs every 40 ms."""

    def __init__(self, url: str) -> None:
        self._url, self.axes, self._ready = url, [0.0] * 6, threading.Event()
        self.alive, self.last = True, 0.0
        threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True).start()
        self._ready.wait()

    async def _run(self) -> None:
        async with aiohttp.ClientSession() as session, session.ws_connect(self._url + "ws") as socket:
            await socket.send_str(json.dumps({"type": "hello"}))
            await socket.send_str(json.dumps({"type": "lease", "take": True}))
            reader = asyncio.create_task(self._read(socket))
            while self.alive:
                await socket.send_str(json.dumps({"type": "input", "axes": self.axes, "buttons": [False] * 4}))
                self.last = time.monotonic()
                self._ready.set()
                await asyncio.sleep(0.04)
            await asyncio.sleep(1.0)  # silent, but still there
            reader.cancel()

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for _ in socket:
            pass


def line(name: str, values: list[float]) -> None:
    """Print the percentiles of some times [ms]."""
    p50, p99 = np.percentile(values, [50, 99])
    print(f"{name:<34} p50 {p50:6.1f}  p99 {p99:6.1f}  max {max(values):6.1f} ms  ({len(values)} trials)", flush=True)


def fresh() -> tuple[Workcell, Supervision]:
    """Make a simulated arm in real time, supervised."""
    cell = make_workcell("reach", WorkcellOptions(realtime=True))
    return cell, Supervision(cell)


def local_devices(trials: int) -> None:
    """Measure the devices of this machine."""
    hid, pad, (typist, process) = VirtualHid(), VirtualPad(), pty.openpty()

    def push_mouse(on: bool) -> None:
        hid.move(translation=(0.0, -0.8 if on else 0.0, 0.0))

    def push_pad(on: bool) -> None:
        pad.axis(1, -26000 if on else 0)

    def push_key(on: bool) -> None:
        if on:
            os.write(typist, b"w")
        else:
            time.sleep(0.5)  # until the key counts as let go

    for device, move in (
        (SpaceMouse(hid.connect), push_mouse),
        (Gamepad(pad.connect), push_pad),
        (TerminalKeyboard(process), push_key),
    ):
        rig = Rig(*fresh(), device)
        line(f"{device.kind}: hand to command", measure(rig, move, trials))
        rig.close()
        steps(rig, device.kind)


def console(trials: int) -> None:
    """Measure the page of the console."""
    cell, supervision = fresh()
    with Console(Address(":0"), supervision, JobState("training", cell.task.spec), print, heartbeat=10.0) as server:
        rig, page = Rig(cell, supervision, server.device), PageInAThread(server.url)

        def push(on: bool) -> None:
            page.axes = [0.8 if on else 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]

        line("console: hand to command", measure(rig, push, trials))
        page.alive = False
        rig.close()
        steps(rig, "console")


def silence(trials: int) -> None:
    """Measure the time from the last message of the page in control to the hold."""
    times = []
    for _ in range(trials):
        cell, supervision = fresh()
        with Console(Address(":0"), supervision, JobState("training", cell.task.spec), print) as server:
            rig, page = Rig(cell, supervision, server.device), PageInAThread(server.url)
            page.axes = [0.8, 0.0, 0.0, 0.0, 0.0, 0.0]
            time.sleep(0.5)
            page.alive = False
            while not supervision.holds:
                time.sleep(0.001)
            times.append(1e3 * (time.monotonic() - page.last))
            rig.close()
    line("console: last message to hold", times)


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    local_devices(wanted)
    console(wanted)
    silence(max(10, wanted // 5))
