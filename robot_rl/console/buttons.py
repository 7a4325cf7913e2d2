"""The actions of the page's buttons. The console's thread calls them; they take effect in the control loop.

Every page may stop the robot. Only the page in control may move it, label episodes and resume.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from robot_rl.console.camera_views import CameraViews, along_base
from robot_rl.console.control_lease import Lease
from robot_rl.console.job_state import JobState
from robot_rl.console.protocol import AXES, BUTTONS, InputMessage
from robot_rl.console.turns_state import own_name
from robot_rl.env.supervision import ARM, E_STOP, EVALUATING, PAUSE, RESET, Supervised
from robot_rl.errors import RobotRLError, RunDirectoryError, UnknownNameError
from robot_rl.system.atomic_file import append_row
from robot_rl.system.checked_json import read_rows
from robot_rl.teleop.pushed import PushedDevice

LOST = "operator"
"""Name of the hold when the page in control is gone."""
FOR_EVERYBODY = ("e-stop", "pause")
JUDGEMENTS = ("success", "failure", "reset")
"""Buttons about the episode that the page shows."""
Log = Path | Mapping[str, Path]
"""File for the record of actions and notes; of tasks that take turns, that of each by its name."""
BACKSTOP = 1.25
"""Age of the newest input, in heartbeats, at which the control loop holds by itself, were the console stuck."""


class PageDevices(NamedTuple):
    """The devices that the page in control moves."""

    first: PushedDevice
    """Keys, pads and gamepad, or a hand."""
    other: PushedDevice
    """A second hand, which leads the arm beside."""

    @classmethod
    def within(cls, heartbeat: float) -> PageDevices:
        """Return them as long as nothing moves them.

        Args:
            heartbeat: Time without a message from the page in control after which the arm holds [s].
        """
        first, other = (
            PushedDevice("browser", AXES, BUTTONS, name=name, max_age=BACKSTOP * heartbeat)
            for name in ("console", "console, other hand")
        )
        return cls(first, other)

    def detach(self) -> None:
        """Nobody holds them any more, on purpose."""
        for device in self:
            device.detach()


class StoppedError(RobotRLError):
    """What was requested has to wait until the emergency stop is released."""


class LateError(RobotRLError):
    """A judgement of an episode came after its end."""


class NotRecordedError(RobotRLError):
    """A note was given where nothing is recorded."""


class PageActions:
    """Executes the requests of pages.

    Args:
        supervision: Of the robot.
        job: State of the job, which lists its requests.
        lease: Who holds control.
        devices: Receive what the page's hands do.
        views: How the cameras see the robot.
        request: Passes a request to the job.
        on_label: Receives an episode's id and whether it was a success, when a person labels a recorded episode.
        log: File for the record of actions and notes of operators, one JSON object a line.
    """

    def __init__(
        self,
        supervision: Supervised,
        job: JobState,
        lease: Lease,
        devices: PageDevices,
        views: CameraViews,
        request: Callable[[str], None],
        on_label: Callable[[str, bool], None],
        log: Log | None = None,
    ) -> None:
        self._supervision, self._job, self._lease, self._devices = supervision, job, lease, devices
        self._views = views
        self._request, self._on_label, self.log = request, on_label, log

    def do(self, page: int, name: str, what: str, episode: str = "") -> None:
        """Execute a button of a page, which shows an episode; empty: no matter which.

        Raises:
            LateError: if it judges an episode that is not the running one any more.
            LeaseError: if it is only for the page in control, and the page is not.
            UnknownNameError: if there is no such button now.
            StoppedError: if it would resume under an emergency stop.
        """
        if what not in FOR_EVERYBODY:
            self._lease.check(page)
        if what in JUDGEMENTS and episode not in ("", self._job.state()["episode"]["id"]):
            raise LateError(f"{episode} had ended before: {what} was not counted; label it in the list of episodes")
        supervision = self._supervision
        actions: dict[str, Callable[[], None]] = {
            "e-stop": lambda: self._emergency_stop(name),
            "pause": lambda: supervision.hold(PAUSE, f"paused by {name}"),
            "release e-stop": lambda: supervision.release(E_STOP),
            "resume": self._resume,
            "success": lambda: supervision.mark(True),
            "failure": lambda: supervision.mark(False),
            "reset": lambda: supervision.cut(RESET),
        }
        if self._job.state()["phase"]["name"] == EVALUATING:
            del actions["reset"]  # an evaluation makes its own scenes ready
        of_job = self._job.requests
        if what in of_job:
            self._request(what)
        elif what in actions:
            actions[what]()
        else:
            raise UnknownNameError("button", what, {*actions, *of_job})
        self.write(name, "do", what=what)

    def lead(self, page: int, given: InputMessage) -> None:
        """Pass on the input of the page in control.

        Raises:
            LeaseError: if the page does not hold it.
            BadMessageError: if the pose of its camera is not known.
        """
        self._lease.beat(page)
        self._devices.first.push(self._views.along_base(given.axes, given.camera), given.buttons)
        beside = self._job.beside
        if given.other is None or beside is None:
            self._devices.other.detach()
            return
        axes = self._views.along_base(given.other.axes, given.camera)
        self._devices.other.push(along_base(axes, beside.heading), given.other.buttons)

    def lost(self, name: str, why: str) -> None:
        """Hold the arm at once, because the page in control is gone; what fails at it is a remark.

        Nobody could handle an error here, and with it would end who watches the next page.
        """
        try:
            self._supervision.hold(LOST, f"{name} {why}; take control and press Resume")
        except Exception as error:  # noqa: BLE001  (of an arm's driver; commands are dropped all the same)
            self._job.remark(f"the arm could not be stopped: {error}")
        self._devices.detach()
        self._job.remark(f"holding: {name} {why}")
        try:
            self.write(name, "lost", why=why)
        except RunDirectoryError as error:
            self._job.remark(str(error))

    def left(self, name: str) -> None:
        """Detach the device, because control was given back; the policy goes on."""
        self._devices.detach()
        self.write(name, "left")

    def labelled(self, name: str, episode_id: str, success: bool, overlay: str) -> None:
        """Pass on the label of a recorded episode."""
        self._job.labelled(episode_id, success, name)
        self._on_label(episode_id, success)
        self.write(name, "label", label=overlay, of=episode_id, success=success)

    def note(self, name: str, kind: str, text: str) -> None:
        """Keep a note, or a reason.

        Raises:
            NotRecordedError: if nothing is recorded, or not yet.
            RunDirectoryError: if it cannot be written.
        """
        if self.log is None:
            raise NotRecordedError(f"nothing is recorded here now, so this was not noted: {text}")
        self.write(name, kind, text=text)

    def write(self, name: str, kind: str, **facts: Any) -> None:
        """Add to the record of actions and notes.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        if self.log is None:
            return
        log, episode = self.log, self._job.state()["episode"]
        facts |= {"episode": episode["id"], "step": episode["step"]}
        if not isinstance(log, Path):  # in the record of the task that it is about
            about = facts.get("of") or facts["episode"] or ""
            log = log[own_name(about)[0] or self._job.job["task"]]
            facts |= {key: own_name(facts[key])[1] for key in ("of", "episode") if facts.get(key)}
        row = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "who": name,
            "kind": kind,
            **facts,
        }
        append_row(log, row)

    def _emergency_stop(self, name: str) -> None:
        emergency_stop(self._supervision, f"emergency stop by {name}")
        self._job.remark(f"emergency stop by {name}")

    def _resume(self) -> None:
        if any(hold.name == E_STOP for hold in self._supervision.holds):  # or its release would move the arm
            raise StoppedError("the emergency stop is still on; release it first, then resume")
        for name in (PAUSE, LOST, ARM):  # the last is the consent that a stopped arm recovers
            self._supervision.release(name)


def emergency_stop(supervision: Supervised, reason: str) -> None:
    """Hold the arm until a person releases the stop and then resumes."""
    try:
        supervision.hold(E_STOP, reason)
    finally:  # also where the arm's driver fails at it
        supervision.hold(PAUSE, "paused after an emergency stop")  # so that releasing it moves nothing


def not_released(log: Log) -> str | None:
    """Return who pressed the emergency stop that is the last in such a record, if nobody has released it since."""
    stops = ("e-stop", "release e-stop")
    logs = [one for one in ([log] if isinstance(log, Path) else log.values()) if one.is_file()]
    rows = [row for one in logs for row in read_rows(one) if row.get("what") in stops]
    if len(logs) > 1:
        rows.sort(key=lambda row: str(row["time"]))
    return str(rows[-1]["who"]) if rows and rows[-1]["what"] == "e-stop" else None
