"""Demonstrations by a human operator: `robot-rl demo` with a device or the console.

Every attempt goes through the store. One that is discarded, or cut short by a hold, is moved aside, not deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.demo_quality import quality_warnings
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.episode_observer import EpisodeResult, Observer
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.env.task import WorkcellOptions
from robot_rl.hil.operator_setup import MakeWorkcell, OperatorOptions, viewed_workcell
from robot_rl.hil.teleop_session import Requests, open_session
from robot_rl.learn.actor import Rollout, StoreRecorder
from robot_rl.run.demonstrate import demonstration_facts, demonstration_id, demonstration_store
from robot_rl.run.directory.calibrations import Calibrations
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.teleop.device_operator import Person


class Reporter(Protocol):
    """Shows the operator the state of a session."""

    def phase(self, name: str, text: str, requests: tuple[str, ...]) -> None:
        """Show a new phase, what it means, and the possible requests."""
        ...

    def kept(self, count: int, wanted: int) -> None:
        """Show how many demonstrations there are."""
        ...

    def remark(self, text: str) -> None:
        """Show a remark, once."""
        ...


class DemoSession:
    """Records until the wanted number of demonstrations is kept.

    Args:
        env: The supervised environment with the person as its operator.
        store: The store of the demonstrations.
        supervision: Supervision of that environment.
        person: The operator, who leads with the devices.
        episodes: Wanted number.
        seed: Resets follow from it.
        reporter: Shows the state of the session.
        observers: Observers of every step.
    """

    def __init__(
        self,
        env: RobotEnv,
        store: EpisodeStore,
        supervision: Supervision,
        person: Person,
        *,
        episodes: int,
        seed: int,
        reporter: Reporter,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._env, self._store, self._supervision, self._person = env, store, supervision, person
        self._episodes, self._seed, self._reporter = episodes, seed, reporter
        self._newest: _NewestEpisode = _NewestEpisode()
        self._rollout = Rollout(env, None, None, (0,), [StoreRecorder(store), self._newest, *observers])
        self._requests = Requests(reporter.remark)

    # -------------------------------------------------------- from any thread

    def request(self, name: str) -> None:
        """Add a request; one that is not possible in this phase is dropped with a remark.

        Raises:
            UnknownNameError: if there is no such request.
        """
        self._requests.add(name)
        self._supervision.notify()

    # ------------------------------------------------------- the control loop

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Record until all are kept and the operator requests `finish`, or `stop` returns True."""
        self._reporter.kept(len(self._store), self._episodes)
        again = False
        while not stop():
            if not again:
                requested = self._next_request(stop)
                if requested in (None, "finish"):
                    return
                if requested in ("discard", "redo"):
                    self._discard_last()
                    again = requested == "redo"
                    continue
            again = self._record(stop) == "redo"

    def _next_request(self, stop: Callable[[], bool]) -> str | None:
        """Show the next scene and wait for a request; return None when stopped."""
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
            request = self._requests.next(valid)
            if request is not None and self._supervision.wait():
                return request
            if request is not None:
                self._reporter.remark(f"not while the arm is held: {request}")
            self._supervision.wait(lambda: bool(self._requests))
        return None

    def _until_released(self, stop: Callable[[], bool]) -> bool:
        """Wait while somebody holds the arm, as a reset may move it; return False when stopped."""
        while not self._supervision.wait():
            self._person.watch()
            if stop():
                return False
        return True

    def _record(self, stop: Callable[[], bool]) -> str | None:
        """Record one attempt; return the request that ended it without a demonstration, or None."""
        valid = ("stop", "success", "failure", "discard", "redo")
        self._reporter.phase("waiting", "Recording starts when you move.", ("discard",))
        while not self._person.watch():
            if stop() or self._requests.next(("discard",)) is not None or self._supervision.holds:
                return None
            self._supervision.wait(lambda: False)
        self._reporter.phase("recording", "Recording. Success ends it, the task's or by the button.", valid)
        name = demonstration_id(self._number())
        self._rollout.begin(self._scene(), name, demonstrate=True)
        ended_by, result = None, None
        while result is None:
            request = self._requests.next(valid)
            if request in ("success", "failure"):
                self._supervision.mark(request == "success")
            elif request is not None:
                ended_by = request
                self._supervision.cut(request)
            result = self._rollout.step(deterministic=True, last=stop())
        episode = self._newest.episode
        if episode is None:  # cannot be: a step was taken
            return ended_by
        cut = episode.facts.cut
        if ended_by in ("discard", "redo") or (cut is not None and ended_by is None):
            self._set_aside(name, ended_by or str(cut))
            return ended_by
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
        """Return the smallest free number, so that a demonstration that is redone starts the same way."""
        taken = set(self._store.ids())
        return next(number for number in range(len(taken) + 1) if demonstration_id(number) not in taken)

    def _scene(self) -> int:
        return episode_seed(Purpose.DEMONSTRATION, self._seed, self._number())


class _NewestEpisode:
    """An observer that keeps the newest episode."""

    def __init__(self) -> None:
        self.episode: Episode | None = None

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Forget the last one."""
        del episode_id, observation
        self.episode = None

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: whole episodes are kept."""

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Keep it."""
        del result
        self.episode = episode


def record_human_demonstrations(
    task: str,
    path: Path,
    *,
    episodes: int,
    seed: int,
    observed: WorkcellOptions,
    operator: OperatorOptions,
    calibrations: Calibrations | None = None,
    make: MakeWorkcell = viewed_workcell,
) -> dict[str, Any]:
    """Record demonstrations of a human operator and return a summary of them.

    Args:
        task: Name of the task.
        path: Directory of the store; one that holds demonstrations is continued.
        episodes: How many there shall be.
        seed: Resets follow from it.
        observed: What is recorded of the robot.
        operator: Devices and console.
        calibrations: The valid ones; the store gets copies of them.
        make: Makes the workcell of the task; by default a simulation with live views.
    """
    cell = make(task, observed)
    with (
        contextlib.closing(cell),
        demonstration_store(path, task, seed, calibrations, resume=True) as store,
        open_session(cell, observed, operator, path) as place,
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
