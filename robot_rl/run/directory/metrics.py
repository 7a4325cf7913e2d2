"""The record of a run over env steps: `metrics.jsonl` to compute with, TensorBoard to view.

Each line is one JSON object with its `kind` and `env_step`; the other values are numbers, booleans, text, or null for
"not known" or "not finite".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from robot_rl.errors import DataError, UnknownNameError
from robot_rl.system.atomic_file import to_json, write_atomically, writing
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

FIELDS: Mapping[str, tuple[str, ...]] = {
    "demonstrations": ("episodes", "success_rate", "cycle_time_s"),
    "base": ("base_updates", "base_loss"),  # training of the base
    "offline": ("offline_updates",),  # `env_step` counts up to 0
    "episode": (
        "episode",  # number of the online episode, from 0
        "return",
        "success",
        "assisted",  # whether the operator took over in it
        "steps",
        "cycle_time_s",  # from reset to the end; counts as a cycle time where `success`
        "intervention_steps",
        "intervention_rate",  # intervention_steps / steps
        "force_peak_n",
        "journal_queue_peak",  # most steps that waited for the disk at a time
        "not_journalled",  # steps that found that queue full
        "wall_s",  # since the run was started
    ),
    "label": ("episode_id", "status", "value", "success", "truth", "lag_s", "cost", "alarms"),
    "preference_session": ("session", "pairs", "flip_rate", "accuracy", "queried", "cost", "seconds"),
    "update": ("updates", "steps_per_s", "updates_per_s", "utd"),  # and the logs of the algorithm
    "curve": ("episodes", "success_rate", "cycle_time_s"),  # a short evaluation while training
    "evaluation": ("episodes", "success_rate", "cycle_time_s"),
}
"""Kinds of record and the values that each must hold; it may hold more."""
OF_EPISODES = ("episode", "label", "curve")
"""Kinds that are written once, when an episode was played; learning again from what is stored does not repeat them."""


class MetricsWriter:
    """Appends records to `metrics.jsonl` and, if wanted, to TensorBoard. Close it, or use it in a `with` statement.

    Args:
        path: The `metrics.jsonl`.
        tensorboard: Folder for TensorBoard, or None for none.
        resume_step: Continue an earlier record: its records of env steps after this one are dropped. A run must
            therefore write the records of a step before the checkpoint of that step.
        lasting: Kinds that are kept all the same.

    Raises:
        RunDirectoryError: if the files cannot be written.
        DataError: if the record to be continued cannot be read.
    """

    def __init__(
        self,
        path: Path,
        tensorboard: Path | None = None,
        resume_step: int | None = None,
        lasting: Collection[str] = (),
    ) -> None:
        later: list[dict[str, Any]] = []
        if resume_step is not None and path.exists():
            records = read_metrics(path)
            kept = [record for record in records if record["env_step"] <= resume_step or record["kind"] in lasting]
            later = [record for record in kept if record["env_step"] > resume_step]
            write_atomically(path, "".join(to_json(record) + "\n" for record in kept))
        self.path = path
        self.listeners: list[Callable[[str, int, Mapping[str, Any]], object]] = []
        """Called with every record that is written."""
        with writing(path):
            self._file = path.open("w" if resume_step is None else "a", encoding="utf-8")
        self._board: Any = None
        if tensorboard is not None:
            # Imported here: it takes a fifth of a second, and only training needs it.
            from torch.utils.tensorboard import SummaryWriter

            purge_step = None if resume_step is None else resume_step + 1
            with writing(tensorboard):
                self._board = SummaryWriter(str(tensorboard), purge_step=purge_step)
                for record in later:
                    self._show(record["kind"], record["env_step"], record)

    def write(self, kind: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Append one record, on disk when this returns.

        Args:
            kind: One of `FIELDS`.
            env_step: Online steps taken so far.
            values: What was measured, by name.

        Raises:
            UnknownNameError: if nobody declared the kind.
            DataError: if a value that the kind must hold is missing.
            RunDirectoryError: if it cannot be written.
        """
        if kind not in FIELDS:
            raise UnknownNameError("kind of metrics record", kind, FIELDS)
        if missing := [name for name in FIELDS[kind] if name not in values]:
            raise DataError(f"metrics record of kind {kind!r} at env step {env_step} lacks {', '.join(missing)}")
        with writing(self.path):
            self._file.write(to_json({"kind": kind, "env_step": env_step, **values}) + "\n")
            self._file.flush()
            self._show(kind, env_step, values)
        for listener in self.listeners:
            listener(kind, env_step, values)

    def _show(self, kind: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Add a record to TensorBoard, if wanted."""
        if self._board is None:
            return
        for name, value in values.items():
            if isinstance(value, int | float) and name != "env_step":
                self._board.add_scalar(f"{kind}/{name}", value, env_step)

    def replace(self, kind: str, env_step: int, values: Mapping[str, Any]) -> None:
        """Write the one record of a kind at a step: one that a killed run left there goes.

        For what is written after the checkpoint of its step, which a resumed run therefore keeps and writes again.
        Arguments and errors are those of `write`.
        """
        records = read_metrics(self.path)
        kept = [record for record in records if (record["kind"], record["env_step"]) != (kind, env_step)]
        if len(kept) < len(records):
            with writing(self.path):
                self._file.close()
            write_atomically(self.path, "".join(to_json(record) + "\n" for record in kept))
            with writing(self.path):
                self._file = self.path.open("a", encoding="utf-8")
        self.write(kind, env_step, values)

    def close(self) -> None:
        """Write out what is left; may be called twice."""
        with writing(self.path):
            try:
                self._file.close()
            finally:
                if self._board is not None:
                    self._board.close()
                    self._board = None

    def __enter__(self) -> MetricsWriter:
        """Return the writer itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()


def read_metrics(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Read records in the order in which they were written.

    A last line without its end, which a killed process leaves behind, is left out.

    Args:
        path: The `metrics.jsonl`.
        kind: Only records of this kind, or None for all.

    Raises:
        DataError: if the file cannot be read or a line is not a record.
    """
    try:
        lines = read_regular(path).decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read metrics {path}: {error}") from error
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = parse_json(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: is not JSON: {error}") from error
        if not isinstance(record, dict) or not {"kind", "env_step"} <= record.keys():
            raise DataError(f"{path}, line {number}: is not a record with kind and env_step")
        if kind is None or record["kind"] == kind:
            records.append(record)
    return records
