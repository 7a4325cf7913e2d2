"""One of several processes that share the updates of each of our algorithms: `python part.py RANK SIZE MEETING OUT`.

All make the same batches and compute with their rows of them, in float64; the parameters are written to OUT.
"""

import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tiny_heads import FEATURES, STATE, head, images

from robot_rl.config.components import IQLConfig, SACConfig
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.bc import BehaviourCloning
from robot_rl.learn.algorithms.double_dqn import DoubleDQN
from robot_rl.learn.algorithms.iql import IQL
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.parallel.ranks import ALONE, DistributedRanks

ROWS, MINIBATCHES, CALLS = 12, 3, 4


def whole_batch(action_size, choices, images_too, seed):
    """A batch as one process would have it; of two ranks, the first has the first half of its rows."""
    g = torch.Generator().manual_seed(seed)
    shape = MINIBATCHES, ROWS
    action = torch.rand(*shape, action_size, generator=g) * 2 - 1
    if choices:
        action[..., -1] = action[..., -1].round()
    states = [torch.randn(*shape, STATE, generator=g) for _ in range(2)]
    seen, way = [], None
    if images_too:
        count = MINIBATCHES * ROWS
        seen = [images(count, FEATURES, seed + n).view(*shape, *FEATURES.view_shape) for n in (1, 2)]
        way = torch.randn(*shape, 3, generator=g)
        way[:, ROWS // 2 + 1 :] = torch.nan  # known of most rows of one half, and of one of the other
        way[0] = torch.nan
    rewards, discounts = torch.rand(*shape, generator=g), 0.9 * torch.randint(2, shape, generator=g)
    shown = torch.zeros(shape)
    shown[:, : ROWS // 2 - 1] = shown[:, -1] = 1.0  # most rows of one half, and one of the other
    told = {"demonstrated": shown, "corrected": shown * (torch.arange(ROWS) % 2)}
    return Batch(states[0], action, rewards, discounts.double(), states[1], *(seen or (None, None)), way, **told)


def algorithms(ranks):
    """Each of ours, with what its batches have."""

    def policy(choices=0, size=3, images_too=False):
        eyes = head(name="bundled", pose=(0, 1, 2)) if images_too else StateHead(STATE)
        g = torch.Generator().manual_seed(1)
        return Policy(head=eyes, action_size=size, choices=choices, hidden_sizes=(8,), generator=g, ranks=ranks)

    sac = SACConfig(hidden_sizes=(8,), ensemble_size=4, learning_rate=1e-2, clamp_targets=False)
    known = {"return_range": (0.0, 1.0)}
    yield "sac", SAC(policy(), **known, config=sac), (3, 0, False)
    histogram = SACConfig(hidden_sizes=(8,), target_subset=1, critic_loss="hl_gauss", learning_rate=1e-2)
    yield "gripper", SAC(policy(3), **known, config=histogram), (3, 3, False)
    yield "pixels", SAC(policy(images_too=True), **known, config=sac), (3, 0, True)
    for rule in ("helpful", "advantage", "certain"):
        config = SACConfig(hidden_sizes=(8,), learning_rate=1e-2, clamp_targets=False, imitation=1.0, imitated=rule)
        yield rule, SAC(policy(3), return_range=None, config=config), (3, 3, False)
    yield "iql", IQL(policy(), **known, config=sac, offline=IQLConfig()), (3, 0, False)
    yield "dqn", DoubleDQN(policy(3, 1), **known, config=sac), (1, 3, False)
    yield "bc", BehaviourCloning(policy(3), 1e-2), (3, 3, False)


def main():
    rank, size, meeting, out = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    ranks = ALONE if size == 1 else DistributedRanks(rank, size, meeting, "cpu")
    found, part = {}, ROWS // size
    for name, algorithm, batches in algorithms(ranks):
        for call in range(CALLS):
            whole = whole_batch(*batches, seed=10 * call)
            mine = (None if column is None else column[:, rank * part :][:, :part] for column in whole)
            algorithm.update(Batch(*mine))
        parameters = [value for value in algorithm.policy.state_dict().values() if value.is_floating_point()]
        found[name] = torch.cat([value.flatten() for value in parameters]).numpy()
    np.savez(out, **found)
    ranks.close()


if __name__ == "__main__":
    main()
