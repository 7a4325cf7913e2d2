"""Does an arm that stands report what it claims to: often enough, without gaps, with right stamps, quietly?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.doctor.contract.result import CheckResult, judged
from robot_rl.doctor.standing.observation import ArmObservation
from robot_rl.env.state_assembler import Joints

LEAST_RATE = 50.0
"""Of poses [Hz]: five in a period of control."""
GAP_NOTE = 0.05
"""Between two poses [s]; a fault is what the limits on age refuse."""
DELAY_NOTE = 0.02
"""From the measurement to its arrival here [s]."""
AHEAD = 0.005
"""How far a stamp may be in the future [s]."""
MOVED = 1e-3
"""By which an arm that stands may move [m]."""
FORCE_NOISE, FORCE_BIAS = 1.0, 5.0
"""Of the force of a tool that touches nothing [N]."""


def judge_measurements(seen: ArmObservation) -> Iterator[CheckResult]:
    """Judge everything that was observed."""
    for number, fault in enumerate(seen.faults, 1):
        name = "arm faults" if len(seen.faults) == 1 else f"arm faults {number}"
        yield CheckResult(name, "fault", fault, cure="cure what it names, at the arm or in its settings")
    if not seen.faults:
        yield CheckResult("arm faults", "ok", "the arm would obey a command")
    for number, problem in enumerate(seen.problems, 1):
        yield CheckResult(f"driver {number}", "note", problem, cure="see the text; the driver reports it by itself")
    yield from (CheckResult(**(asdict(own) | {"name": f"arm {own.name}"})) for own in seen.own)
    missing = sorted(part for part in seen.measures - {"gripper"} if not seen.samples.get(part))
    if missing:
        text = f"the driver reports no {', '.join(missing)}"
        yield CheckResult(
            "arm state", "fault", text, cure="is the arm switched on, connected, and its controller active?"
        )
    if seen.samples.get("pose"):
        yield from _rate(seen)
        yield from _stamps(seen)
        yield _rest(seen)
    if seen.samples.get("joints"):
        yield _joints(seen)
    if "wrench" not in seen.measures:
        text = "this arm measures no force: no limit on forces is in effect"
        yield CheckResult("wrench", "note", text, cure="add a force sensor, or keep the stiffness low")
    elif seen.samples.get("wrench"):
        yield _wrench(seen)


def _rate(seen: ArmObservation) -> Iterator[CheckResult]:
    arrivals = np.array([arrival for arrival, _, _ in seen.samples["pose"]]) / NS_PER_S
    silent = max(0.0, seen.seconds - float(arrivals[-1] - arrivals[0]))  # from the last pose to the end
    gaps = np.append(np.diff(arrivals), silent)
    rate, gap = (len(arrivals) - 1) / max(seen.seconds, float(arrivals[-1] - arrivals[0]), 1e-9), float(gaps.max())
    slow = rate < LEAST_RATE
    yield CheckResult(
        "arm rate",
        "note" if slow else "ok",
        f"{rate:.0f} poses come in a second",
        round(rate, 2),
        "Hz",
        f"at least {LEAST_RATE:g} Hz",
        "raise the rate in the driver's settings" if slow else "",
    )
    severity = judged(gap, GAP_NOTE, seen.max_age)
    yield CheckResult(
        "arm gap",
        severity,
        f"the longest time without a pose was {1e3 * gap:.0f} ms; beyond {1e3 * seen.max_age:.0f} ms the arm holds",
        round(1e3 * gap, 2),
        "ms",
        f"at most {1e3 * GAP_NOTE:g} ms",
        "" if severity == "ok" else "cure the notes on wake-up lateness and network first; end other programs",
    )


def _stamps(seen: ArmObservation) -> Iterator[CheckResult]:
    delays = np.array([arrival - stamp for arrival, stamp, _ in seen.samples["pose"]]) / NS_PER_S
    stamps = np.array([stamp for _, stamp, _ in seen.samples["pose"]])
    median = float(np.median(delays))
    if median < -AHEAD or median > seen.max_age:
        where = f"{1e3 * -median:.0f} ms in the future" if median < 0 else f"{1e3 * median:.0f} ms old on arrival"
        text = f"measurements are {where}: the clocks of the arm and of this machine differ, and the arm holds"
        cure = "synchronise both clocks (chrony), or have the driver stamp on arrival"
        yield CheckResult(
            "arm stamps", "fault", text, round(1e3 * median, 2), "ms", f"0 to {1e3 * DELAY_NOTE:g} ms", cure
        )
    elif (back := int((np.diff(stamps) <= 0).sum())) > 0:
        text = f"{back} of {len(stamps)} measurements are not later than the one before"
        yield CheckResult("arm stamps", "fault", text, back, "samples", "none", "report it to whoever wrote the driver")
    else:
        late = median > DELAY_NOTE
        yield CheckResult(
            "arm stamps",
            "note" if late else "ok",
            f"measurements arrive {1e3 * median:.1f} ms after they were made",
            round(1e3 * median, 3),
            "ms",
            f"at most {1e3 * DELAY_NOTE:g} ms",
            "look at the network, and at the rate of the driver" if late else "",
        )


def _rest(seen: ArmObservation) -> CheckResult:
    positions = np.array([pose.position for _, _, pose in seen.samples["pose"]])
    moved = float(np.linalg.norm(positions.max(axis=0) - positions.min(axis=0)))
    bad = moved > MOVED
    return CheckResult(
        "arm at rest",
        "note" if bad else "ok",
        f"nobody commands it, and the tcp moves within {1e3 * moved:.2f} mm",
        round(1e3 * moved, 4),
        "mm",
        f"at most {1e3 * MOVED:g} mm",
        "is somebody guiding it, or does it sink? enter the payload of the tool" if bad else "",
    )


def _joints(seen: ArmObservation) -> CheckResult:
    joints: Joints = seen.samples["joints"][-1][2]
    angles = ", ".join(f"{angle:.2f}" for angle in joints.position)
    return CheckResult("arm joints", "ok", f"{len(joints.position)} joints stand at {angles} rad")


def _wrench(seen: ArmObservation) -> CheckResult:
    forces = np.array([wrench[:3] for _, _, wrench in seen.samples["wrench"]])
    bias, noise = float(np.linalg.norm(forces.mean(axis=0))), float(np.sqrt(forces.var(axis=0).sum()))
    text = f"untouched, the tool feels {bias:.1f} N with a noise of {noise:.2f} N (standard deviation)"
    limit = f"at most {FORCE_BIAS:g} N, noise {FORCE_NOISE:g} N"
    if noise == 0.0:
        cure = "is it measured at all? a driver without a sensor must not report zeros"
        return CheckResult("wrench", "note", f"{text}: it never changes", 0.0, "N", limit, cure)
    if noise > FORCE_NOISE:
        return CheckResult(
            "wrench", "note", text, round(noise, 3), "N", limit, "lower wrench_cutoff; look for vibrations"
        )
    if bias > FORCE_BIAS:
        cure = "tare the sensor (episodes do so at each reset), and enter the payload of the tool"
        return CheckResult("wrench", "note", text, round(bias, 3), "N", limit, cure)
    return CheckResult("wrench", "ok", text, round(bias, 3), "N", limit)
