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
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.errors import BudgetSpentError, ConfigError, LinkError, RobotRLError, ValuelessAnswersError
from robot_rl.reward.answer import Answer
from robot_rl.reward.backend import Backend
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
from robot_rl.system.process import keep_imports

PAUSE = 5.0
"""Before the next attempt for episodes without a label, unless another one is recorded [s]."""


class Work(NamedTuple):
    """What a labeller's process has to do its work.

    Attributes:
        store: Directory of the store whose episodes are recorded.
        order: The labeller's settings.
        labels: Where labels go.
        backend: Answers the queries.
        identity: All that an answer depends on, besides the episode.
        budget: What may be used.
        send: Sends a message to the training.
    """

    store: Path
    order: Order
    labels: LabelStore
    backend: Backend
    identity: dict[str, object]
    budget: Budget
    send: Callable[[LabellerMessage], None]


def main(begin: Callable[[Work], Callable[[], bool]]) -> int:
    """Serve the training at the other end; return the exit code.

    Args:
        begin: Begins the work; returns the function that does a round of it, which returns whether to try again soon.
    """
    keep_imports()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no message
    # A buffer of its own: Python aborts at its end if a thread still reads from the buffer of `sys.stdin`.
    orders = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115  (as long as the process)
    try:
        first = TO_LABELLER.read(orders)
        if not isinstance(first, LabellingOrder):
            raise LinkError(f"the first message is {type(first).__name__}, expected LabellingOrder")
        _serve(first.order(), orders, out, begin)
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


def _serve(order: Order, orders: IO[bytes], out: IO[bytes], begin: Callable[[Work], Callable[[], bool]]) -> None:
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
        work_on = begin(Work(store, order, labels, backend, identity, budget, partial(_send, out)))
        while not gone.is_set():
            wake.clear()
            wake.wait(PAUSE if work_on() else None)
    backend.close()


def label_episodes(work: Work) -> Callable[[], bool]:
    """Label each episode as it is recorded."""
    order = work.order
    onset = Onset(work.store, order, work.labels, work.backend, work.identity) if order.find_onset else None

    def send_label(row: EpisodeSummary, answer: Answer, lag: float | None, queried: bool) -> None:
        since, cost = onset.of(row, answer) if onset is not None else (0, 0.0)
        cost += answer.cost if queried else 0.0
        work.send(Labelled(row.episode_id, str(answer.status), answer.values, lag, queried, cost, since))

    labelling = StoreLabelling(
        work.store, order.config, order.task, work.labels, order.name, work.backend, on_label=send_label, wanted=_wanted
    )

    def work_on() -> bool:
        found = labelling.round()
        work.send(RoundDone(*found))
        work.budget.check()
        return bool(found.left)

    return work_on


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
    sys.exit(main(label_episodes))
