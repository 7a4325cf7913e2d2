"""Demonstrations by a person: start, stop, discard, redo, success, failure, count kept, and say what looks wrong.

Every attempt goes through the store. One that is discarded, or cut short by a hold, is moved aside, not deleted.

`robot-rl demo` with a person: workcell, store, session, and what is said at the end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.demo_quality import quality_warnings
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.env.task import WorkcellOptions
from robot_rl.hil.operator_setup import OperatorOptions, viewed_workcell
from robot_rl.hil.teleop_session import Requests, in_person
from robot_rl.learn.actor import EpisodeResult, Observer, Rollout, StoreRecorder
from robot_rl.run.demonstrate import demonstration_facts, demonstration_id, demonstration_store
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.teleop.device_operator import DeviceOperator


class Reporter(Protocol):
    """Who shows how it goes."""

    def phase(self, name: str, text: str, requests: tuple[str, ...]) -> None:
        """A new phase, what it means, and what may be asked for in it."""
        ...

    def kept(self, count: int, wanted: int) -> None:
        """How many demonstrations there are."""
        ...

    def remark(self, text: str) -> None:
        """Something worth telling, once."""
        ...


class DemoSession:
    """Records until as many demonstrations are kept as are wanted.

    Args:
        env: The supervised environment with the person as its operator.
        store: Where they go.
        supervision: Of that environment.
        person: Who demonstrates.
        episodes: How many there shall be.
        seed: Resets follow from it.
        reporter: Told how it goes.
        observers: Told of every step.
    """

    def __init__(
        self,
        env: RobotEnv,
        store: EpisodeStore,
        supervision: Supervision,
        person: DeviceOperator,
        *,
        episodes: int,
        seed: int,
        reporter: Reporter,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._env, self._store, self._supervision, self._person = env, store, supervision, person
        self._episodes, self._seed, self._reporter = episodes, seed, reporter
        self._newest: _Newest = _Newest()
        self._rollout = Rollout(env, None, None, (0,), [StoreRecorder(store), self._newest, *observers])
        self._requests = Requests(reporter.remark)

    # -------------------------------------------------------- from any thread

    def request(self, name: str) -> None:
        """Asks for something; what does not fit the moment is ignored, and that is said.

        Raises:
            UnknownNameError: if nobody can ask for that.
        """
        self._requests.ask(name)
        self._supervision.notify()

    # ------------------------------------------------------- the control loop

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Records until all are kept and `finish` is asked for, or `stop` says so."""
        self._reporter.kept(len(self._store), self._episodes)
        again = False
        while not stop():
            if not again:
                asked = self._ask(stop)
                if asked in (None, "finish"):
                    return
                if asked in ("discard", "redo"):
                    self._discard_last()
                    again = asked == "redo"
                    continue
            again = self._record(stop) == "redo"

    def _ask(self, stop: Callable[[], bool]) -> str | None:
        """Shows the next scene, and waits for what the person wants; None when stopped."""
        count = len(self._store)
        complete = count >= self._episodes
        valid: tuple[str, ...] = ("finish",) if complete else ("start",)
        valid += ("discard", "redo") if count else ()
        if complete:
            text = f"All {self._episodes} demonstrations are recorded. Finish, or discard the last one."
        else:
            text = f"Press Start for demonstration {count + 1} of {self._episodes}."
            if not self._until_released(stop):
                return None
            self._env.reset(seed=self._scene(), options={"demonstrate": True})
        self._reporter.phase("complete" if complete else "ready", text, valid)
        while not stop():
            self._person.watch()
            request = self._requests.take(valid)
            if request is not None and self._supervision.wait():
                return request
            if request is not None:
                self._reporter.remark(f"not while the arm is held: {request}")
            self._supervision.wait(lambda: bool(self._requests))
        return None

    def _until_released(self, stop: Callable[[], bool]) -> bool:
        """Waits while somebody holds the arm, as a reset may move it; False when stopped."""
        while not self._supervision.wait():
            self._person.watch()
            if stop():
                return False
        return True

    def _record(self, stop: Callable[[], bool]) -> str | None:
        """One attempt; returns `redo` if that was asked for in it."""
        valid = ("stop", "success", "failure", "discard", "redo")
        self._reporter.phase("waiting", "Recording starts when you move.", ("discard",))
        while not self._person.watch():
            if stop() or self._requests.take(("discard",)) is not None or self._supervision.holds:
                return None
            self._supervision.wait(lambda: False)
        self._reporter.phase("recording", "You lead. Success ends it; or mark it yourself.", valid)
        name = demonstration_id(self._number())
        self._rollout.begin(self._scene(), name, demonstrate=True)
        asked, result = None, None
        while result is None:
            request = self._requests.take(valid)
            if request in ("success", "failure"):
                self._supervision.mark(request == "success")
            elif request is not None:
                asked = request
                self._supervision.cut(request)
            result = self._rollout.step(deterministic=True, last=stop())
        episode = self._newest.episode
        if episode is None:  # cannot be: a step was taken
            return asked
        cut = episode.facts.cut
        if asked in ("discard", "redo") or (cut is not None and asked is None):
            self._set_aside(name, asked or str(cut))
            return asked
        self._remark_on(episode)
        return None

    def _remark_on(self, episode: Episode) -> None:
        lengths = [row.length for row in self._store.summaries() if row.episode_id != episode.episode_id]
        outcome = "success" if episode.facts.success else "no success"
        self._reporter.kept(len(self._store), self._episodes)
        self._reporter.remark(f"{episode.episode_id}: {outcome}, {len(episode)} steps")
        for warning in quality_warnings(episode, lengths):
            self._reporter.remark(f"{episode.episode_id}: {warning}; discard or redo it?")

    def _discard_last(self) -> None:
        self._set_aside(self._store.ids()[-1], "discarded")

    def _set_aside(self, name: str, why: str) -> None:
        self._store.set_aside([name], f"a demonstration that was not kept: {why}")
        self._reporter.kept(len(self._store), self._episodes)
        self._reporter.remark(f"{name} was moved aside: {why}")

    def _number(self) -> int:
        """Of the next demonstration: the smallest that is free, so that one that is redone starts the same way."""
        taken = set(self._store.ids())
        return next(number for number in range(len(taken) + 1) if demonstration_id(number) not in taken)

    def _scene(self) -> int:
        return episode_seed(Purpose.DEMONSTRATION, self._seed, self._number())


