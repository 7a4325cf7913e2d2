"""The process of preferences beside a training: `python -m robot_rl.reward.preference_loop.process`.

It is a labeller's process, see `robot_rl.reward.labels.process`, whose work is a `PreferenceLoop`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

from robot_rl.config.load import config_to_dict
from robot_rl.reward.labels.process import Work, main
from robot_rl.reward.preference_loop.loop import PreferenceLoop
from robot_rl.reward.query import QueryKind


def learn_from_pairs(work: Work) -> Callable[[], bool]:
    """Query pairs, and learn a reward from the answers."""
    torch.set_num_threads(1)
    order = work.order
    work.labels.begin(order.name, QueryKind.PREFERENCE, work.identity, config_to_dict(order.config))
    return PreferenceLoop(work).round


if __name__ == "__main__":
    sys.exit(main(learn_from_pairs))
