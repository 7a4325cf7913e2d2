"""ATI's Net F/T box: forces as UDP datagrams.

Source: ATI, "Network Force/Torque Sensor System Manual", 9.1 to 9.3 (RDT), and the page `netftapi2.xml` of the box
(counts per unit).
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable

import numpy as np
from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.kinematics.chain import quat_from_rpy
from robot_rl.config.field_types import STRICT, NonNegativeReal, PositiveReal, Real
from robot_rl.errors import ArmStoppedError, ConfigError, RobotLostError
from robot_rl.geometry import quat_rotate

RDT_PORT = 49152
_HEADER, _START, _STOP = 0x1234, 0x0002, 0x0000
_RECORD = struct.Struct(">III6i")
SILENCE = 0.5
"""Time without a sample after which the stream is requested again [s]."""
FIRST_SAMPLE = 2.0
"""Longest time to the first sample [s]."""
_NEWTONS = {"N": 1.0, "kN": 1000.0, "lbf": 4.4482216, "klbf": 4448.2216, "kgf": 9.80665, "gf": 0.00980665}
_NEWTON_METRES = {"Nm": 1.0, "N-m": 1.0, "Nmm": 0.001, "N-mm": 0.001, "kNm": 1000.0, "kN-m": 1000.0}
_NEWTON_METRES |= {"lbf-in": 0.11298483, "lbf-ft": 1.3558179, "kgf-cm": 0.0980665}


@dataclass(frozen=True, config=STRICT)
class NetFtConfig:
    """A Net F/T sensor."""

    address: str = "192.168.1.1"
    """Of the box: an IP address or a name."""
    port: int = RDT_PORT
    """UDP port of its RDT server."""
    counts_per_newton: NonNegativeReal = 0.0
    """Counts per N; 0: from the page of the box."""
    counts_per_newton_metre: NonNegativeReal = 0.0
    """Counts per Nm; 0: from the page of the box."""
    offset: tuple[Real, Real, Real] = (0.0, 0.0, 0.0)
    """Origin of the sensor's frame in the frame of the tcp [m]."""
    rpy: tuple[Real, Real, Real] = (0.0, 0.0, 0.0)
    """Its axes there: roll, pitch, yaw about fixed axes [rad]."""
    max_age: PositiveReal = 0.2
    """Age of the newest sample from which it counts as lost [s]."""


class NetFt:
    """A sensor. Set the box's RDT output rate to about 500 Hz: that is what one Python thread takes without effort.

    Args:
        config: Its settings.
        host: The program that runs it.

    Raises:
        ConfigError: if the counts per unit are neither given nor on the page of the box.
    """

    Config = NetFtConfig

    def __init__(self, config: NetFtConfig, host: DriverHost) -> None:
        self._config, self._host = config, host
        self._units = np.repeat(counts_per_unit(config), 3)
        self._turn = quat_from_rpy(*config.rpy)
        self._offset = np.array(config.offset)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(0.1)
        self._receive: Callable[[int, np.ndarray], None] = _discard
        self._sequence = -1
        self.lost = 0
        """Number of samples that did not arrive."""
        self._newest = 0.0
        self._status = 0
        self._fault: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="net_ft", daemon=True)

    def start(self, receive: Callable[[int, np.ndarray], None]) -> None:
        """Request the stream.

        Raises:
            RobotLostError: if no sample comes.
        """
        self._receive = receive
        self._request(_START)
        self._thread.start()
        end = time.monotonic() + FIRST_SAMPLE
        while not self._newest:
            if time.monotonic() > end:
                raise RobotLostError(self._silent())
            time.sleep(0.01)

    def faults(self) -> list[str]:
        """Return why its readings cannot be used now."""
        if self._newest and time.monotonic() - self._newest > self._config.max_age:
            self._fault = self._silent()
        return [self._fault] if self._fault is not None else []

    def recover(self) -> None:
        """Go on after a person has consented.

        Raises:
            ArmStoppedError: if no sample comes, or the box reports a fault.
        """
        if time.monotonic() - self._newest > self._config.max_age:
            raise ArmStoppedError(self._silent())
        if self._status:
            raise ArmStoppedError(self._described_status())
        self._fault = None

    def close(self) -> None:
        """End the stream; doing it twice is fine."""
        if not self._ended.is_set():
            self._ended.set()
            self._request(_STOP)
            if self._thread.is_alive():
                self._thread.join(1.0)
            self._socket.close()

    def _run(self) -> None:
        requested = time.monotonic()
        while not self._ended.is_set():
            try:
                data = self._socket.recv(1024)
            except (TimeoutError, ConnectionRefusedError):
                data = b""
            if len(data) == _RECORD.size:
                self._take(*_RECORD.unpack(data))
            elif time.monotonic() - max(self._newest, requested) > SILENCE:  # the box was restarted
                requested, self._sequence = time.monotonic(), -1
                self._request(_START)

    def _take(self, sequence: int, sensor: int, status: int, *counts: int) -> None:
        del sensor  # of the samples inside the box
        if self._sequence >= 0 and (ahead := (sequence - self._sequence) & 0xFFFFFFFF) != 1:
            if ahead == 0 or ahead > 1 << 31:
                return  # one that was overtaken
            self.lost += ahead - 1
        self._sequence = sequence
        self._newest, self._status = time.monotonic(), status
        if status:
            self._fault = self._described_status()
            return
        wrench = np.array(counts) / self._units
        force, torque = quat_rotate(self._turn, wrench[:3]), quat_rotate(self._turn, wrench[3:])
        self._receive(self._host.wall.now(), np.concatenate((force, torque + np.cross(self._offset, force))))

    def _request(self, command: int) -> None:
        try:
            self._socket.sendto(struct.pack(">HHI", _HEADER, command, 0), (self._config.address, self._config.port))
        except OSError as error:
            self._fault = f"the Net F/T box at {self._config.address} cannot be reached: {error.strerror}"

    def _silent(self) -> str:
        return (
            f"no forces come from the Net F/T box at {self._config.address}, port {self._config.port}; check its "
            "power, its cable, and that RDT is enabled on its page"
        )

    def _described_status(self) -> str:
        return (
            f"the Net F/T box reports the status {self._status:#010x} (saturation, or a fault of the sensor); its page "
            "`Snapshot` names it"
        )


def counts_per_unit(config: NetFtConfig) -> np.ndarray:
    """Return counts per N and per Nm, from the settings or from the page of the box. Shape (2,).

    Raises:
        ConfigError: if the page does not show them.
    """
    if config.counts_per_newton and config.counts_per_newton_metre:
        return np.array([config.counts_per_newton, config.counts_per_newton_metre])
    url = f"http://{config.address}/netftapi2.xml"
    cure = "set counts_per_newton and counts_per_newton_metre from the page `Configurations` of the box"
    try:
        with urllib.request.urlopen(url, timeout=2.0) as page:
            text = page.read(65536).decode(errors="replace")
    except (urllib.error.URLError, OSError) as error:
        raise ConfigError(f"the Net F/T box does not show {url} ({error}); {cure}") from error
    fields = dict(re.findall(r"<(cfgcpf|cfgcpt|scfgfu|scfgtu)>\s*([^<]*?)\s*</", text))
    try:
        force = float(fields["cfgcpf"]) / _NEWTONS[fields["scfgfu"]]
        torque = float(fields["cfgcpt"]) / _NEWTON_METRES[fields["scfgtu"]]
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{url} has no counts per unit that are understood ({error}); {cure}") from error
    return np.array([force, torque])


def _discard(stamp: int, wrench: np.ndarray) -> None:
    """Drop what is measured before `start`."""
