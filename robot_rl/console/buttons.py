"""What the buttons of the page do. Called by the console's thread; takes effect in the control loop.

Stopping is for everybody who was let in; leading, judging and going on are for who holds control.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robot_rl.console.control_lease import Lease
from robot_rl.console.job_state import Board
from robot_rl.env.supervision import E_STOP, PAUSE, Supervised
from robot_rl.errors import UnknownNameError
from robot_rl.system.atomic_file import to_json, writing
from robot_rl.teleop.pushed import PushedDevice

LOST = "operator"
"""Name of the hold when who was in control is gone."""
FOR_EVERYBODY = ("e-stop", "pause")


class Desk:
    """Executes what a page asks for.

    Args:
        supervision: Of the robot.
        board: What is shown.
        lease: Who holds control.
        device: What the page's keys, pads and gamepad feed.
        request: Asks something of the job, for the names that the board lists.
        on_label: Told of an episode, and whether it was a success, that a person judged in hindsight.
        log: File for the record of what people did and said, one JSON object a line.
    """

    def __init__(
        self,
        supervision: Supervised,
        board: Board,
        lease: Lease,
        device: PushedDevice,
        request: Callable[[str], None],
        on_label: Callable[[str, bool], None],
        log: Path | None = None,
    ) -> None:
        self._supervision, self._board, self._lease, self._device = supervision, board, lease, device
        self._request, self._on_label, self.log = request, on_label, log

    def do(self, page: int, name: str, what: str) -> None:
        """A button was pressed on a page.

        Raises:
            LeaseError: if it is one for who holds control, and the page does not.
            UnknownNameError: if there is no such button now.
        """
        if what not in FOR_EVERYBODY:
            self._lease.check(page)
        supervision = self._supervision
        actions: dict[str, Callable[[], None]] = {
            "e-stop": lambda: self._emergency_stop(name),
            "pause": lambda: supervision.hold(PAUSE, f"paused by {name}"),
            "release e-stop": lambda: supervision.release(E_STOP),
            "resume": self._resume,
            "success": lambda: supervision.mark(True),
            "failure": lambda: supervision.mark(False),
            "reset": lambda: supervision.cut("reset by the operator"),
        }
        of_job = self._board.requests
        if what in of_job:
            self._request(what)
        elif what in actions:
            actions[what]()
        else:
            raise UnknownNameError("button", what, {*actions, *of_job})
        self.write(name, "do", what=what)

    def lead(self, page: int, axes: list[float], buttons: list[bool]) -> None:
        """The hands of who holds control.

        Raises:
            LeaseError: if the page does not hold it.
        """
        self._lease.beat(page)
        self._device.push(axes, buttons)

    def lost(self, name: str, why: str) -> None:
        """Who held control is gone: hold at once."""
        self._supervision.hold(LOST, f"{name} {why}; take control and press Resume")
        self._device.detach()
        self._board.remark(f"holding: {name} {why}")
        self.write(name, "lost", why=why)

    def left(self, name: str) -> None:
        """Who held control gave it back on purpose; the policy goes on."""
        self._device.detach()
        self.write(name, "left")

    def labelled(self, name: str, episode_id: str, success: bool, overlay: str) -> None:
        """An episode was judged in hindsight."""
        self._board.labelled(episode_id, success, name)
        self._on_label(episode_id, success)
        self.write(name, "label", label=overlay, of=episode_id, success=success)

    def write(self, name: str, kind: str, **facts: Any) -> None:
        """Adds to the record of what people did and said.

        Raises:
            RunDirectoryError: if it cannot be written.
        """
        if self.log is None:
            return
        episode = self._board.state()["episode"]
        row = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "who": name,
            "kind": kind,
            **facts,
            "episode": episode["id"],
            "step": episode["step"],
        }
        with writing(self.log), self.log.open("a", encoding="utf-8") as file:
            file.write(to_json(row) + "\n")

    def _emergency_stop(self, name: str) -> None:
        self._supervision.hold(E_STOP, f"emergency stop by {name}")
        self._supervision.hold(PAUSE, "paused after an emergency stop")  # so that releasing it moves nothing
        self._board.remark(f"emergency stop by {name}")

    def _resume(self) -> None:
        for name in (PAUSE, LOST):
            self._supervision.release(name)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of such a record."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
