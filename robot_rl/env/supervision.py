"""The operator's influence on the control loop: hold, go on, cut the episode, success, failure.

Every method may be called from any thread. Holding takes effect at once, whatever the control loop is doing; everything
else at the end of the running step. It knows the robot's contract and the task's, not devices, consoles, or who speaks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from robot_rl.data.schema import Source
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import Command, RobotIO, RobotState
from robot_rl.env.task import TASK_JUDGE, Operator, Outcome, Task, TaskSpec, Workcell
from robot_rl.errors import ArmStoppedError, StaleStateError
from robot_rl.geometry import Pose

E_STOP, PAUSE = "e-stop", "pause"
"""Names of the holds that an operator requests; others are named by their cause, e.g. the loss of a device."""
ARM = "arm"
"""Name of the hold while the arm itself has stopped, e.g. after a reflex; releasing it is the consent to recover."""

NEXT_ARM = "next_arm"
"""Name of the request to lead the next one of several arms."""
EVALUATING = "evaluating"
"""Name of the phase of a job in which the policy is alone, and nobody takes over."""
OPERATOR_JUDGE = "operator"
LISTEN = 0.05
"""Time between two looks at the operator's devices while the control loop waits for an answer [s]."""
RESET = "reset by the operator"
"""Why an episode is cut that the operator ends to reset the scene."""


class HoldableRobotIO:
    """A robot that drops every command while somebody holds it.

    Args:
        io: The robot.
    """

    def __init__(self, io: RobotIO) -> None:
        self._io = io
        self._lock = threading.Lock()
        self._held = False
        self.latest: RobotState | None = None
        """The newest state that was read."""
        self.read_at = 0
        """When it was read [ns], by `time.monotonic_ns`: the robot's clock may be a simulated one."""
        self.start: RobotState | None = None
        """The first state of the running episode."""
        self.target: Pose | None = None
        """Set-point of the newest command, of the first of several arms; None since the arm was stopped."""
        self.targets: dict[str, Pose] = {}
        """Set-points of several arms in the newest command."""

    def read(self) -> RobotState:
        """Return the newest state."""
        state = self._io.read()
        self.latest, self.read_at = state, time.monotonic_ns()
        if self.start is None:
            self.start = state
        return state

    def command(self, command: Command) -> None:
        """Follow `command`, unless the robot is held."""
        with self._lock:  # so that no command overtakes the stop of a hold
            if not self._held:
                self._io.command(command)
                self.target = command.T_base_target
                self.targets = {name: point.T_base_target for name, point in command.arms.items()}

    def stop(self) -> None:
        """Hold the arm where it is until the next command."""
        self.target, self.targets = None, {}
        self._io.stop()

    def hold(self, held: bool) -> None:
        """Stop now and drops commands from now on, or follows them again."""
        with self._lock:
            self._held = held
            if held:
                self.target, self.targets = None, {}
                self._io.stop()


@dataclass(frozen=True)
class Hold:
    """Why the arm is held.

    Attributes:
        name: Whose hold it is; the same has to release it.
        reason: Text for people.
    """

    name: str
    reason: str


class Supervised(Protocol):
    """The supervision of the robot as consoles and devices use it, in this process or elsewhere."""

    question: str
    """Question to the operator for which the control loop waits; empty without one."""

    @property
    def io(self) -> HoldableRobotIO:
        """The robot."""
        ...

    @property
    def holds(self) -> list[Hold]:
        """Everything that holds the arm now, an emergency stop first."""
        ...

    def hold(self, name: str, reason: str) -> None:
        """Hold the arm until `release` with the same name."""
        ...

    def release(self, name: str) -> None:
        """Take one hold away."""
        ...

    def mark(self, success: bool) -> None:
        """End the running episode as a success or a failure."""
        ...

    def cut(self, reason: str) -> None:
        """End the running episode without a judgement."""
        ...


class Holding:
    """A robot that is held for as long as anybody has a reason.

    Args:
        io: The robot.
    """

    def __init__(self, io: RobotIO) -> None:
        self.io = HoldableRobotIO(io)
        self.question = ""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._holds: dict[str, Hold] = {}
        self._held_in_episode: Hold | None = None  # stays when the hold is released

    def hold(self, name: str, reason: str) -> None:
        """Hold the arm until `release` with the same name; the running episode is cut."""
        with self._changed:
            self._holds[name] = Hold(name, reason)
            self._held_in_episode = self._held_in_episode or self._holds[name]
            self._changed.notify_all()  # before the arm's driver, which may fail
            self.io.hold(True)

    def release(self, name: str) -> None:
        """Take one hold away; the arm goes on when none is left, but not within the same episode."""
        with self._changed:
            self._holds.pop(name, None)
            self.io.hold(bool(self._holds))
            self._changed.notify_all()

    @property
    def holds(self) -> list[Hold]:
        """Everything that holds the arm now, an emergency stop first."""
        with self._lock:
            return sorted(self._holds.values(), key=lambda hold: hold.name != E_STOP)

    def may_go_on(self, free: Callable[[], bool] = lambda: True, *, seconds: float = 0.05) -> bool:
        """Wait a moment, unless nothing holds the robot and it is `free` to go on; whether the control loop may."""
        with self._changed:
            if not self._holds and free():
                return True
            self._changed.wait(seconds)
        return False


