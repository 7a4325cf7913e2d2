"""USB: the speed of cameras, how many share a bus, and devices that the kernel sends to sleep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine, entries, read_number, read_text
from robot_rl.doctor.contract.result import CheckResult

VIDEO, INPUT = "0e", "03"
"""Classes of interfaces: cameras, input devices."""
INTEL = "8086"
"""Maker of RealSense cameras, which want USB 3."""
USB3 = 5000.0
"""[Mbit/s]."""
BUS_SHARE = 0.8
"""Of a bus that isochronous transfers may take (USB 2.0 specification, 5.6.4)."""
RAW_MEMORY = 16.0
"""Default of `usbfs_memory_mb` [MB]; too little for raw frames of several cameras."""


@dataclass(frozen=True)
class UsbDevice:
    """A device on a bus.

    Attributes:
        folder: Below `/sys/bus/usb/devices`.
        name: For people.
        vendor: Number of its maker, hexadecimal.
        bus: Number of its bus.
        speed: [Mbit/s].
        classes: Of its interfaces.
        is_serial: Whether it is a serial port.
    """

    folder: Path
    name: str
    vendor: str
    bus: int
    speed: float
    classes: frozenset[str]
    is_serial: bool

    @property
    def is_camera(self) -> bool:
        """Whether it has an interface for video."""
        return VIDEO in self.classes

    @property
    def may_not_sleep(self) -> bool:
        """Whether a pause of it would be felt: a camera, a serial adapter, an input device."""
        return self.is_camera or self.is_serial or INPUT in self.classes


def usb_devices(machine: Machine) -> list[UsbDevice]:
    """List what is plugged in, without hubs."""
    found = []
    for folder in entries(machine.sys / "bus/usb/devices"):
        vendor = read_text(folder / "idVendor")
        if vendor is None or read_text(folder / "bDeviceClass") == "09":
            continue
        interfaces = (read_text(part / "bInterfaceClass") for part in folder.glob(f"{folder.name}:*"))
        names = filter(None, (read_text(folder / part) for part in ("manufacturer", "product")))
        name = " ".join(names) or f"{vendor}:{read_text(folder / 'idProduct')}"
        bus, speed = read_number(folder / "busnum") or 0, read_number(folder / "speed") or 0.0
        ports = [*folder.glob(f"{folder.name}:*/ttyUSB*"), *folder.glob(f"{folder.name}:*/tty/ttyACM*")]
        classes = frozenset(filter(None, interfaces))
        found.append(UsbDevice(folder, name, vendor, int(bus), speed, classes, bool(ports)))
    return found


def check_usb(machine: Machine) -> Iterator[CheckResult]:
    """Look at all devices."""
    devices = usb_devices(machine)
    if not devices:
        yield CheckResult("USB", "ok", "nothing is plugged in")
        return
    yield CheckResult("USB", "ok", f"plugged in: {', '.join(device.name for device in devices)}")
    cameras = [device for device in devices if device.is_camera]
    for device in cameras:
        if device.vendor == INTEL and device.speed < USB3:
            yield CheckResult(
                f"USB speed {device.name}",
                "note",
                f"{device.name} runs at {device.speed:.0f} Mbit/s: fewer formats, and frames that are late",
                device.speed,
                "Mbit/s",
                f"at least {USB3:.0f}",
                "plug it into a blue socket (USB 3) with the cable that came with it",
            )
    yield from _shared_buses(cameras)
    yield from _sleepers(devices)
    memory = read_number(machine.sys / "module/usbcore/parameters/usbfs_memory_mb")
    if len(cameras) > 1 and memory is not None and memory <= RAW_MEMORY:
        yield CheckResult(
            "USB memory",
            "note",
            f"programs may use {memory:.0f} MB for USB transfers; {len(cameras)} cameras with raw frames need more",
            memory,
            "MB",
            "at least 256",
            "echo 256 | sudo tee /sys/module/usbcore/parameters/usbfs_memory_mb",
        )


def _shared_buses(cameras: list[UsbDevice]) -> Iterator[CheckResult]:
    """Note slow buses with several cameras: each is granted its largest rate, so the second may get none."""
    by_bus = defaultdict(list)
    for camera in cameras:
        by_bus[camera.bus].append(camera)
    for bus, sharing in by_bus.items():
        slow = [camera for camera in sharing if camera.speed < USB3]
        if len(slow) > 1:
            room = BUS_SHARE * min(camera.speed for camera in slow)
            yield CheckResult(
                f"USB bus {bus}",
                "note",
                f"{len(slow)} cameras share {room:.0f} Mbit/s: {', '.join(camera.name for camera in slow)}; one may "
                "fail to start",
                len(slow),
                "cameras",
                "at most 1 on a USB 2 bus",
                "plug them into sockets of different buses; lsusb -t shows which",
            )


def _sleepers(devices: list[UsbDevice]) -> Iterator[CheckResult]:
    for device in devices:
        if device.may_not_sleep and read_text(device.folder / "power/control") == "auto":
            delay = read_number(device.folder / "power/autosuspend_delay_ms")
            after = f" after {delay / 1e3:g} s" if delay is not None and delay >= 0 else ""
            yield CheckResult(
                f"USB sleep {device.name}",
                "note",
                f"the kernel may suspend {device.name} when idle{after}; it then comes back late, or not at all",
                limit="on",
                cure=f"echo on | sudo tee /sys/bus/usb/devices/{device.folder.name}/power/control",
            )
