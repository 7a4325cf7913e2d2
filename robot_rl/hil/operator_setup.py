"""Puts a person beside a job: devices, supervision of the robot, and the operator console.

It wires; what a device means, how control changes hands and what the page shows lies in the rooms that it names.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from robot_rl.console.access import Address
from robot_rl.console.control_lease import HEARTBEAT
from robot_rl.console.job_state import JobState
from robot_rl.env.registry import make_workcell
from robot_rl.env.supervision import Supervision
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import RenderError
from robot_rl.teleop.device import Device, DeviceError
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.listing import open_devices
from robot_rl.teleop.mapping import DeviceMap, default_map, load_map

if TYPE_CHECKING:
    from robot_rl.console.server import Console

VIEW_SIZE = (240, 320)
"""Height and width of the live views of a job that does not observe frames itself [px]."""


@dataclass(frozen=True)
class OperatorOptions:
    """How a person takes part.

    Attributes:
        devices: Kinds of devices on this machine.
        maps: Map files by kind of device; a kind that is not named has its default.
        engage: How control is taken, instead of what the maps say.
        console: Where the operator console is served; None serves none.
        token: What a page has to know, instead of a token that is made up.
        certificate: PEM files of certificate and key, for TLS.
        heartbeat: Time without a word from the page in control after which the arm holds [s].
    """

    devices: tuple[str, ...] = ()
    maps: dict[str, Path] = field(default_factory=dict)
    engage: Literal["move", "hold"] | None = None
    console: Address | None = None
    token: str | None = None
    certificate: tuple[Path, Path] | None = None
    heartbeat: float = HEARTBEAT


class Operation:
    """A job with a person beside it.

    Attributes:
        supervision: Of the robot.
        board: What people are shown.
        person: The operator.
        request: Where what the person asks of the job goes; the job sets it.
        judged: Told of an episode, and whether it was a success, in hindsight; the job sets it.
    """

    def __init__(self, cell: Workcell, options: OperatorOptions, board: JobState, devices: list[Device]) -> None:
        self.supervision, self.board = Supervision(cell), board
        self.request: Callable[[str], None] = self._judge
        self.judged: Callable[[str, bool], None] = lambda episode_id, success: None
        self._options = options
        self._spec = cell.task.spec
        self._devices = devices
        self.console: Console | None = None

    def admit(self) -> None:
        """Makes the person of all devices, once the console's is among them.

        Raises:
            DeviceError: if a map does not fit its device.
        """
        devices = [*self._devices, *([self.console.device] if self.console is not None else [])]
        hands = [(device, self._map(device)) for device in devices]
        self.person = DeviceOperator(hands, self._spec, self.supervision, on_press=lambda role: self.request(role))

    @contextlib.contextmanager
    def serve(self) -> Iterator[None]:
        """Opens the console, if there is one, and says where it is.

        Raises:
            ConsoleError: if it cannot be served.
        """
        if self.console is None:
            yield
            return
        with self.console:
            print(f"operator console: {self.console.url}", file=sys.stderr, flush=True)
            yield

    def _map(self, device: Device) -> DeviceMap:
        path = self._options.maps.get(device.kind)
        mapping = default_map(device.kind) if path is None else load_map(path)
        return replace(mapping, engage=self._options.engage) if self._options.engage is not None else mapping

    def _judge(self, role: str) -> None:
        """What the buttons of a device do where the job has no requests of its own."""
        if role in ("success", "failure"):
            self.supervision.mark(role == "success")


@contextlib.contextmanager
def operated(
    cell: Workcell,
    options: OperatorOptions,
    board: JobState,
    *,
    store: Path | None = None,
    log: Path | None = None,
) -> Iterator[Operation]:
    """Opens devices, and makes the console, for as long as the job runs; `serve` opens the console to people.

    Args:
        cell: The robot and its task.
        options: How the person takes part.
        board: What people are shown.
        store: Episodes to replay and label in the console.
        log: File for the record of what people did and said.

    Raises:
        DeviceError: if a device cannot be used.
        ConsoleError: if the console's certificate cannot be used.
    """
    if not options.devices and options.console is None:
        raise DeviceError("a person needs a device or the console: --teleop KIND or --console")
    with contextlib.ExitStack() as stack:
        devices = open_devices(options.devices)
        for device in devices:
            stack.callback(device.close)
        operation = Operation(cell, options, board, devices)
        if options.console is not None:
            make = console_class()
            operation.console = make(
                options.console,
                operation.supervision,
                board,
                lambda name: operation.request(name),
                on_label=lambda episode_id, success: operation.judged(episode_id, success),
                token=options.token,
                certificate=options.certificate,
                store=store,
                log=log,
                heartbeat=options.heartbeat,
            )
        operation.admit()
        yield operation


def viewed_workcell(task: str, observed: WorkcellOptions) -> Workcell:
    """A workcell in real time with live views, even where the job observes no frames; without, if none can be made."""
    options = replace(observed, realtime=True)
    if options.cameras:
        return make_workcell(task, options)
    probe = make_workcell(task)
    cameras = probe.task.spec.cameras
    probe.close()
    try:
        return make_workcell(task, replace(options, cameras=cameras, image_size=VIEW_SIZE))
    except RenderError as error:
        print(f"warning: no live views: {error}", file=sys.stderr)
        return make_workcell(task, options)


def console_class() -> type[Console]:
    """The class of consoles, imported when needed, as aiohttp is an extra.

    Raises:
        DeviceError: if it is not installed.
    """
    try:
        from robot_rl.console.server import Console
    except ImportError as error:
        raise DeviceError(
            "the console needs the package aiohttp; install it: pip install 'robot_rl[console]'"
        ) from error
    return Console
