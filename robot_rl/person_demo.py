"""`robot-rl demo` with a person: workcell, store, session, and what is said at the end."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from robot_rl.calibration_record import Calibrations
from robot_rl.demo_session import DemoSession
from robot_rl.demonstrate import demonstration_facts, demonstration_store
from robot_rl.env.task import WorkcellOptions
from robot_rl.in_person import in_person
from robot_rl.operation import OperatorOptions, viewed_workcell


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
            from robot_rl.coverage import coverage  # here, as matplotlib takes half a second to import

            answer |= demonstration_facts(rows, place.env.spec_task.control_period)
            coverage(store, path / "coverage.png", title=f"{task}: {len(rows)} demonstrations")
            answer["coverage"] = str(path / "coverage.png")
        return answer
