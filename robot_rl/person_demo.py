"""`robot-rl demo` with a person: workcell, console, session, and what is said at the end."""

from __future__ import annotations

import contextlib
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.console.board import Board
from robot_rl.data.store import EpisodeStore
from robot_rl.demo_session import DemoSession
from robot_rl.demonstrate import demonstration_facts
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.interruption import stop_on_signal
from robot_rl.operation import OperatorOptions, operated, viewed_workcell

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
        stopped = threading.Event()
        stack.enter_context(stop_on_signal(lambda: _stop(stopped)))
        store = stack.enter_context(
            EpisodeStore.open_or_create(path, {"task": task, "seed": seed}, keep_interrupted=False)
        )
        log = path / "operator.jsonl"
        operation = stack.enter_context(operated(cell, operator, board, store=path, log=log))
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
        stack.enter_context(operation.serve())
        session.run(stopped.is_set)
        board.phase("finished", "Finished. This page can be closed.", ())
        rows = store.summaries()
        answer = {"task": task, "episodes": 0, "success_rate": None, "cycle_time_s": None, "store": str(path)}
        if rows:
            from robot_rl.coverage import coverage  # here, as matplotlib takes half a second to import

            answer |= demonstration_facts(rows, env.spec_task.control_period)
            coverage(store, path / "coverage.png", title=f"{task}: {len(rows)} demonstrations")
            answer["coverage"] = str(path / "coverage.png")
        return answer


def _stop(stopped: threading.Event) -> None:
    stopped.set()
    print("stopping; what was recorded is kept", file=sys.stderr, flush=True)
