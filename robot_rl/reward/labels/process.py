"""The labeller's process: `python -m robot_rl.reward.labels.process`, told by lines what `labeller_words` says.

It labels the episodes that a training records, each as soon as it is there. Labels are stored before they are told, so
that killing it loses none. It ends when its standard input ends, and so when the training is gone.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TextIO

from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.errors import BudgetSpentError, ConfigError, RobotRLError
from robot_rl.reward.answer import Answer
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate_new import Watch, asked_identity
from robot_rl.reward.labels.onset import Onset
from robot_rl.reward.labels.process_messages import ORDERS, WORDS, Ended, Labelled, Looked, Order, Ready
from robot_rl.reward.vlm.make_backend import make_backend
from robot_rl.system.process import LABELLING, make_way

PAUSE = 5.0
"""Before episodes that were left without a label are asked about again, unless another one comes [s]."""


def main() -> int:
    """Serves the training at the other end; returns the exit code."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no word of ours
    make_way(LABELLING)
    try:
        _serve(ORDERS.validate_json(sys.stdin.readline()), sys.stdin, out)
    except BudgetSpentError as error:
        _tell(out, Ended(str(error), failed=False))
    except RobotRLError as error:
        _tell(out, Ended(str(error), failed=True))
        return 1
    except BrokenPipeError:  # nobody is left to be told
        return 1
    return 0


def _serve(order: Order, told: TextIO, out: TextIO) -> None:
    """Labels until there is nobody to label for.

    Raises:
        BudgetSpentError: when the budget is spent.
        RobotRLError: for whatever the user can cure.
    """
    config, budget = order.config, Budget(order.config.budget)
    backend = make_backend(config, budget)
    identity = asked_identity(backend, config, order.task, config.frames.camera)
    if changed := sorted(key for key in {*identity, *order.identity} if identity.get(key) != order.identity.get(key)):
        raise ConfigError(
            f"the labeller is not the one that gave labels {order.name!r}: another {', '.join(changed)}; "
            "label, calibrate and judge with this one first"
        )
    _tell(out, Ready())
    if not (store := told.readline().rstrip("\n")):
        return
    wake, gone = threading.Event(), threading.Event()
    threading.Thread(target=_listen, args=(told, wake, gone), name="listen", daemon=True).start()

    with LabelStore(Path(store), create=True) as labels:
        onset = Onset(Path(store), order, labels, backend, identity) if order.find_onset else None

        def take(row: EpisodeSummary, answer: Answer, lag: float | None, asked: bool) -> None:
            since, cost = onset.of(row, answer) if onset is not None else (0, 0.0)
            cost += answer.cost if asked else 0.0
            _tell(out, Labelled(row.episode_id, str(answer.status), answer.values, lag, asked, cost, since))

        watch = Watch(Path(store), config, order.task, labels, order.name, backend, on_label=take, wanted=_wanted)
        while not gone.is_set():
            wake.clear()
            found = watch.round()
            _tell(out, Looked(*found))
            budget.check()
            wake.wait(PAUSE if found.left else None)
    backend.close()


def _wanted(row: EpisodeSummary) -> bool:
    """Demonstrations are judged by whoever made them."""
    return not row.metadata.get("demonstration")


def _listen(told: TextIO, wake: threading.Event, gone: threading.Event) -> None:
    for _ in told:
        wake.set()
    gone.set()
    wake.set()


def _tell(out: TextIO, word: Ready | Labelled | Looked | Ended) -> None:
    out.write(WORDS.dump_json(word).decode() + "\n")
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
