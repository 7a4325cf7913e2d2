"""A run directory or store that another process records, for the operator console: new episodes and metrics."""

from __future__ import annotations

from pathlib import Path

from robot_rl.console.job_state import JobState
from robot_rl.console.recorded_episodes import recorded_rows
from robot_rl.data.store.layout import EPISODES, find_store
from robot_rl.errors import DataError
from robot_rl.run.directory.metrics import read_metrics


class RecordedRun:
    """Shows each recorded episode and each metric once.

    Args:
        path: Run directory or store; it may be made later.
        control_period: Time between steps [s].
        board: Where they are shown.
    """

    def __init__(self, path: Path, control_period: float, board: JobState) -> None:
        self.path, self._control_period, self._board = path, control_period, board
        self._episodes = self._metrics = 0  # how many are shown
        self._changed, self._size = 0, 0  # when the store was, and how long the metrics were, when they were read last

    def show_new(self) -> bool:
        """Show what is new; return False while nothing is recorded yet."""
        metrics = self.path / "metrics.jsonl"
        try:
            store = find_store(self.path)
            changed, size = (store / EPISODES).stat().st_mtime_ns, metrics.stat().st_size if metrics.is_file() else 0
            rows = recorded_rows(store, self._control_period, self._episodes) if changed != self._changed else []
            records = read_metrics(metrics) if size != self._size else []
        except (DataError, OSError):
            return False
        self._changed, self._size = changed, size
        for record in records[self._metrics :]:
            self._board.metric(record["kind"], record["env_step"], record)
        self._metrics = max(len(records), self._metrics)
        for row in rows:
            self._board.ended(row)
        self._episodes += len(rows)
        return True
