"""The picture of a training's interventions: when people took over, for how long, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import InterruptedRunError
from robot_rl.run.directory.human_effort import OPERATOR_LOG
from robot_rl.system.checked_json import read_rows


@contextlib.contextmanager
def draw_interventions(run: Path) -> Iterator[None]:
    """Draw `interventions.png` of a run when the training inside the context ends or is stopped."""

    def draw() -> None:
        from robot_rl.viz.interventions import intervention_plot  # here, as matplotlib takes half a second to import

        with EpisodeStore.open(run / "episodes") as store:
            log = run / OPERATOR_LOG
            intervention_plot(store, read_rows(log) if log.exists() else [], run / "interventions.png")

    try:
        yield
    except InterruptedRunError:
        draw()
        raise
    else:
        draw()
