"""Our learner's update beside a peer's, on the same work, in turn.

    python benchmarks/peer.py --peer state="<command>" --peer pixels="<command>" [--rounds 3] [--device cuda]

A peer's command times one update of the peer and prints a JSON object with `cpu_s_per_update_median` on its last line;
on a GPU `updates_per_s_median`.
An update is 2 critic updates and one of actor and temperature: batch 256, state 18, 4 continuous actions, 2 critics,
layers of 256 and 256, one thread; `pixels` adds two cameras of 128 by 128 pixels behind a frozen encoder, which encodes
our frames on arrival. On a CPU, times are CPU times, so that other work on the machine disturbs little; on a GPU they
are those of the wall clock, from an idle device to an idle device.
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

from robot_rl.bench.learner_cuda import ENGINES as GPU_ENGINES
from robot_rl.bench.workload import ENCODER, Workload, cached_features
from robot_rl.config.components import EngineConfig
from robot_rl.learn.engine.engine import Engine

STATE = Workload(state=18, action=4, updates=2)
WORK = {"state": STATE, "pixels": replace(STATE, images=cached_features(ENCODER))}
ENGINES = {
    "cpu": {"eager": EngineConfig(), "bfloat16": EngineConfig(precision="bfloat16")},
    "cuda": {name: GPU_ENGINES[name] for name in ("eager", "captured", "captured_bfloat16")},
}
CALLS, AT_ONCE = {"cpu": 10, "cuda": 11}, {"cpu": 1, "cuda": 20}
"""Times that are taken, and updates in each, as a GPU is still at work when a call returns."""


def ours(case: str, engine: EngineConfig, device: str) -> float:
    """Return the median time of our update [s]."""
    learner, batch = Engine(WORK[case].learner(device), engine), WORK[case].minibatches(device)
    times = []
    for _ in range(CALLS[device]):
        start = _now(device)
        for _ in range(AT_ONCE[device]):
            learner.update(batch)
        times.append((_now(device) - start) / AT_ONCE[device])
    return statistics.median(times)


def theirs(command: str, device: str) -> float:
    """Return the time that the peer's command prints [s]."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout.strip().splitlines()[-1])
    return 1.0 / printed["updates_per_s_median"] if device == "cuda" else float(printed["cpu_s_per_update_median"])


def _now(device: str) -> float:
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Print one JSON line for each case and each engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", required=True, metavar="CASE=COMMAND", help="state or pixels")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=tuple(ENGINES), default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for pair in arguments.peer:
        case, _, command = pair.partition("=")
        if case not in WORK or not command:
            parser.error(f"--peer {pair!r}: expected state=COMMAND or pixels=COMMAND")
        device, engines = arguments.device, ENGINES[arguments.device]
        peer: list[float] = []
        times: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(arguments.rounds):
            peer.append(theirs(command, device))
            for name, engine in engines.items():
                times[name].append(ours(case, engine, device))
        for name in engines:
            own = statistics.median(times[name])
            row = {"case": case, "engine": name, "ours_ms": 1e3 * own, "peer_ms": 1e3 * statistics.median(peer)}
            print(json.dumps({**row, "times_faster": row["peer_ms"] / row["ours_ms"]}), flush=True)


if __name__ == "__main__":
    main()
