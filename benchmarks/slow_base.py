"""Control with a base that is slow: chunks that come late, and a server that stalls.

    robot-rl demo peg_insert --episodes 20 --seed 100 --out demos
    robot-rl base train peg_insert --demos demos --seed 100 --out base.pt
    python benchmarks/slow_base.py --base chunk:base.pt --demos demos --out DIR [--steps 1500]

Serves the base in a process of its own (`robot-rl base serve`), and corrects it in real time, with the learner in
another process, three times: as it is, `--delay` late (300 ms), and so late with every 20th answer stalled for
`--stall` (2 s). Prints JSON for each:

- `period_error_ms`: between the commands of an episode, while the learner learns;
- `held`: share of the steps in which the arm held, as no action was left, and `held_runs`, the longest of them [steps];
- `moved_mm`: the largest way of the tcp in a step of such a hold from its third on, when the arm has come to rest;
- `change_mps`: how much the commanded velocity changes between steps, largest and 99th percentile, all, and where a
  hold begins or ends; control that changes hands is held to `HandoverLimits.linear` times the control period;
- `load`: of the machine, at the start and at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from robot_rl.config.load import load_config
from robot_rl.data.schema import Episode, Source
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.run.control_timing import MS_PER_NS, spread
from robot_rl.run.train import train
from robot_rl.system.process import one_thread

STALLED = 20
"""Every how many answers one stalls."""


@contextlib.contextmanager
def served(task: str, base: str) -> Iterator[str]:
    """Serve a base in a process of its own; return its address."""
    command = [sys.executable, "-m", "robot_rl", "base", "serve", task, "--base", base, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    try:
        found = next(filter(None, (re.search(r"served on (\S+);", line) for line in process.stderr)), None)
        if found is None:
            raise SystemExit(f"{base} is not served")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[1]
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def late(address: str, delay: float, stall: float) -> Iterator[str]:
    """Stand before a server, and answer later than it; return the address.

    Args:
        address: Of the server.
        delay: Before each answer [s].
        stall: Before every `STALLED`-th answer [s]; 0: none stalls.
    """
    answers = itertools.count(1)

    def answer(client: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed), connect(address, compression=None, max_size=None) as there:
            client.send(there.recv())
            for request in client:
                there.send(request)
                reply = there.recv()
                time.sleep(stall if stall and next(answers) % STALLED == 0 else delay)
                client.send(reply)

    server = serve(answer, "127.0.0.1", 0, compression=None, max_size=None)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


def figures(episodes: list[Episode], period: float, scale: float) -> dict[str, Any]:
    """Return what the docstring of this file names, of recorded episodes.

    Args:
        episodes: With corrections of the base.
        period: Of control [s].
        scale: Of the first three numbers of an action [m].
    """
    errors, changes, at_holds, moved = [], [], [], [0.0]
    held_steps, longest = 0, 0
    for episode in episodes:
        errors.append(np.abs(MS_PER_NS * np.diff(episode.stamp_action) - 1e3 * period))
        held = episode.source == Source.HOLD
        velocity = np.where(held[:, None], 0.0, episode.action[:, :3]) * scale / period
        change = np.linalg.norm(np.diff(velocity, axis=0), axis=1)
        changes.append(change)
        at_holds.append(change[held[1:] != held[:-1]])
        held_steps += int(held.sum())
        way = np.linalg.norm(np.diff(episode.observations["state/tcp_pose"][:, :3], axis=0), axis=1)
        for is_held, group in itertools.groupby(enumerate(held.tolist()), key=itemgetter(1)):
            if is_held:
                rows = [row for row, _ in group]
                longest = max(longest, len(rows))
                moved += way[rows[2:]].tolist()
    steps = sum(map(len, episodes))
    return {
        "steps": steps,
        "period_error_ms": spread(errors),
        "held": round(held_steps / steps, 3),
        "held_runs": longest,
        "moved_mm": round(1e3 * max(moved), 2),
        "change_mps": {"all": spread(changes), "where a hold begins or ends": spread(at_holds)},
        "successes": sum(bool(episode.facts.success) for episode in episodes),
        "episodes": len(episodes),
    }


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--task", default="peg_insert")
    parser.add_argument("--base", required=True)
    parser.add_argument("--demos", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--delay", type=float, default=0.3)
    parser.add_argument("--stall", type=float, default=2.0)
    arguments = parser.parse_args()
    one_thread()
    cell = make_workcell(arguments.task)
    spec = cell.task.spec
    cell.close()
    with EpisodeStore.open(arguments.demos) as store:
        demonstrations = len(store)
    with served(arguments.task, arguments.base) as address:
        for name, delay, stall in (
            ("as it is", 0.0, 0.0),
            ("late", arguments.delay, 0.0),
            ("late and stalling", arguments.delay, arguments.stall),
        ):
            load = [os.getloadavg()[0]]
            run = arguments.out / name.replace(" ", "_")
            with late(address, delay, stall) as slow:
                settings = [f"task={arguments.task}", "seed=100", f"env_steps={arguments.steps}", "base.kind=server"]
                settings += [f"base.path={slow}", f"demonstrations={demonstrations}", "intervention.enabled=false"]
                settings += ["evaluation.curve_interval=0", "evaluation.episodes=1", "evaluation.video_episodes=0"]
                config = replace(load_config(None, settings), processes=2, realtime=True)
                train(config, run, resume=False, demos=arguments.demos)
            load.append(os.getloadavg()[0])
            with EpisodeStore.open(run / "episodes") as store:
                episodes = list(store.episodes())[demonstrations:]
            answer = figures(episodes, spec.control_period, spec.action_translation)
            print(json.dumps({"base": name, **answer, "load": [round(value, 1) for value in load]}), flush=True)


if __name__ == "__main__":
    main()
