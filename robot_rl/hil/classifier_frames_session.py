"""Frames for a reward classifier from a person, who leads the arm and says with a button when the task is done.

Success: from now on it is done. Failure: it no longer is. So a peg can be put in, looked at from all sides, pulled half
out and put in again within one episode, which gives frames of all that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.sparse_reward import success_reward
from robot_rl.data.store.operator_labels import EVERY_STEP
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import OPERATOR_JUDGE, Supervision
from robot_rl.env.task import Outcome, TaskSpec, WorkcellOptions
from robot_rl.hil.demo_session import Reporter
from robot_rl.hil.operator_setup import OperatorOptions, viewed_workcell
from robot_rl.hil.teleop_session import Requests, in_person
from robot_rl.learn.actor import EpisodeResult, Observer, Rollout
from robot_rl.reward.classifier.record import FrameCount, frame_facts
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.teleop.device_operator import DeviceOperator

WAITING, LEADING = ("start", "finish"), ("success", "failure", "stop", "finish")
"""What may be asked for between episodes, and in one."""


class ButtonJudge:
    """Rewards the steps after which the person says that the task is done; ends no episode."""

    def __init__(self) -> None:
        self.done = False

    def begin(self) -> None:
        """A new episode starts: it is not done."""
        self.done = False

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """The moment, by the person."""
        del observation, spec
        return replace(outcome, success=False, reward=success_reward(self.done), judge=OPERATOR_JUDGE)


class FrameSession:
    """Records episodes until there are enough frames, or the person has had enough.

    Args:
        env: The supervised environment with the person as its operator, and the button among its judges.
        count: Who records, and counts.
        button: What the person presses.
        supervision: Of that environment.
        person: Who leads.
        wanted: Frames with success, and without.
        seed: Resets follow from it.
        reporter: Told how it goes.
        observers: Told of every step.
    """

    def __init__(
        self,
        env: RobotEnv,
        count: FrameCount,
        button: ButtonJudge,
        supervision: Supervision,
        person: DeviceOperator,
        *,
        wanted: tuple[int, int],
        seed: int,
        reporter: Reporter,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._count, self._button, self._supervision, self._person = count, button, supervision, person
        self._wanted, self._seed, self._reporter = wanted, seed, reporter
        self._rollout = Rollout(env, None, None, (0,), [count, *observers])
        self._requests = Requests(reporter.remark)

    def request(self, name: str) -> None:
        """Asks for something, from any thread; what does not fit the moment is ignored, and that is said.

        Raises:
            UnknownNameError: if nobody can ask for that.
        """
        self._requests.ask(name)
        self._supervision.notify()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Records until there are enough frames, `finish` is asked for, or `stop` says so."""
        finished = False
        while not (finished or stop() or self._count.enough(self._wanted)):
            count, (positives, negatives) = self._count, self._wanted
            text = f"{count.positives} of {positives} frames with success, {count.negatives} of {negatives} without."
            self._reporter.phase("ready", f"{text} Press Start for the next episode.", WAITING)
            asked = self._ask(stop)
            if asked == "start":
                finished = self._record(stop)
            finished = finished or asked == "finish"

    def _ask(self, stop: Callable[[], bool]) -> str | None:
        while not stop():
            self._person.watch()
            ready = self._supervision.wait(lambda: bool(self._requests))
            if ready and (request := self._requests.take(WAITING)) is not None:
                return request
        return None

    def _record(self, stop: Callable[[], bool]) -> bool:
        """One episode; returns whether the person has had enough."""
        text = "You lead. Success: from now on it is done. Failure: it no longer is. Stop ends the episode."
        self._reporter.phase("recording", text, LEADING)
        number, finished = self._count.episodes, False
        seed = episode_seed(Purpose.FRAMES, self._seed, number)
        self._rollout.begin(seed, f"frames-{number:04d}", demonstrate=True)
        result: EpisodeResult | None = None
        while result is None:
            request = self._requests.take(LEADING)
            if request in ("success", "failure"):
                self._button.done = request == "success"
            finished = finished or request == "finish"
            result = self._rollout.step(deterministic=True, last=request == "stop" or finished or stop())
        return finished


def record_frames_in_person(
    task: str,
    path: Path,
    *,
    positives: int,
    negatives: int,
    seed: int,
    observed: WorkcellOptions,
    operator: OperatorOptions,
) -> dict[str, Any]:
    """Records frames that a person labels; arguments as for `record_frames`, and how the person takes part."""
    button = ButtonJudge()
    cell = viewed_workcell(task, observed)
    judged = replace(cell, judges=(*cell.judges, button))
    with (
        contextlib.closing(cell),
        EpisodeStore.create(path, {"task": task, "seed": seed, **EVERY_STEP}) as store,
        in_person(judged, observed, operator, path) as place,
    ):
        count = FrameCount(store)
        session = FrameSession(
            place.env,
            count,
            button,
            place.supervision,
            place.person,
            wanted=(positives, negatives),
            seed=seed,
            reporter=place.reporter,
            observers=[place.board],
        )
        place.run(session)
        return frame_facts(task, store, count)
