"""Collect the pictures of a calibration session: drive the arm from pose to pose, or wait while a person moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import numpy as np

from calibration.guided.recording import SightingRecorder
from calibration.guided.session import CameraSession
from calibration.hand_eye.planner import SafetyBox
from robot_rl.env.move_arm import Rest, Travel
from robot_rl.errors import CommandRefusedError, GraphError, RobotLostError
from robot_rl.geometry import Pose

ROUNDS = 4
"""Number of times that poses are proposed before the session ends with the pictures that it has."""
MOST_LOST = 3
"""Number of poses in a row that the arm does not reach before the collection fails."""
POLL_PERIOD = 0.5
"""Time between two checks of an arm that somebody else moves [s], also where time would pass faster."""
_FAR_POSITION, _FAR_TURN = 0.03, 0.2
"""Distance from the proposed pose that is reported [m, rad]; the picture counts where the arm is."""


@dataclass(frozen=True)
class CollectionPlan:
    """The size of a collection and the limits of its motion.

    Attributes:
        views: Number of pictures to collect.
        box_low: Lower corner of the safety box in the base frame [m], shape (3,).
        box_high: Its upper corner.
        max_turn: Largest turn away from the first orientation [rad].
        seed: Seed of the proposed poses.
    """

    views: int
    box_low: np.ndarray
    box_high: np.ndarray
    max_turn: float
    seed: int


@dataclass(frozen=True)
class Station:
    """The robot and the person of a collection, as its host provides them.

    Attributes:
        travel: Moves the arm and waits for its rest.
        picture: Returns the frame of the newest rest: RGB, uint8, shape (height, width, 3).
        consent: Set while the arm may be driven.
        wait: Waits for consent, at most so long [s].
        invite: Returns how a person gives consent, one sentence.
        notify: Receives notes for a person.
        problem: Receives reports of what went wrong and was passed over.
    """

    travel: Travel
    picture: Callable[[], np.ndarray]
    consent: Event
    wait: Callable[[float], object]
    invite: Callable[[], str]
    notify: Callable[[str], object]
    problem: Callable[[str], object]


class PictureCollector:
    """Adds pictures with poses of the arm to a session and to a recording until there are enough.

    Args:
        session: Evaluates the pictures and proposes poses.
        folder: Where pictures and poses are kept; see `SightingRecorder`.
        station: The robot and the person.
        plan: Size and limits.
    """

    def __init__(self, session: CameraSession, folder: Path, station: Station, plan: CollectionPlan) -> None:
        self._session, self._recorder = session, SightingRecorder(folder)
        self._station, self._plan = station, plan

    def run(self) -> None:
        """Collect the pictures.

        Raises:
            RobotLostError: if the arm is not heard, or does not reach several poses in a row.
        """
        session, plan, station = self._session, self._plan, self._station
        start = station.travel.rest()
        self._add(start)
        box = SafetyBox(plan.box_low, plan.box_high, start.T_base_tcp.quaternion, plan.max_turn)
        rounds = 0
        while rounds < ROUNDS and not session.complete(plan.views):
            if not (station.consent.is_set() and session.count):
                self._by_hand()
                continue
            poses = session.propose(box, max(4, plan.views - session.count), seed=plan.seed + rounds)
            station.notify(f"{len(poses)} poses inside the safety box are proposed; the arm drives to them")
            rounds += self._drive(poses)

    def _drive(self, poses: list[Pose]) -> bool:
        """Drive to each of the poses; return False if the consent has ended before."""
        lost = 0
        for number, pose in enumerate(poses, 1):
            try:
                rest = self._station.travel.go(pose)
            except CommandRefusedError as error:
                self._station.notify(f"{error}; the arm holds")
                return False
            except RobotLostError as error:
                lost += 1
                self._station.problem(f"pose {number} of {len(poses)}: {error}")
                if lost == MOST_LOST:
                    raise
                continue
            lost = 0
            off = (pose.inverse() @ rest.T_base_tcp).vector()
            if np.linalg.norm(off[:3]) > _FAR_POSITION or np.linalg.norm(off[3:]) > _FAR_TURN:
                self._station.notify(
                    f"pose {number} of {len(poses)} was not reached; the picture counts where the arm is"
                )
            self._add(rest)
        return True

    def _by_hand(self) -> None:
        """Take a picture wherever somebody else brings the arm to rest, until there is consent, or enough of them."""
        station, session = self._station, self._session
        station.notify("bring the arm by hand to where the camera sees the board, and hold it still")
        if not station.consent.is_set():
            station.notify(station.invite())
        while not (station.consent.is_set() and session.count) and not session.complete(self._plan.views):
            try:
                rest = station.travel.rest()
            except GraphError:
                raise
            except RobotLostError:
                continue  # it is being moved
            if session.is_new(rest.T_base_tcp):
                self._add(rest)
            else:
                station.wait(POLL_PERIOD)

    def _add(self, rest: Rest) -> None:
        name, image = f"view_{self._recorder.count:03d}.png", self._station.picture()
        self._recorder.add(image, name, rest.T_base_tcp)
        self._station.notify(f"{name}: {self._session.add(image, name, rest.T_base_tcp).summary()}")
