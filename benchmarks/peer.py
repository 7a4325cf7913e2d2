"""Our learner's update beside a peer's, on the same work, in turn.

    python benchmarks/peer.py --peer state="<command>" --peer pixels="<command>" [--rounds 3]

A peer's command times one update of the peer and prints a JSON object with `cpu_s_per_update_median` on its last line.
An update is 2 critic updates and one of actor and temperature: batch 256, state 18, 4 continuous actions, 2 critics,
layers of 256 and 256, one thread; `pixels` adds two cameras of 128 by 128 pixels behind a frozen encoder, through which
our frames have gone when they arrived. CPU times, so that other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import time

import torch

from robot_rl.config.components import EncoderConfig, EngineConfig, SACConfig
from robot_rl.data.percept import ImageSpec, PerceptSpec
from robot_rl.learn.batch import Batch
from robot_rl.learn.engine import Engine
from robot_rl.learn.heads import ImageHead, StateHead
from robot_rl.learn.networks import Policy
from robot_rl.learn.sac import SAC

STATE, ACTION, SHAPE = 18, 4, (2, 256)
FEATURES = ImageSpec("features", (4, 2, 64, 4, 4), "float16", maker="", size=128)
ENGINES = {"eager": EngineConfig(), "bfloat16": EngineConfig(precision="bfloat16")}
CALLS = 10


def ours(case: str, engine: EngineConfig) -> float:
    """Median CPU time of our update [s]."""
    config, generator = SACConfig(), torch.Generator().manual_seed(0)
    head: StateHead | ImageHead = StateHead(STATE)
    if case == "pixels":
        head = ImageHead(STATE, PerceptSpec(STATE, FEATURES, (0, 6)), EncoderConfig(), generator)
    policy = Policy(head=head, action_size=ACTION, gripper=False, hidden_sizes=config.hidden_sizes, generator=generator)
    learner = Engine(SAC(policy, return_range=(0.0, 1.0), config=config), engine)
    batch = Batch(
        observation=torch.randn(*SHAPE, STATE),
        action=torch.rand(*SHAPE, ACTION) * 2 - 1,
        reward=torch.zeros(SHAPE),
        discount=torch.full(SHAPE, 0.9),
        next_observation=torch.randn(*SHAPE, STATE),
    )
    if case == "pixels":
        seen = [torch.randn(*SHAPE, *FEATURES.view_shape).half() for _ in range(2)]
        batch = batch._replace(images=seen[0], next_images=seen[1], to_goal=torch.randn(*SHAPE, 6))
    times = []
    for _ in range(CALLS):
        start = time.process_time()
        learner.update(batch)
        times.append(time.process_time() - start)
    return statistics.median(times)


def theirs(command: str) -> float:
    """What the peer's command prints [s]."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1])["cpu_s_per_update_median"])


def main() -> None:
    """Prints one JSON line for each case and each engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", required=True, metavar="CASE=COMMAND", help="state or pixels")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for pair in arguments.peer:
        case, _, command = pair.partition("=")
        if case not in ("state", "pixels") or not command:
            parser.error(f"--peer {pair!r}: expected state=COMMAND or pixels=COMMAND")
        peer, times = [], {name: [] for name in ENGINES}
        for _ in range(arguments.rounds):
            peer.append(theirs(command))
            for name, engine in ENGINES.items():
                times[name].append(ours(case, engine))
        for name in ENGINES:
            own = statistics.median(times[name])
            row = {"case": case, "engine": name, "ours_ms": 1e3 * own, "peer_ms": 1e3 * statistics.median(peer)}
            print(json.dumps({**row, "times_faster": row["peer_ms"] / row["ours_ms"]}), flush=True)


if __name__ == "__main__":
    main()
