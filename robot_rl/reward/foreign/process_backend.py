"""A model in a process of its own as a `Backend`, e.g. Robometer or SARM in the environment that they need.

The program needs nothing of ours. It writes one JSON line when it is ready, `{"model": ..., "revision": ...}`, then
reads a query and writes one JSON line for it, until its standard input ends:

    query   a JSON line {"kind", "task", "camera", "rows", "shape": [n, height, width, 3]}, then so many bytes of RGB
    answer  {"values": [...]}, one for each frame of `progress` and `score`, one for `success`; or {"unsure": why}
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from robot_rl.config.labelling import ProcessConfig
from robot_rl.errors import ConfigError, UnansweredError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Query, QueryKind
from robot_rl.system.checked_json import parse_json
from robot_rl.system.line_process import LONGEST_LINE, LineProcess, NoAnswerError
from robot_rl.system.printable import one_line


class ProcessBackend:
    """Answers queries by a program, which is started at once, and again after it has ended.

    Args:
        config: The program.
        kind: Of the queries.
        budget: What may be used.

    Raises:
        ConfigError: if the program cannot be started, or does not state its model.
    """

    concurrency = 1

    def __init__(self, config: ProcessConfig, kind: QueryKind, budget: Budget) -> None:
        self._config, self._kind, self._budget = config, kind, budget
        self._lock, self._closed = threading.Lock(), False
        self._process: LineProcess | None = None
        try:
            self._who = self._start()
        except UnansweredError as error:
            self.close()
            raise ConfigError(f"process.command: {error}") from error

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model and revision, as the program states them."""
        return {"backend": "process", **self._who}

    def answer(self, query: Query) -> Answer:
        """Return the program's answer; see `Backend.answer`."""
        (clip,) = query.clips
        head = {
            "kind": str(query.kind),
            "task": query.task,
            "camera": clip.camera,
            "rows": list(clip.rows),
            "shape": list(clip.frames.shape),
        }
        started = time.monotonic()
        with self._lock, self._budget.purchase():
            if self._process is None and self._start() != self._who:
                raise ConfigError("process.command: it states another model than before; label under another --name")
            line = self._exchange(json.dumps(head).encode() + b"\n" + np.ascontiguousarray(clip.frames).tobytes())
        status, values, details = _parsed(line, query)
        raw = line.decode(errors="replace").strip()[:LONGEST_LINE]
        return Answer(status, values, raw, details, latency=time.monotonic() - started)

    def close(self) -> None:
        """End the program."""
        self._closed = True
        self._end()

    def _start(self) -> dict[str, str]:
        """Start the program; return its model and revision."""
        if self._closed:
            raise UnansweredError("the labeller was closed")
        try:
            self._process = LineProcess(self._config.command)
        except OSError as error:
            raise UnansweredError(f"{self._config.command[0]} cannot be started: {error.strerror}") from error
        hello = _tree(self._exchange(b""))
        if not {"model", "revision"} <= hello.keys():
            self._end()
            raise UnansweredError('its first line must be JSON: {"model": "...", "revision": "..."}')
        return {key: one_line(str(hello[key])) for key in ("model", "revision")}

    def _exchange(self, content: bytes) -> bytes:
        """Send a query, and return the line that answers it; a program that does not answer in time is ended."""
        process = self._process
        if process is None:
            raise UnansweredError("the program has ended")
        try:
            return process.exchange(content, self._config.timeout_s)
        except NoAnswerError as error:
            self._process = None
            raise UnansweredError(str(error)) from error

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end(*(() if self._closed else (0.0,)))


def _tree(line: bytes) -> dict[str, Any]:
    try:
        tree = parse_json(line)
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _parsed(line: bytes, query: Query) -> tuple[Status, tuple[float, ...], dict[str, Any]]:
    tree = _tree(line)
    if "unsure" in tree:
        return Status.UNSURE, (), {"why": one_line(str(tree["unsure"]))}
    values = tree.get("values")
    wanted = 1 if query.kind is QueryKind.SUCCESS else len(query.clips[0].rows)
    why = ""
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        why = 'expected a line {"values": [numbers]} or {"unsure": "why"}'
    elif len(values) != wanted:
        why = f"{len(values)} values, expected {wanted}"
    elif not all(math.isfinite(value) for value in values):
        why = "a value is not finite"
    elif query.kind is not QueryKind.SCORE and not all(0.0 <= value <= 1.0 for value in values):
        why = "a value is not in [0, 1]"
    if why:
        return Status.UNPARSABLE, (), {"why": why}
    return Status.OK, tuple(map(float, values or ())), {}