class Supervision(Holding):
    """A workcell whose arm a person can hold and whose episodes a person can judge.

    Args:
        cell: The workcell.
    """

    def __init__(self, cell: Workcell) -> None:
        super().__init__(cell.io)
        self._cell = cell
        self.time_to_overrule = 0.0
        """Time in which the operator can overrule a success of a classifier, before it counts [s]; the arm holds."""
        self.listen: Callable[[], object] = lambda: None
        """Called again and again in that time: looks at the devices that the control loop itself reads."""
        self._verdict: bool | None = None
        self._cut: str | None = None
        self._consent = False  # a person has released the hold of the arm; the control loop recovers it

    def workcell(
        self,
        operator: Operator | None,
        source: Source = Source.HUMAN,
        *,
        max_steps: int | None = None,
        cell: Workcell | None = None,
    ) -> Workcell:
        """Return the supervised workcell, with this operator in the place of its own.

        Args:
            operator: Who leads and intervenes.
            source: What their steps are recorded as.
            max_steps: Step limit of an episode, instead of the task's.
            cell: That of another task on the same robot; None: the one that was given.
        """
        cell = cell or self._cell
        task = cell.task if max_steps is None else LongerTask(cell.task, max_steps)
        judges = (*cell.judges, self)
        return replace(cell, io=self.io, task=task, operator=operator, operator_source=source, judges=judges)

    # ------------------------------------------------------------- for people

    def mark(self, success: bool) -> None:
        """End the running episode as a success or a failure, whatever the task finds."""
        with self._changed:
            self._verdict = success
            self._changed.notify_all()

    def cut(self, reason: str) -> None:
        """End the running episode without a judgement."""
        with self._lock:
            self._cut = reason

    def release(self, name: str) -> None:
        """Take one hold away; that of the arm goes when the arm has recovered, which takes a moment."""
        if name != ARM:
            super().release(name)
            return
        with self._changed:
            self._consent = ARM in self._holds
            self._changed.notify_all()

    # ---------------------------------------------------- for the control loop

    def begin(self) -> None:
        """Start an episode: labels of the last one do not count for it."""
        with self._lock:
            self._verdict, self._cut = None, None
            self._held_in_episode = next(iter(self._holds.values()), None)
            self.io.start = None

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Apply the operator's label to the outcome of a step."""
        del observation  # the person looks at the scene
        self._hold_stopped()
        if outcome.success and outcome.judge != TASK_JUDGE and self.time_to_overrule > 0 and not self._answered(0.0):
            self._ask(outcome.judge)
        with self._lock:
            verdict, cut, hold = self._verdict, self._cut, self._held_in_episode
            self._verdict, self._cut = None, None
        if hold is not None:
            return replace(outcome, success=False, reward=0.0, cut=cut or hold.reason, held=True)
        if verdict is None:
            return replace(outcome, cut=cut) if cut is not None else outcome
        overruled = outcome.judge if verdict != outcome.success else None
        reward, failure = success_reward(verdict, spec.return_range[1]), None if verdict else "operator"
        return replace(
            outcome, success=verdict, failure=failure, reward=reward, judge=OPERATOR_JUDGE, overruled=overruled
        )

    def _ask(self, judge: str) -> None:
        """Have the operator overrule a success of that judge for a time, or until they answer; the arm holds."""
        self.io.stop()
        self.question = f"{judge}: success. Failure within {self.time_to_overrule:g} s overrules it."
        end = time.monotonic() + self.time_to_overrule
        try:
            while (left := end - time.monotonic()) > 0 and not self._answered(min(left, LISTEN)):
                self.listen()
        finally:
            self.question = ""

    def _answered(self, seconds: float) -> bool:
        """Wait for the operator's word or a hold for so long; return whether there is one."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: self._verdict is not None or self._holds, seconds))

    def wait(self, free: Callable[[], bool] = lambda: True, *, seconds: float = 0.05) -> bool:
        """As `may_go_on`, with the robot watched meanwhile; recovers the arm when a person has consented."""
        self._hold_stopped()
        self._recover()
        if self.may_go_on(free, seconds=seconds):
            return True
        self.look()
        return False

    def _hold_stopped(self) -> None:
        """Hold the arm if it has stopped itself, until a person lets it go on."""
        stops = self._cell.stops
        if stops is not None and (reason := stops.stopped) is not None and not self._has(ARM):
            self.hold(ARM, reason)

    def _recover(self) -> None:
        """End the stop of the arm, if a person has consented; what does not work becomes the reason of the hold."""
        with self._lock:
            consented, self._consent = self._consent, False
        if self._cell.stops is None or not consented:
            return
        try:
            self._cell.stops.recover()
        except ArmStoppedError as error:
            self.hold(ARM, str(error))
        else:
            super().release(ARM)

    def _has(self, name: str) -> bool:
        with self._lock:
            return name in self._holds

    def notify(self) -> None:
        """Wake a control loop that waits, because what it waits for may have come."""
        with self._changed:
            self._changed.notify_all()

    def look(self) -> None:
        """Read the robot, so that what people see stays fresh while nothing is done."""
        try:
            self.io.read()
        except StaleStateError as error:
            self.hold("robot", str(error))
        else:
            self.release("robot")


class LongerTask:
    """A task with another step limit.

    Args:
        task: The task.
        max_steps: Of an episode.
    """

    def __init__(self, task: Task, max_steps: int) -> None:
        self.spec = replace(task.spec, max_steps=max_steps)
        self.observation_specs, self.observe = task.observation_specs, task.observe
        self.reset, self.evaluate = task.reset, task.evaluate
