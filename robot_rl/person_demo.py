"""`robot-rl demo` with a person: workcell, console, session, and what is said at the end."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from robot_rl.console.board import Board
from robot_rl.data.store import EpisodeStore
from robot_rl.demo_session import DemoSession
from robot_rl.demonstrate import demonstration_facts
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import RenderError
from robot_rl.operation import VIEW_SIZE, OperatorOptions, operated
from robot_rl.registry import make_workcell

PATIENCE = 3
"""How many times the task's step limit a person may take."""


class TerminalReporter:
    """Tells the board, and the terminal in a line each.

    Args:
        board: What the console shows.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    def phase(self, name: str, text: str, requests: tuple[str, ...]) -> None:
        """A new phase."""
        self._board.phase(name, text, requests)
        print(text, file=sys.stderr)

    def kept(self, count: int, wanted: int) -> None:
        """How many demonstrations there are."""
        self._board.kept(count, wanted)

    def remark(self, text: str) -> None:
        """Something worth telling."""
        self._board.remark(text)
        print(text, file=sys.stderr)


def demonstrate_in_person(
    task: str, path: Path, *, episodes: int, seed: int, observed: WorkcellOptions, operator: OperatorOptions
) -> dict[str, Any]:
    """Records a person's demonstrations and says how it went.

    Args:
        task: Name of the task.
        path: Directory of the store; one that holds demonstrations is gone on with.
        episodes: How many there shall be.
        seed: Resets follow from it.
        observed: What is recorded of the robot.
        operator: How the person takes part.
    """
    cell = viewed_workcell(task, observed)
    with contextlib.ExitStack() as stack:
        stack.callback(cell.close)
        board = Board("demo", replace(cell.task.spec, max_steps=PATIENCE * cell.task.spec.max_steps))
        stopped = stack.enter_context(_signals())
        store = stack.enter_context(_store(path, task, seed))
        log = path / "operator.jsonl"
        operation = stack.enter_context(operated(cell, operator, board, store=path, log=log, say=_say))
        supervised = operation.supervision.workcell(operation.person, max_steps=PATIENCE * cell.task.spec.max_steps)
        env = RobotEnv(supervised, options=observed, handover=HandoverLimits())
        stack.callback(supervised.io.stop)
        session = DemoSession(
            env,
            store,
            operation.supervision,
            operation.person,
            episodes=episodes,
            seed=seed,
            reporter=TerminalReporter(board),
            observers=[board],
        )
        operation.request = session.request
        session.run(lambda: bool(stopped))
        board.phase("finished", "Finished. This page can be closed.", ())
        rows = store.summaries()
        answer = {"task": task, "episodes": 0, "success_rate": None, "cycle_time_s": None, "store": str(path)}
        if rows:
            from robot_rl.coverage import coverage  # here, as matplotlib takes half a second to import

            answer |= demonstration_facts(rows, env.spec_task.control_period)
            coverage(store, path / "coverage.png", title=f"{task}: {len(rows)} demonstrations")
            answer["coverage"] = str(path / "coverage.png")
        return answer


def viewed_workcell(task: str, observed: WorkcellOptions) -> Workcell:
    """A workcell in real time with live views, even where the job observes no frames; without, if none can be made."""
    options = replace(observed, realtime=True)
    if options.cameras:
        return make_workcell(task, options)
    probe = make_workcell(task)
    cameras = probe.task.spec.cameras
    probe.close()
    try:
        return make_workcell(task, replace(options, cameras=cameras, image_size=VIEW_SIZE))
    except RenderError as error:
        print(f"warning: no live views: {error}", file=sys.stderr)
        return make_workcell(task, options)


def _store(path: Path, task: str, seed: int) -> EpisodeStore:
    """A new store, or the one that is there, to go on with."""
    if (path / "store.json").exists():
        return EpisodeStore.open(path, write=True, keep_interrupted=False)
    return EpisodeStore.create(path, {"task": task, "seed": seed})


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """The first Ctrl-C (or SIGTERM) ends the session with what is stored; a second one at once."""
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        if seen:
            raise KeyboardInterrupt
        seen.append(number)
        _say("stopping; what was recorded is kept")

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
