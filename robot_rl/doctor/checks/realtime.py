"""Is the kernel a real-time one, and may this user have real-time priority and locked memory?"""

from __future__ import annotations

from collections.abc import Iterator

from robot_rl.doctor.contract.machine import Machine, read_text
from robot_rl.doctor.contract.result import CheckResult

WANTED_PRIORITY = 80
"""Of the thread that talks to an arm at 1 kHz."""
_SYS_NICE = 23
"""Number of the capability CAP_SYS_NICE: any priority, whatever the limits are."""
_CURE_KERNEL = {
    "debian": "sudo apt install linux-image-rt-amd64, then start the machine with that kernel",
    "ubuntu": "sudo pro attach TOKEN && sudo pro enable realtime-kernel, then restart the machine",
}
_CURE_RIGHTS = (
    "sudo groupadd -f realtime && sudo usermod -aG realtime $USER && "
    r"printf '@realtime - rtprio 99\n@realtime - memlock unlimited\n' | sudo tee /etc/security/limits.d/realtime.conf; "
    "then log in again"
)


def check_realtime(machine: Machine) -> Iterator[CheckResult]:
    """Look at the kernel and at the rights of this user."""
    version = read_text(machine.proc / "version") or ""
    name = " ".join(version.split()[:3]) or "the kernel"
    if read_text(machine.sys / "kernel/realtime") == "1" or "PREEMPT_RT" in version:
        yield CheckResult("real-time kernel", "ok", f"{name} is a real-time kernel")
    else:
        yield CheckResult(
            "real-time kernel",
            "note",
            f"{name} has no real-time preemption: enough for arms with a controller of their own (UR, xArm, servos), "
            "too little where this machine itself closes a 1 kHz loop (Franka)",
            cure=_CURE_KERNEL.get(machine.distribution(), "install the PREEMPT_RT kernel of your distribution"),
        )
    limits = _limits(machine)
    priority, locked = limits.get("Max realtime priority"), limits.get("Max locked memory")
    if priority is None or locked is None:
        yield CheckResult("real-time rights", "note", "the limits of this user are not reported here")
    elif _may_do_anything(machine) or (priority >= WANTED_PRIORITY and locked == float("inf")):
        yield CheckResult("real-time rights", "ok", "this user may have real-time priority and lock memory")
    else:
        held = "without limit" if locked == float("inf") else f"up to {locked / 2**20:.0f} MiB"
        yield CheckResult(
            "real-time rights",
            "note",
            f"this user may have real-time priority up to {priority:.0f} and lock memory {held}: on a loaded machine "
            "control is late",
            priority,
            limit=f"at least {WANTED_PRIORITY}, memory without limit",
            cure=_CURE_RIGHTS,
        )


def _limits(machine: Machine) -> dict[str, float]:
    """Return the soft limits of this process by name."""
    limits = {}
    for line in (read_text(machine.proc / "self/limits") or "").splitlines()[1:]:
        soft = line[26:].split()[:1]
        if soft and (soft[0].isdecimal() or soft[0] == "unlimited"):
            limits[line[:26].strip()] = float(soft[0].replace("unlimited", "inf"))
    return limits


def _may_do_anything(machine: Machine) -> bool:
    for line in (read_text(machine.proc / "self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _SYS_NICE & 1)
    return False
