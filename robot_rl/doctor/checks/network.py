"""The network to the robot: which card leads there, how it is, and how long a packet takes there and back."""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator

from robot_rl.doctor.contract.machine import Machine, read_number, read_text
from robot_rl.doctor.contract.result import CheckResult, judged, percentile

logger = logging.getLogger(__name__)
PERIOD = 0.02
"""Between two probes [s]."""
TIMEOUT = 0.5
"""A probe that takes longer is lost [s]."""
NOTE_ABOVE, FAULT_ABOVE = 2.0, 50.0
"""Of the 99th percentile of the round trip [ms]."""
LOST_NOTE, LOST_FAULT = 0.0, 0.01
"""Share of probes."""
EDGES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Of the bins of the histogram [ms]."""
DEFAULT_PORT = 9
"""Where TCP is tried if ICMP is not allowed: nobody listens there, and a refusal is an answer."""

Probe = Callable[[], float | None]
"""Sends one packet and returns the round trip [s]; None if no answer came in time."""


def check_network(machine: Machine) -> Iterator[CheckResult]:
    """Measure the way to `machine.host`; nothing if there is none."""
    if not machine.host:
        return
    host, port = split_host(machine.host)
    try:
        address = socket.getaddrinfo(host, port or DEFAULT_PORT, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
    except (OSError, UnicodeError) as error:
        yield CheckResult(
            "network address",
            "fault",
            f"the robot's address {host!r} is not known: {error}",
            cure=f"getent hosts {host}",
        )
        return
    yield from _route(machine, str(address))
    yield from judge_round_trips(host, _measure(str(address), port, machine.probe_seconds))


def split_host(text: str) -> tuple[str, int]:
    """Return the host and the port, 0 if there is none, of `HOST` or `HOST:PORT`."""
    host, colon, port = text.rpartition(":")
    return (host, int(port)) if colon and port.isdecimal() and int(port) < 65536 else (text, 0)


def judge_round_trips(host: str, trips: list[float | None]) -> Iterator[CheckResult]:
    """Judge round trips [s]; None for a packet without an answer."""
    answered = [1e3 * trip for trip in trips if trip is not None]
    lost = 1.0 - len(answered) / len(trips)
    if not answered:
        yield CheckResult(
            "network round trip", "fault", f"{host} has not answered one of {len(trips)} packets", cure=f"ping {host}"
        )
        return
    p50, p99, most = percentile(answered, 0.5), percentile(answered, 0.99), max(answered)
    severity = judged(p99, NOTE_ABOVE, FAULT_ABOVE)
    yield CheckResult(
        "network round trip",
        severity,
        f"to {host} and back, of {len(answered)} packets half take up to {p50:.2f} ms, 99 % up to {p99:.2f} ms, the "
        f"slowest {most:.1f} ms",
        round(p99, 3),
        "ms",
        f"at most {NOTE_ABOVE:g} ms for 99 %",
        "" if severity == "ok" else "connect the robot by a cable to a network card of its own, without a switch",
        _histogram(answered),
    )
    severity = judged(lost, LOST_NOTE, LOST_FAULT)
    yield CheckResult(
        "network loss",
        severity,
        f"{len(trips) - len(answered)} of {len(trips)} packets got no answer within {1e3 * TIMEOUT:.0f} ms",
        round(lost, 4),
        limit="none",
        cure="" if severity == "ok" else "change the cable; look for a firewall (sudo iptables -L)",
    )


def _histogram(milliseconds: list[float]) -> tuple[tuple[str, int], ...]:
    low, rows = 0.0, []
    for high in (*EDGES, float("inf")):
        label = f"{low:g} to {high:g} ms" if high < float("inf") else f"over {low:g} ms"
        rows.append((label, sum(low <= trip < high for trip in milliseconds)))
        low = high
    return tuple(rows)


def _route(machine: Machine, address: str) -> Iterator[CheckResult]:
    """Look at the network card that leads to an address."""
    card = route_card(machine, address)
    if not card:
        yield CheckResult(
            "network route",
            "fault",
            f"no network card leads to {address}",
            cure=f"ip route get {address}; give a card an address in its network: sudo ip addr add ADDRESS/24 dev CARD",
        )
        return
    folder = machine.sys / "class/net" / card
    speed, drops = read_number(folder / "speed"), read_number(folder / "statistics/rx_dropped") or 0
    if (folder / "wireless").exists():
        text = f"{card} leads to {address}, and is wireless: it stalls for tenths of a second, and the arm with it"
        yield CheckResult("network route", "note", text, cure="connect the robot by cable")
    elif speed is not None and 0 < speed < 100:
        text = f"{card} leads to {address} with {speed:.0f} Mbit/s"
        yield CheckResult("network route", "note", text, speed, "Mbit/s", "at least 100 Mbit/s", "change the cable")
    else:
        fast = f", {speed:.0f} Mbit/s" if speed is not None and speed > 0 else ""
        yield CheckResult("network route", "ok", f"{card} leads to {address}{fast}; {drops:.0f} packets dropped so far")


def route_card(machine: Machine, address: str) -> str:
    """Return the network card that leads to an IPv4 address, by the longest prefix; empty if none does."""
    wanted = struct.unpack("<I", socket.inet_aton(address))[0]
    if address.startswith("127."):
        return "lo"
    best = ("", -1)
    for line in (read_text(machine.proc / "net/route") or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and re.fullmatch("[0-9A-Fa-f]{8}", fields[1]):
            target, mask = int(fields[1], 16), int(fields[7], 16)
            if wanted & mask == target and bin(mask).count("1") > best[1]:
                best = (fields[0], bin(mask).count("1"))
    return best[0]


def _measure(address: str, port: int, seconds: float) -> list[float | None]:
    """Probe for a time; by ICMP if it is allowed and answered, else by TCP."""
    with _Icmp(address) as icmp:
        probe = icmp.probe if not port and icmp.works() else lambda: tcp_probe(address, port or DEFAULT_PORT)
        trips: list[float | None] = []
        end = time.monotonic() + seconds
        while not trips or time.monotonic() < end:
            begun = time.monotonic()
            trips.append(probe())
            if len(trips) == 5 and not any(trips):
                break  # it is not there; ten seconds more would show the same
            time.sleep(max(0.0, PERIOD - (time.monotonic() - begun)))
    return trips


def tcp_probe(address: str, port: int) -> float | None:
    """Connect by TCP and return the time that it took [s]; a refusal is an answer too."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream:
        stream.settimeout(TIMEOUT)
        begun = time.perf_counter()
        code = stream.connect_ex((address, port))
        took = time.perf_counter() - begun
    return took if code in (0, errno.ECONNREFUSED) else None


class _Icmp:
    """Echo requests without root, where the system allows it (`net.ipv4.ping_group_range`)."""

    def __init__(self, address: str) -> None:
        self._address, self._number = address, 0
        self._socket: socket.socket | None = None
        try:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
            self._socket.settimeout(TIMEOUT)
        except OSError:
            logger.debug("ICMP is not allowed for this user (net.ipv4.ping_group_range); TCP is used")

    def __enter__(self) -> _Icmp:
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def works(self) -> bool:
        """Return whether one of two requests is answered."""
        return self._socket is not None and (self.probe() is not None or self.probe() is not None)

    def probe(self) -> float | None:
        """Send a request of 64 bytes and wait for its own answer."""
        if self._socket is None:
            return None
        self._number = (self._number + 1) % 65536
        head = struct.pack("!BBHHH", 8, 0, 0, os.getpid() % 65536, self._number)
        begun = time.perf_counter()
        try:
            self._socket.sendto(head + bytes(56), (self._address, 0))
            while time.perf_counter() - begun < TIMEOUT:
                reply = self._socket.recv(256)
                if len(reply) >= 8 and struct.unpack("!H", reply[6:8])[0] == self._number:
                    return time.perf_counter() - begun
        except OSError:
            return None
        return None
