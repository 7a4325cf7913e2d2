"""Where a run takes place: in this process, or on a robot and a learner that are somewhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.hil.remote_operator import PersonElsewhere
from robot_rl.link.peer import LearnerPeer
from robot_rl.run.directory.calibrations import CalibrationRecord


def _unknown(cameras: Sequence[str]) -> Sequence[CalibrationRecord]:
    del cameras  # nobody says more than the configuration
    return ()


@dataclass(frozen=True)
class Site:
    """What differs from place to place.

    Attributes:
        workcell: Makes the workcell of a task.
        learner: Makes the other end of the link to the learner; None has a process started for it.
        repeatable: Whether an episode can be played again from its seed. Where it cannot, a resumed run learns from
            what was recorded after its checkpoint; where it can, it plays that again, to the same result.
        lost_episodes: How many episodes in a row may be lost because the robot is not heard, before the run ends.
        calibrations: Those that the cameras of these names say they have.
        films: Whether evaluation episodes can be filmed with cameras of one's choice.
        person: Whose word reaches the control loop from another process; None if nobody's does.
    """

    workcell: Callable[[str, WorkcellOptions], Workcell] = make_workcell
    learner: Callable[[], LearnerPeer] | None = None
    repeatable: bool = True
    lost_episodes: int = 0
    films: bool = True
    calibrations: Callable[[Sequence[str]], Sequence[CalibrationRecord]] = _unknown
    person: PersonElsewhere | None = None

    def environment(
        self, cell: Workcell, options: WorkcellOptions, *, interventions: bool = False, time_to_overrule: float = 0.0
    ) -> RobotEnv:
        """The environment over a workcell of this place; see `PersonElsewhere.environment`."""
        if self.person is None:
            return RobotEnv(cell, interventions=interventions, options=options)
        return self.person.environment(cell, options, interventions=interventions, time_to_overrule=time_to_overrule)

    def free(self) -> bool:
        """Waits a moment while a person holds the arm; whether the next episode may begin."""
        return self.person is None or self.person.wait()
