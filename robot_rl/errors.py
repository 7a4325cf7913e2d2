"""Every error this project raises on purpose.

They share one root class, so that a caller can catch them all. Each class is given the facts and composes the message
itself: what was wrong, what is valid, and how to cure it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LABELS_CURE = "`robot-rl label report` shows the quality of these labels, and --allow-uncalibrated takes the risk"


class RobotRLError(Exception):
    """Root of all errors that a user can cause or cure."""


class UnknownNameError(RobotRLError):
    """A requested name is not registered.

    Args:
        kind: What was looked up, e.g. `"task"` or `"camera"`.
        name: The requested name.
        valid: The names that exist.
        chosen_by: The setting that chooses among them, if there is one.
    """

    def __init__(self, kind: str, name: str, valid: Iterable[str], chosen_by: str = "") -> None:
        self.kind, self.name, self.valid = kind, name, tuple(sorted(valid))
        near = difflib.get_close_matches(name, self.valid, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        setting = f"; {chosen_by} chooses" if chosen_by else ""
        super().__init__(f"unknown {kind} {name!r}; valid: {', '.join(self.valid) or '(none)'}{hint}{setting}")


class ConfigError(RobotRLError):
    """A configuration file or override has an unknown key, a wrong type or a value out of range."""


class SpecError(RobotRLError):
    """A value does not fit its spec: shape, dtype, bounds or a NaN."""


class ActionError(SpecError):
    """An action was refused before it reached the robot."""


class CommandRefusedError(RobotRLError):
    """A command was not let through to the arm."""


class RobotLostError(RobotRLError):
    """The robot, or a node that is needed, is not heard at the moment. It may come back."""


class CommandLateError(ActionError, RobotLostError):
    """A command had expired when it arrived: the program stood still meanwhile. The arm held; a run goes on."""


class ArmStoppedError(RobotLostError):
    """The arm cannot be reached, has stopped itself or was stopped; it goes on only after a person's consent."""


class GraphError(RobotLostError):
    """The ROS graph is not as it has to be: a node is missing, silent, or sends what it should not."""


class StaleStateError(RobotLostError):
    """The newest robot state is older than allowed.

    Args:
        age: Age of the newest state [s]; infinite if there has never been one.
        max_age: Largest age allowed [s].
        what: The part of the state that is too old.
        hint: What may be the reason.
    """

    def __init__(self, age: float, max_age: float, what: str = "robot state", hint: str | None = None) -> None:
        self.age, self.max_age = age, max_age
        state = f"newest {what} is {age:.3f} s old, allowed is {max_age:.3f} s" if age < 1e9 else f"no {what} has come"
        super().__init__(f"{state}; {hint or 'check that the driver still publishes'}")


class EnvironmentFailedError(RobotRLError):
    """An environment of others cannot be made, raised an error, or its process is gone."""


class BasePolicyError(RobotRLError):
    """A base policy cannot be used, does not fit, failed, or answers what it should not."""


class CameraError(RobotRLError):
    """A camera cannot be opened, gives no frames, or always the same one."""


class StepOrderError(RobotRLError):
    """`step` was called before `reset`, or after the episode had ended."""


class DivergedError(RobotRLError):
    """Physics or learning left the finite numbers."""


class RenderError(RobotRLError):
    """Cameras cannot be rendered on this machine."""


class DataError(RobotRLError):
    """Stored data cannot be read, or does not satisfy the schema."""


class EpisodeIdError(DataError):
    """The id of an episode is not one that files can be named by."""


class CheckpointError(RobotRLError):
    """A checkpoint is missing, cut short, or belongs to another run."""


class RunDirectoryError(RobotRLError):
    """The run directory cannot be used: in use by another process, not empty, not writable, or full."""


class InterruptedRunError(RobotRLError):
    """The user stopped a run, which can be resumed."""


class PluginError(RobotRLError):
    """A task or benchmark is registered but cannot be loaded."""


class LinkError(RobotRLError):
    """Actor and learner cannot communicate: version, size, or a broken connection."""


class EndpointError(RobotRLError):
    """A model server cannot be used as configured: no server, key, model or images, or no log-probabilities."""


class BudgetSpentError(RobotRLError):
    """The next query would have cost more than is left of the budget."""


class UnansweredError(RobotRLError):
    """A model server did not answer one query, after all attempts; the query may be repeated later."""


class ServerBusyError(UnansweredError):
    """A model server requests a longer wait than is allowed; until then it answers no query."""


class ValuelessAnswersError(RobotRLError):
    """A labeller's answers have no values, one after another, and more of them would only cost."""


class UncertifiedError(RobotRLError):
    """Labels, or a classifier, were to be used for something that they are not fit, or not shown to be fit, for.

    Args:
        verdict: Which of the two, for what, why, and what would change it.
        cure: Which command shows their quality, and how to take the risk.
    """

    def __init__(self, verdict: str, cure: str) -> None:
        super().__init__(f"{verdict}; {cure}")


class CalibrationError(RobotRLError):
    """A calibration cannot be made from these data, or does not belong to this camera or robot."""
