"""Frames for a reward classifier from an operator, who leads the arm and labels the frames with two buttons.

Success: from now on the task is done. Failure: it no longer is. So a peg can be put in, seen from all sides,
pulled half out and put in again within one episode, which gives frames of all that.
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
from robot_rl.env.episode_observer import EpisodeResult, Observer
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import OPERATOR_JUDGE, Supervision
from robot_rl.env.task import Outcome, TaskSpec, WorkcellOptions
from robot_rl.hil.demo_session import Reporter
from robot_rl.hil.operator_setup import MakeWorkcell, OperatorOptions, viewed_workcell
from robot_rl.hil.teleop_session import Requests, open_session
from robot_rl.learn.actor import Rollout
from robot_rl.reward.classifier.record import FrameCount, frame_facts
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.teleop.device_operator import Person

WAITING, LEADING = ("start", "finish"), ("success", "failure", "stop", "finish")
"""Possible requests between episodes, and in one."""


class ButtonJudge:
    """Rewards the steps at which the operator has marked the task as done; ends no episode."""

    def __init__(self) -> None:
        self.done = False

    def begin(self) -> None:
        """Start an episode, in which the task is not done."""
        self.done = False

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Reward the step as the operator has marked it."""
        del observation, spec
        return replace(outcome, success=False, reward=success_reward(self.done), judge=OPERATOR_JUDGE)


class FrameSession:
    """Records episodes until there are enough frames, or the operator finishes.

    Args:
        env: The supervised environment with the person as its operator and the button as an outcome filter.
        count: Records and counts the frames.
        button: Labels the frames.
        supervision: Supervision of that environment.
        person: The operator, who leads with the devices.
        wanted: Frames with success, and without.
        seed: Resets follow from it.
        reporter: Shows the state of the session.
        observers: Observers of every step.
    """

    def __init__(
        self,
        env: RobotEnv,
        count: FrameCount,
        button: ButtonJudge,
        supervision: Supervision,
        person: Person,
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
        """Add a request, from any thread; one that is not possible in this phase is dropped with a remark.

        Raises:
            UnknownNameError: if there is no such request.
        """
        self._requests.add(name)
        self._supervision.notify()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Record until there are enough frames, the operator requests `finish`, or `stop` returns True."""
        finished = False
        while not (finished or stop() or self._count.enough(self._wanted)):
            count, (positives, negatives) = self._count, self._wanted
            text = f"{count.positives} of {positives} frames with success, {count.negatives} of {negatives} without."
            self._reporter.phase("ready", f"{text} Press Start for the next episode.", WAITING)
            requested = self._next_request(stop)
            if requested == "start":
                finished = self._record(stop)
            finished = finished or requested == "finish"

    def _next_request(self, stop: Callable[[], bool]) -> str | None:
        while not stop():
            self._person.watch()
            ready = self._supervision.wait(lambda: bool(self._requests))
            if ready and (request := self._requests.next(WAITING)) is not None:
                return request
        return None

    def _record(self, stop: Callable[[], bool]) -> bool:
        """Record one episode; return whether the operator requested `finish`."""
        text = "Recording. Success: from now on it is done. Failure: it no longer is. Stop ends the episode."
        self._reporter.phase("recording", text, LEADING)
        number, finished = self._count.episodes, False
        seed = episode_seed(Purpose.FRAMES, self._seed, number)
        self._rollout.begin(seed, f"frames-{number:04d}", demonstrate=True)
        result: EpisodeResult | None = None
        while result is None:
            request = self._requests.next(LEADING)
            if request in ("success", "failure"):
                self._button.done = request == "success"
            finished = finished or request == "finish"
            result = self._rollout.step(deterministic=True, last=request == "stop" or finished or stop())
        return finished


def record_human_frames(
    task: str,
    path: Path,
    *,
    positives: int,
    negatives: int,
    seed: int,
    observed: WorkcellOptions,
    operator: OperatorOptions,
    make: MakeWorkcell = viewed_workcell,
) -> dict[str, Any]:
    """Record frames that an operator labels; see `record_frames`, and `record_human_demonstrations` for the rest."""
    button = ButtonJudge()
    cell = make(task, observed)
    judged = replace(cell, judges=(*cell.judges, button))
    with (
        contextlib.closing(cell),
        EpisodeStore.create(path, {"task": task, "seed": seed, **EVERY_STEP}) as store,
        open_session(judged, observed, operator, path) as place,
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
