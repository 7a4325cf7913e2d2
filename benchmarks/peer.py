"""Our learner's update beside a peer's, on the same work, in turn.

    python benchmarks/peer.py --peer state="<command>" --peer pixels="<command>" [--rounds 3]

A peer's command times one update of the peer and prints a JSON object with `cpu_s_per_update_median` on its last line.
An update is 2 critic updates and one of actor and temperature: batch 256, state 18, 4 continuous actions, 2 critics,
layers of 256 and 256, one thread; `pixels` adds two cameras of 128 by 128 pixels behind a frozen encoder, which encodes
our frames on arrival. The times are CPU times, so that other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import time
from dataclasses import replace

import torch

from robot_rl.bench.workload import Workload, cached_features
from robot_rl.config.components import EncoderConfig, EngineConfig
from robot_rl.learn.engine.engine import Engine

STATE = Workload(state=18, action=4, updates=2)
WORK = {"state": STATE, "pixels": replace(STATE, images=cached_features(EncoderConfig()))}
ENGINES = {"eager": EngineConfig(), "bfloat16": EngineConfig(precision="bfloat16")}
CALLS = 10


def ours(case: str, engine: EngineConfig) -> float:
    """Return the median CPU time of our update [s]."""
    learner, batch = Engine(WORK[case].learner(), engine), WORK[case].minibatches()
    times = []
    for _ in range(CALLS):
        start = time.process_time()
        learner.update(batch)
        times.append(time.process_time() - start)
    return statistics.median(times)


def theirs(command: str) -> float:
    """Return the time that the peer's command prints [s]."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1])["cpu_s_per_update_median"])


def main() -> None:
    """Print one JSON line for each case and each engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", required=True, metavar="CASE=COMMAND", help="state or pixels")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for pair in arguments.peer:
        case, _, command = pair.partition("=")
        if case not in WORK or not command:
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