class _Newest:
    """Keeps the newest episode at hand."""

    def __init__(self) -> None:
        self.episode: Episode | None = None

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Forgets the last one."""
        del episode_id, observation
        self.episode = None

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Waits for the end."""

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Keeps it."""
        del result
        self.episode = episode


def demonstrate_in_person(
    task: str,
    path: Path,
    *,
    episodes: int,
    seed: int,
    observed: WorkcellOptions,
    operator: OperatorOptions,
    calibrations: Calibrations | None = None,
) -> dict[str, Any]:
    """Records a person's demonstrations and says how it went.

    Args:
        task: Name of the task.
        path: Directory of the store; one that holds demonstrations is gone on with.
        episodes: How many there shall be.
        seed: Resets follow from it.
        observed: What is recorded of the robot.
        operator: How the person takes part.
        calibrations: Those that hold; the store has copies of them.
    """
    cell = viewed_workcell(task, observed)
    with (
        contextlib.closing(cell),
        demonstration_store(path, task, seed, calibrations, resume=True) as store,
        in_person(cell, observed, operator, path) as place,
    ):
        session = DemoSession(
            place.env,
            store,
            place.supervision,
            place.person,
            episodes=episodes,
            seed=seed,
            reporter=place.reporter,
            observers=[place.board],
        )
        place.run(session)
        rows = store.summaries()
        answer = {"task": task, "episodes": 0, "success_rate": None, "cycle_time_s": None, "store": str(path)}
        if rows:
            from robot_rl.viz.demo_coverage import coverage  # here, as matplotlib takes half a second to import

            answer |= demonstration_facts(rows, place.env.spec_task.control_period)
            coverage(store, path / "coverage.png", title=f"{task}: {len(rows)} demonstrations")
            answer["coverage"] = str(path / "coverage.png")
        return answer
