"""Set-up of a human operator: devices, supervision of the robot, and the operator console."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from robot_rl.console.access.address import Address
from robot_rl.console.buttons import Log, emergency_stop, not_released
from robot_rl.console.control_lease import HEARTBEAT
from robot_rl.console.job_state import JobState
from robot_rl.console.scene import Geometry
from robot_rl.env.registry import make_workcell
from robot_rl.env.supervision import ARM, NEXT_ARM, PAUSE, Supervision
from robot_rl.env.task import TaskSpec, Workcell, WorkcellOptions
from robot_rl.errors import RenderError
from robot_rl.teleop.device import Device, DeviceError, Rumbles
from robot_rl.teleop.listing import open_devices
from robot_rl.teleop.mapping import DeviceMap, default_map, load_map
from robot_rl.teleop.several_arms import Leader, SeveralArmsOperator, make_person

if TYPE_CHECKING:
    from robot_rl.console.server import Console

logger = logging.getLogger(__name__)

VIEW_SIZE = (240, 320)
"""Height and width of the live views of a job that does not observe frames itself [px]."""


@dataclass(frozen=True)
class OperatorOptions:
    """Devices and console of an operator.

    Attributes:
        devices: Kinds of devices on this machine; `ARM=KIND` leads that one of several arms only.
        maps: Map files by kind of device; other kinds have their default map.
        engage: How control is taken, instead of the setting of the maps.
        console: Where the operator console is served; None serves none.
        token: Token that a page needs, instead of a generated one.
        certificate: PEM files of certificate and key, for TLS; `own` makes and keeps one.
        heartbeat: Time without a message from the page in control after which the arm holds [s].
    """

    devices: tuple[str, ...] = ()
    maps: dict[str, Path] = field(default_factory=dict)
    engage: Literal["move", "hold"] | None = None
    console: Address | None = None
    token: str | None = None
    certificate: tuple[Path, Path] | Literal["own"] | None = None
    heartbeat: float = HEARTBEAT


class OperatorSetup:
    """The open devices, supervision and console of one job.

    Attributes:
        supervision: Supervision of the robot.
        board: State of the job that the console shows.
        person: The operator who leads with the devices.
        on_request: Called with each request of the operator; the job sets it.
        on_label: Called with a recorded episode and whether it was a success; the job sets it.
    """

    def __init__(
        self, cell: Workcell, options: OperatorOptions, board: JobState, devices: Sequence[tuple[str, Device]]
    ) -> None:
        self.board = board
        self.supervision = Supervision(self.watched(cell))
        self.on_request: Callable[[str], None] = self._mark
        self.on_label: Callable[[str, bool], None] = lambda episode_id, success: None
        self._options = options
        self._spec = cell.task.spec
        self._devices = devices
        self.console: Console | None = None

    def watched(self, cell: Workcell) -> Workcell:
        """Return a workcell whose state the console shows; it sees what the classifier finds, not the operator."""
        return replace(cell, judges=(*cell.judges, self.board))

    def connect(self) -> None:
        """Connect all devices, that of the console too, to the operator.

        Raises:
            DeviceError: if a map does not fit its device.
        """
        self.person = self.leader(self._spec)
        if isinstance(self.person, SeveralArmsOperator) and self.person.shares:
            self.board.choose(self.person.chosen)

    def leader(self, spec: TaskSpec) -> Leader:
        """Return who leads a task with all devices, that of the console too.

        Raises:
            DeviceError: if a map does not fit its device.
        """
        pages = self.console.devices if self.console is not None else None
        hands: dict[str, list[tuple[Device, DeviceMap]]] = {}
        for arm, device in [*self._devices, *([("", pages.first)] if pages is not None else [])]:
            hands.setdefault(arm, []).append((device, self._map(device)))
        shared, beside = hands.pop("", []), [(pages.other, self._map(pages.other))] if pages is not None else []
        return make_person(hands, shared, beside, spec, self.supervision, self.request, self._show_chosen)

    def request(self, name: str) -> None:
        """Pass on a request of the operator to the job, or lead another arm; from any thread."""
        if name != NEXT_ARM:
            self.on_request(name)
        elif isinstance(self.person, SeveralArmsOperator):
            self.person.choose_next()
        else:
            self.board.remark(f"{self._spec.name} has one arm: no other one can be led")

    def call(self, text: str) -> None:
        """Show in the console that a person is needed, and have the devices shake; an empty text: no more."""
        self.board.call(text)
        if text:
            for _, device in self._devices:
                if isinstance(device, Rumbles):
                    device.rumble()

    @contextlib.contextmanager
    def serve(self) -> Iterator[None]:
        """Serve the console, if there is one, and print its address.

        Raises:
            ConsoleError: if it cannot be served.
        """
        if self.console is None:
            yield
            return
        with serving(self.console):
            yield

    def _show_chosen(self, arm: str) -> None:
        self.board.choose(arm)
        self.board.remark(f"the {arm} arm is led from now on")

    def _map(self, device: Device) -> DeviceMap:
        path = self._options.maps.get(device.kind)
        mapping = default_map(device.kind) if path is None else load_map(path)
        return replace(mapping, engage=self._options.engage) if self._options.engage is not None else mapping

    def _mark(self, role: str) -> None:
        """End the episode by the buttons of a device, where the job has no requests of its own; `start` resumes."""
        if role in ("success", "failure"):
            self.supervision.mark(role == "success")
        elif role == "start":
            for name in (PAUSE, ARM):
                self.supervision.release(name)


def led_arms(devices: Sequence[str], spec: TaskSpec) -> list[str]:
    """Return which arm each device leads, of `OperatorOptions.devices`; empty: it is shared.

    Raises:
        DeviceError: if the task has no such arm.
    """
    led = [given.rpartition("=")[0] for given in devices]
    if unknown := sorted(set(led) - {"", *spec.arms}):
        arms = f"the arms {', '.join(spec.arms)}" if spec.arms else "one arm, without a name"
        raise DeviceError(
            f"no arm is called {', '.join(unknown)}: {spec.name} has {arms}; give devices as "
            f"{'ARM=KIND, or KIND for all arms' if spec.arms else 'KIND'}"
        )
    return led


@contextlib.contextmanager
def open_operator(
    cell: Workcell,
    options: OperatorOptions,
    board: JobState,
    *,
    store: Path | Mapping[str, Path] | None = None,
    log: Log | None = None,
) -> Iterator[OperatorSetup]:
    """Open the devices and make the console; `OperatorSetup.serve` opens the console to people.

    An emergency stop that nobody had released when the program ended is on again.

    Args:
        cell: The robot and its task.
        options: Devices and console.
        board: State of the job that the console shows.
        store: Episodes to replay and label in the console; of tasks that take turns, those of each by its name.
        log: File for the record of what the operator did; of tasks that take turns, that of each by its name.

    Raises:
        DeviceError: if a device cannot be used.
        ConsoleError: if the console's certificate cannot be used.
    """
    if not options.devices and options.console is None:
        raise DeviceError("an operator needs a device or the console: --teleop KIND or --console")
    with contextlib.ExitStack() as stack:
        led = led_arms(options.devices, cell.task.spec)
        devices = open_devices([given.rpartition("=")[2] for given in options.devices])
        for device in devices:
            stack.callback(device.close)
        setup = OperatorSetup(cell, options, board, list(zip(led, devices, strict=True)))
        if options.console is not None:
            make = console_class()
            setup.console = make(
                options.console,
                setup.supervision,
                board,
                lambda name: setup.request(name),
                on_label=lambda episode_id, success: setup.on_label(episode_id, success),
                token=options.token,
                certificate=options.certificate,
                store=store,
                log=log,
                geometry=Geometry(cell.mounts, cell.links),
                heartbeat=options.heartbeat,
            )
        setup.connect()
        if options.console is not None and log is not None and (who := not_released(log)) is not None:
            emergency_stop(setup.supervision, f"emergency stop by {who}, before this program was started")
        yield setup


MakeWorkcell = Callable[[str, WorkcellOptions], Workcell]
"""Makes the workcell of a task."""


def viewed_workcell(task: str, observed: WorkcellOptions) -> Workcell:
    """Make a workcell in real time with live views; without them, if none can be rendered."""
    options = replace(observed, realtime=True)
    if options.cameras:
        return make_workcell(task, options)
    probe = make_workcell(task)
    cameras = probe.task.spec.cameras
    probe.close()
    try:
        return make_workcell(task, replace(options, cameras=cameras, image_size=VIEW_SIZE))
    except RenderError as error:
        logger.warning("no live views: %s", error)
        return make_workcell(task, options)


@contextlib.contextmanager
def serving(console: Console) -> Iterator[None]:
    """Serve a console, and print how it is opened.

    Raises:
        ConsoleError: if it cannot be served.
    """
    from robot_rl.console.introduction import introduce

    with console:
        introduce(console)
        yield


def console_class() -> type[Console]:
    """Import the class of consoles, which needs extra packages.

    Raises:
        DeviceError: if one is not installed.
    """
    try:
        import robot_rl.console.introduction  # noqa: F401
        from robot_rl.console.server import Console
    except ImportError as error:
        raise DeviceError(
            f"the console needs the package {error.name}; install it: pip install 'robot_rl[console]'"
        ) from error
    return Console
