"""The labeller's process: `python -m robot_rl.reward.labels.process`; its messages are in `process_messages`.

It labels the episodes that a training records, each as soon as it is there. Labels are stored before they are sent, so
that killing it loses none. When its standard input ends, and so when the training is gone, it starts no further query
and ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.errors import BudgetSpentError, ConfigError, LinkError, RobotRLError, ValuelessAnswersError
from robot_rl.reward.answer import Answer
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate_new import StoreLabelling, query_identity
from robot_rl.reward.labels.onset import Onset
from robot_rl.reward.labels.process_messages import (
    TO_LABELLER,
    TO_TRAINING,
    Labelled,
    LabellerEnded,
    LabellerMessage,
    LabellerReady,
    LabellingOrder,
    Order,
    RoundDone,
    StoreOpened,
)
from robot_rl.reward.vlm.make_backend import make_backend

PAUSE = 5.0
"""Before the next attempt for episodes without a label, unless another one is recorded [s]."""


def main() -> int:
    """Serve the training at the other end; return the exit code."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no message
    try:
        first = TO_LABELLER.read(sys.stdin.buffer)
        if not isinstance(first, LabellingOrder):
            raise LinkError(f"the first message is {type(first).__name__}, expected LabellingOrder")
        _serve(first.order(), sys.stdin.buffer, out)
    except BudgetSpentError as error:
        _send(out, LabellerEnded(f"{error}; continue with --resume and a larger reward.budget", failed=False))
    except ValuelessAnswersError as error:
        _send(out, LabellerEnded(str(error), failed=False))
    except RobotRLError as error:
        _send(out, LabellerEnded(str(error), failed=True))
        return 1
    except BrokenPipeError:  # the training is gone
        return 1
    return 0


def _serve(order: Order, orders: IO[bytes], out: IO[bytes]) -> None:
    """Label until the input ends.

    Raises:
        BudgetSpentError: when the budget is spent.
        ValuelessAnswersError: when answers have no values.
        RobotRLError: for whatever the user can cure.
    """
    config, budget = order.config, Budget(order.config.budget)
    backend = make_backend(config, budget)
    identity = query_identity(backend, config, order.task, config.frames.camera)
    if changed := sorted(key for key in {*identity, *order.identity} if identity.get(key) != order.identity.get(key)):
        raise ConfigError(
            f"the labeller is not the one that gave labels {order.name!r}: another {', '.join(changed)}; "
            "label, calibrate and judge with this one first"
        )
    _send(out, LabellerReady())
    opened = TO_LABELLER.read(orders)
    if not isinstance(opened, StoreOpened):
        return
    store = Path(opened.path)
    wake, gone = threading.Event(), threading.Event()
    threading.Thread(target=_listen, args=(orders, wake, gone, backend.close), name="listen", daemon=True).start()

    with LabelStore(store, create=True) as labels:
        onset = Onset(store, order, labels, backend, identity) if order.find_onset else None

        def send_label(row: EpisodeSummary, answer: Answer, lag: float | None, queried: bool) -> None:
            since, cost = onset.of(row, answer) if onset is not None else (0, 0.0)
            cost += answer.cost if queried else 0.0
            _send(out, Labelled(row.episode_id, str(answer.status), answer.values, lag, queried, cost, since))

        labelling = StoreLabelling(
            store, config, order.task, labels, order.name, backend, on_label=send_label, wanted=_wanted
        )
        while not gone.is_set():
            wake.clear()
            found = labelling.round()
            _send(out, RoundDone(*found))
            budget.check()
            wake.wait(PAUSE if found.left else None)
    backend.close()


def _wanted(row: EpisodeSummary) -> bool:
    """Return False for a demonstration: its operator has labelled it."""
    return not row.facts.demonstration


def _listen(
    orders: IO[bytes], wake: threading.Event, gone: threading.Event, stop_queries: Callable[[], object]
) -> None:
    with contextlib.suppress(LinkError):  # cut short: the training was killed
        while TO_LABELLER.read(orders) is not None:
            wake.set()
    gone.set()
    wake.set()
    stop_queries()


def _send(out: IO[bytes], message: LabellerMessage) -> None:
    TO_TRAINING.write(out, message)


if __name__ == "__main__":
    sys.exit(main())
