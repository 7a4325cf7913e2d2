"""Can ROS 2 nodes find each other, and do the buffers of sockets hold a camera's frame?"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from robot_rl.doctor.contract.machine import Machine, entries, read_number, read_text
from robot_rl.doctor.contract.result import CheckResult

GROUP = "239.255.0.1"
"""Where DDS participants announce themselves."""
WAIT = 0.2
"""For an own packet [s]."""
WANTED_BUFFER = 2 * 2**20
"""Bytes; a frame of 640 x 480 px takes 0.9 MB and comes in one go."""
_MULTICAST, _UP = 0x1000, 0x1
"""Flags of a network card."""


def check_dds(
    machine: Machine, has_ros: bool | None = None, hears: Callable[[int], bool] | None = None
) -> Iterator[CheckResult]:
    """Look at buffers and at the environment, and send a packet to ourselves over each network card.

    Args:
        machine: What is examined.
        has_ros: Whether ROS 2 is installed; None finds out. Without it, nothing here is needed.
        hears: Whether a packet over the card of an index comes back; None sends one.
    """
    if not (find_spec("rclpy") is not None if has_ros is None else has_ros):
        yield CheckResult("ROS 2", "ok", "ROS 2 is not installed here, and not needed for a driver without topics")
        return
    yield from _buffers(machine)
    yield _discovery(machine)
    for card in entries(machine.sys / "class/net"):
        flags, index = int(read_text(card / "flags") or "0", 16), read_number(card / "ifindex")
        if not flags & _UP or index is None or (card.name != "lo" and not flags & _MULTICAST):
            continue
        heard = (hears or hears_itself)(int(index))
        yield CheckResult(
            f"DDS multicast {card.name}",
            "ok" if heard else "note",
            f"multicast over {card.name} comes back"
            if heard
            else f"multicast over {card.name} does not come back: nodes do not find each other over it",
            cure=""
            if heard
            else f"sudo ip link set {card.name} multicast on; sudo ufw allow in proto udp to 224.0.0.0/4",
        )


def hears_itself(index: int) -> bool:
    """Send a packet to the group of DDS over the network card of this index, and wait for it."""
    request = struct.pack("4s4si", socket.inet_aton(GROUP), bytes(4), index)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.settimeout(WAIT)
        try:
            receiver.bind(("", 0))  # a free port: no DDS participant hears this
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, request)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)  # it does not leave this machine
            sender.sendto(b"robot_rl doctor", (GROUP, receiver.getsockname()[1]))
            return receiver.recv(64) == b"robot_rl doctor"
        except OSError:
            return False


def _buffers(machine: Machine) -> Iterator[CheckResult]:
    for name in ("rmem_max", "wmem_max"):
        size = read_number(machine.proc / "sys/net/core" / name)
        if size is None:
            continue
        small = size < WANTED_BUFFER
        yield CheckResult(
            f"socket buffer {name}",
            "note" if small else "ok",
            f"a socket may buffer {size / 2**20:.2f} MiB" + ("; frames of cameras get lost over DDS" if small else ""),
            size,
            "bytes",
            f"at least {WANTED_BUFFER}",
            f"sudo sysctl -w net.core.{name}={4 * WANTED_BUFFER}" if small else "",
        )


def _discovery(machine: Machine) -> CheckResult:
    """Report which nodes this shell would find."""
    get = machine.environment.get
    domain, middleware = get("ROS_DOMAIN_ID") or "0", get("RMW_IMPLEMENTATION") or "the default one"
    reach = get("ROS_AUTOMATIC_DISCOVERY_RANGE") or ("LOCALHOST" if get("ROS_LOCALHOST_ONLY") == "1" else "SUBNET")
    text = f"ROS domain {domain}, middleware {middleware}, discovery range {reach}"
    if domain == "0" and reach.upper() == "SUBNET":
        return CheckResult(
            "ROS 2 domain",
            "note",
            f"{text}: the nodes of everybody in this network are found, and find ours",
            cure="export ROS_DOMAIN_ID=N with a number of your own from 1 to 101, on all machines of this robot",
        )
    return CheckResult("ROS 2 domain", "ok", text)
